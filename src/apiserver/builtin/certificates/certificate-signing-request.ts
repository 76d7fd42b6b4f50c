import { X509Certificate } from 'node:crypto';
import { textFromBase64 } from '../../../util/bytes.ts';
import type { CertificateSigningRequest } from '../../../util/certificate-request.ts';
import { parseCertificateRequest } from '../../../util/certificate-request.ts';
import { goQuote } from '../../../util/go-quote.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { numberIn, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { messageOf, repeatedIndexes } from '../../../util/values.ts';
import { timestamp } from '../../../api/conditions.ts';
import { MASTERS } from '../../../api/user.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import type { ApiObject, HookContext, StoredObject } from '../../objects/resource-definition.ts';
import { forbiddenError } from '../../objects/status-error.ts';
import { AGE_COLUMN, NAME_COLUMN, column, field, humanDuration } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { requireSigner } from '../shared/signer-names.ts';
import { conditionOfType } from '../shared/cells.ts';

export const CERTIFICATE_SIGNING_REQUEST: BuiltinKind = {
  resource: 'certificates.k8s.io/certificatesigningrequests',
  defaults: { 'spec.request': null },
  nameFormat: 'pathSegment',
  selectableFields: fieldsAt('spec.signerName'),
  hooks: { prepareForCreate, prepareForUpdate },
  validate,
  columns: [
    NAME_COLUMN,
    AGE_COLUMN,
    field('SignerName', 'spec.signerName', '<none>'),
    field('Requestor', 'spec.username'),
    column('RequestedDuration', 'Requested validity of the certificate.', (request) => {
      const seconds = numberIn(objectIn(request, 'spec'), 'expirationSeconds');
      return seconds === undefined ? '<none>' : humanDuration(seconds * 1000);
    }),
    column('Condition', 'State of the request.', (request) => {
      const has = (type: string) => conditionOfType(request, type) !== undefined;
      const state = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending';
      const issued = textIn(objectIn(request, 'status'), 'certificate') ? ',Issued' : '';
      return `${state}${has('Failed') ? ',Failed' : ''}${issued}`;
    }),
  ],
};

/** The user of the request is the one who sends it. */
function prepareForCreate(request: ApiObject, { user }: HookContext): void {
  const spec = objectIn(request, 'spec') ?? {};
  const { username: _name, uid: _uid, groups: _groups, extra: _extra, ...own } = spec;
  const { name, uid, groups, extra = {} } = user;
  request['spec'] = {
    ...own,
    username: name,
    ...(uid && { uid }),
    ...(groups.length > 0 && { groups: [...groups] }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
  request['status'] = {};
  const signer = textIn(spec, 'signerName');
  if (signer !== API_CLIENT_SIGNER) return;
  const { organizations = [] } = parsedRequest(request) ?? {};
  if (!organizations.includes(MASTERS)) return;
  const why = `use of ${signer} signer with ${MASTERS} group is not allowed`;
  throw forbiddenError(RESOURCE, request.metadata.name, why);
}

const RESOURCE = { group: 'certificates.k8s.io', plural: 'certificatesigningrequests' } as const;
const API_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';

/** Returns the request in PEM, or undefined if it is malformed. */
function parsedRequest(request: ApiObject | StoredObject): CertificateSigningRequest | undefined {
  try {
    return parseCertificateRequest(pemOf(request));
  } catch {
    return undefined;
  }
}

function pemOf(request: ApiObject | StoredObject): string {
  return textFromBase64(textIn(objectIn(request, 'spec'), 'request'));
}

/**
 * Requires that the user may approve or sign requests for a signer, or for all signers of its domain.
 *
 * @throws {StatusError} 403
 */
function requireSignerRights(
  verb: 'approve' | 'sign',
  { spec, metadata }: StoredObject,
  { user, access }: HookContext,
): void {
  const signer = textIn(spec as JsonObject, 'signerName');
  const { group } = RESOURCE;
  const action = { verb, group, resource: 'signers', subresource: '', namespace: '' };
  const rightTo = (name: string) => ({ ...action, kind: 'resource', name }) as const;
  if (access.authorize(user, rightTo(signer)).allowed) return;
  if (access.allows(user, rightTo(`${signer.split('/', 1)[0]}/*`))) return;
  const why = `user not permitted to ${verb} requests with signerName ${goQuote(signer)}`;
  throw forbiddenError(RESOURCE, metadata.name, why);
}

const DECISIONS: ReadonlySet<string> = new Set(['Approved', 'Denied']);

/** The spec never changes. Only `/approval` decides; it writes conditions and nothing else. */
function prepareForUpdate(request: ApiObject, previous: StoredObject, context: HookContext): void {
  const { now, subresource } = context;
  request['spec'] = previous['spec'];
  if (subresource === undefined) return;
  const before = objectIn(previous, 'status') ?? {};
  const status = objectIn(request, 'status') ?? {};
  if (subresource === 'approval') requireSignerRights('approve', previous, context);
  else if (signs(before, status)) requireSignerRights('sign', previous, context);
  const isDecision = (condition: JsonObject) => DECISIONS.has(textIn(condition, 'type'));
  const written = objectsIn(status, 'conditions');
  const conditions =
    subresource === 'approval'
      ? written
      : [
          ...objectsIn(before, 'conditions').filter(isDecision),
          ...written.filter((condition) => !isDecision(condition)),
        ];
  const time = timestamp(now);
  request['status'] = {
    ...(subresource === 'approval' ? before : status),
    conditions: conditions.map((condition) =>
      Object.assign({ lastUpdateTime: time, lastTransitionTime: time }, condition),
    ),
  };
}

/** Whether a status sets the certificate, or the condition that there is none. */
function signs(before: JsonObject, after: JsonObject): boolean {
  const hasFailed = (status: JsonObject) =>
    objectsIn(status, 'conditions').some((condition) => condition['type'] === 'Failed');
  return before['certificate'] !== after['certificate'] || (hasFailed(after) && !hasFailed(before));
}

const USAGES = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

function validate(request: CheckedObject<StoredObject>, previous: StoredObject | undefined): void {
  const spec = request.in('spec');
  const problem = requestProblem(pemOf(request.value));
  if (problem !== undefined) spec.invalid('request', problem);
  if (spec.list('usages').length === 0) spec.required('usages');
  spec.requireEachOf('usages', USAGES);
  const usages = previous ? [] : spec.list('usages');
  const repeated = repeatedIndexes(usages);
  for (const [index, usage] of usages.entries()) {
    if (repeated.has(index)) spec.duplicate(`usages[${index}]`, usage);
  }
  if (spec.text('signerName') === 'kubernetes.io/legacy-unknown') {
    spec.invalid('signerName', 'the legacy signerName is not allowed via this API version');
  } else requireSigner(spec);
  if ((spec.number('expirationSeconds') ?? 600) < 600) {
    const why = 'may not specify a duration less than 600 seconds (10 minutes)';
    spec.invalid('expirationSeconds', why);
  }
  validateStatus(request, previous);
}

function requestProblem(pem: string): string | undefined {
  try {
    return parseCertificateRequest(pem).isSigned ? undefined : 'x509: the signature is not valid';
  } catch (error) {
    return messageOf(error);
  }
}

const FINAL = ['Approved', 'Denied', 'Failed'] as const;

/** Conditions with a decision stay, and a certificate never changes. */
function validateStatus(request: CheckedObject, previous: StoredObject | undefined): void {
  const status = request.in('status');
  const former = objectIn(previous, 'status') ?? {};
  const types = new Set<string>();
  for (const condition of status.items('conditions')) {
    condition.requireUnique('type', types);
    const isFinal = FINAL.some((type) => type === condition.text('type'));
    if (isFinal) condition.requireOneOf('status', ['True']);
  }
  const count = (of: Readonly<JsonObject>, type: string) =>
    objectsIn(of, 'conditions').filter((condition) => condition['type'] === type).length;
  const isDecidedTwice = (of: Readonly<JsonObject>) =>
    count(of, 'Approved') > 0 && count(of, 'Denied') > 0;
  if (isDecidedTwice(status.value) && !isDecidedTwice(former)) {
    const [one = '', other = ''] = [...DECISIONS].map((type) => `conditions[{"type": "${type}"}]`);
    const why = `must specify at most one of: \`${one}\`, \`${other}\``;
    status.invalid('conditions', why, `{${one}, ${other}}`);
  }
  for (const type of FINAL) {
    if (count(status.value, type) >= count(former, type)) continue;
    status.forbidden('conditions', `updates may not remove a condition of type "${type}"`);
  }
  const certificate = status.text('certificate');
  const formerCertificate = textIn(former, 'certificate');
  if (certificate === formerCertificate) return;
  const pem = textFromBase64(certificate);
  const problem = certificate === '' ? undefined : certificateProblem(pem);
  if (problem !== undefined) status.invalid('certificate', problem, '<certificate data>');
  if (formerCertificate === '') return;
  status.forbidden('certificate', 'updates may not modify existing certificate content');
}

/** Returns why a text is not a list of certificates in PEM, if it is not. */
function certificateProblem(text: string): string | undefined {
  const blocks = [...text.matchAll(/-----BEGIN ([^-]+)-----([^]*?)-----END \1-----/g)];
  for (const [, type = '', content = ''] of blocks) {
    if (type !== 'CERTIFICATE') {
      return `only CERTIFICATE PEM blocks are allowed, found ${goQuote(type)}`;
    }
    if (content.includes(':')) return 'no PEM block headers are permitted';
  }
  try {
    const certificates = blocks.map(([block]) => new X509Certificate(block));
    return certificates.length > 0 ? undefined : 'must contain at least one CERTIFICATE PEM block';
  } catch (error) {
    return `x509: malformed certificate: ${messageOf(error)}`;
  }
}
