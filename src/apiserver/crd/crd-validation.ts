import type { Condition } from '../../api/conditions.ts';
import { equalJson } from '../../api/equal.ts';
import { goQuote } from '../../util/go-quote.ts';
import { validateWebhookClient } from '../builtin/admissionregistration/webhook-configurations.ts';
import type { CheckSteps } from '../objects/check-steps.ts';
import { CheckedObject } from '../objects/checked-object.ts';
import { nameProblems } from '../../api/object-names.ts';
import { checkCrdSchema } from './crd-schema.ts';
import { checkColumns, checkSelectableFields, checkSubresources } from './crd-version.ts';
import type { FieldError } from '../../api/field-error.ts';
import { objectIn, objectsIn, own, textIn, textsIn } from '../../util/json-value.ts';
import { fromBase64, latin1Text } from '../../util/bytes.ts';
import { isCertificate } from '../../util/certificate.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';

/**
 * Validates a CustomResourceDefinition (`apiextensions.k8s.io/v1`) with defaults. Returns the errors
 * with upstream's texts; empty if it is valid.
 *
 * @param previous the stored definition, if this is an update
 * @throws {NestingError} if a schema is nested too deeply
 */
export function* checkCrd(
  crd: Readonly<JsonObject>,
  previous?: Readonly<JsonObject>,
): CheckSteps<FieldError[]> {
  const checked = new CheckedObject(crd);
  const spec = checked.in('spec');
  const metadata = checked.in('metadata');
  const expected = `${spec.in('names').text('plural')}.${spec.text('group')}`;
  for (const field of previous ? [] : ['generateName', 'name']) {
    const name = metadata.text(field);
    if (name === '' || name === expected) continue;
    metadata.invalid(field, 'must be spec.names.plural+"."+spec.group');
  }
  yield* checkSpec(spec);
  checkConversion(spec.in('conversion'), crd, previous);
  if (previous) checkChange(spec, previous);
  checkStoredVersions(checked);
  checkApproval(checked, previous);
  if (spec.value['preserveUnknownFields'] === true) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    spec.invalid('preserveUnknownFields', detail);
  }
  return checked.errors;
}

/** Validates a new status. As upstream, its versions may be any. */
export function checkCrdStatus(crd: Readonly<JsonObject>): FieldError[] {
  const checked = new CheckedObject(crd);
  checkNameFormats(checked.in('status').in('acceptedNames'));
  return checked.errors;
}

function* checkSpec(spec: CheckedObject): CheckSteps {
  const group = spec.text('group');
  if (group === '') spec.required('group');
  else if (requireName(spec, 'group', 'dns1123Subdomain') && !group.includes('.')) {
    spec.invalid('group', 'should be a domain with at least one dot');
  }
  checkEnum(spec, 'scope', ['Cluster', 'Namespaced']);
  yield* checkVersions(spec);
  checkNames(spec.in('names'));
}

/** Parts that are equal in all versions are reported once, under their path in `v1beta1`. */
const SHARED = [
  ['schema', 'validation'],
  ['subresources', 'subresources'],
  ['additionalPrinterColumns', 'additionalPrinterColumns'],
  ['selectableFields', 'selectableFields'],
] as const;

type VersionPart = (typeof SHARED)[number][0];

function* checkVersions(spec: CheckedObject): CheckSteps {
  const versions = spec.items('versions');
  for (const version of versions) {
    const schema = version.in('schema');
    if (!schema.get('openAPIV3Schema')) schema.required('openAPIV3Schema');
  }
  const [first] = versions;
  const common = new Map(
    SHARED.filter(([part]) =>
      versions.every(({ value }) => equalJson(own(value, part), first?.value[part])),
    ),
  );
  for (const version of versions) {
    requireName(version, 'name', 'dns1035Label');
    checkDeprecation(version);
    for (const [part] of SHARED) {
      if (!common.has(part)) yield* checkPart(part, version, part, hasStatus(version.value));
    }
  }
  if (new Set(versions.map((version) => version.text('name'))).size < versions.length) {
    spec.invalid('versions', 'must contain unique version names');
  }
  if (versions.filter(({ value }) => value['storage'] === true).length !== 1) {
    const detail = 'must have exactly one version marked as storage version';
    spec.invalid('versions', detail);
  }
  if (!first) return;
  // The first version is also checked as that of `v1beta1`, as upstream.
  requireName(spec, 'version', 'dns1035Label', first.text('name'));
  const anyStatus = versions.some(({ value }) => hasStatus(value));
  for (const [part, name] of common) {
    const shared = new CheckedObject({ [name]: first.value[part] }, spec.path, spec.errors);
    yield* checkPart(part, shared, name, anyStatus, first.value);
  }
}

/**
 * Checks a part of a version, which is in the field `name` of `holder`.
 *
 * @param version the version, if it is not the holder
 */
function* checkPart(
  part: VersionPart,
  holder: CheckedObject,
  name: string,
  statusEnabled: boolean,
  version: Readonly<JsonObject> = holder.value,
): CheckSteps {
  const schema = own(objectIn(version, 'schema') ?? {}, 'openAPIV3Schema');
  switch (part) {
    case 'schema':
      if (isRecord(schema)) {
        const path = `${holder.at(name)}.openAPIV3Schema`;
        // One by one, because their number is not limited.
        const errors = yield* checkCrdSchema(schema, path, statusEnabled);
        for (const error of errors) holder.errors.push(error);
      }
      return;
    case 'subresources':
      return checkSubresources(holder.in(name));
    case 'additionalPrinterColumns':
      return checkColumns(holder.items(name));
    case 'selectableFields':
      return checkSelectableFields(holder, name, schema);
  }
}

function hasStatus(version: Readonly<JsonObject>): boolean {
  return isRecord(own(objectIn(version, 'subresources') ?? {}, 'status'));
}

function checkDeprecation(version: CheckedObject): void {
  const warning = version.value['deprecationWarning'];
  if (typeof warning !== 'string') return;
  const fail = (detail: string) => version.invalid('deprecationWarning', detail);
  if (version.value['deprecated'] !== true) fail('can only be set for deprecated versions');
  else if (warning.length > 256) fail('must be <= 256 characters long');
  else if (warning === '') fail('must not be an empty string');
  else {
    const index = warning.search(/\p{C}/u);
    if (index < 0) return;
    fail(
      `must only contain printable UTF-8 characters; non-printable character found at index ${index}`,
    );
  }
}

function checkNames(names: CheckedObject): void {
  for (const name of ['plural', 'singular', 'kind', 'listKind']) names.requireText(name);
  checkNameFormats(names);
}

function checkNameFormats(names: CheckedObject): void {
  for (const name of ['plural', 'singular']) {
    if (names.text(name) !== '') requireName(names, name, 'dns1035Label');
  }
  for (const name of ['kind', 'listKind']) {
    const value = names.text(name);
    const problems = value === '' ? [] : nameProblems(value.toLowerCase(), 'dns1035Label');
    if (problems.length === 0) continue;
    const detail = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
    names.invalid(name, detail);
  }
  requireNames(names, 'shortNames');
  const kind = names.text('kind');
  if (kind !== '' && kind === names.text('listKind')) {
    names.invalid('listKind', 'kind and listKind may not be the same');
  }
  requireNames(names, 'categories');
}

function checkConversion(
  conversion: CheckedObject,
  crd: Readonly<JsonObject>,
  previous: Readonly<JsonObject> | undefined,
): void {
  if (Object.keys(conversion.value).length === 0) return;
  checkEnum(conversion, 'strategy', ['None', 'Webhook']);
  const webhook = conversion.in('webhook');
  const client = webhook.get('clientConfig');
  // As upstream, with the paths of `v1beta1`.
  const versions = textsIn(webhook.value, 'conversionReviewVersions');
  if (conversion.text('strategy') !== 'Webhook') {
    const detail = 'should not be set when strategy is not set to Webhook';
    if (client) conversion.forbidden('webhookClientConfig', detail);
    if (versions.length > 0) conversion.forbidden('conversionReviewVersions', detail);
    return;
  }
  if (client) {
    const path = conversion.at('webhookClientConfig');
    const config = new CheckedObject(client.value, path, conversion.errors);
    validateWebhookClient(config);
    const problem = caBundleProblem(crd);
    const wasValid = previous && isEstablished(previous) && !caBundleProblem(previous);
    if (problem !== undefined && wasValid) config.invalid('caBundle', problem);
  } else {
    conversion.required('webhookClientConfig', 'required when strategy is set to Webhook');
  }
  const field = 'conversionReviewVersions';
  if (versions.length === 0) conversion.required(field);
  for (const [index, version] of versions.entries()) {
    requireName(conversion, `${field}[${index}]`, 'dns1035Label', version);
  }
  const former = previous ? reviewVersionsOf(previous) : [];
  if (versions.length > 0 && !isReviewed(versions) && (former.length === 0 || isReviewed(former))) {
    const detail = `must include at least one of ${REVIEW_VERSIONS.join(', ')}`;
    conversion.invalid(field, detail, versions);
  }
}

const REVIEW_VERSIONS = ['v1', 'v1beta1'];

function isReviewed(versions: readonly string[]): boolean {
  return versions.some((version) => REVIEW_VERSIONS.includes(version));
}

function conversionWebhookOf(crd: JsonObject): JsonObject {
  return objectIn(objectIn(objectIn(crd, 'spec'), 'conversion'), 'webhook') ?? {};
}

function reviewVersionsOf(crd: JsonObject): readonly string[] {
  return textsIn(conversionWebhookOf(crd), 'conversionReviewVersions');
}

/** Returns why the certificate authorities of the conversion webhook are invalid; undefined without any. */
export function caBundleProblem(crd: Readonly<JsonObject>): string | undefined {
  const client = objectIn(conversionWebhookOf(crd), 'clientConfig') ?? {};
  const bundle = latin1Text(fromBase64(textIn(client, 'caBundle')));
  if (bundle === '') return undefined;
  const blocks = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;
  const certificates = bundle.match(blocks) ?? [];
  // As in Go, one valid certificate is sufficient.
  if (certificates.some(isCertificate)) return undefined;
  const problem =
    certificates.length > 0 ? 'failed to parse certificate' : 'unable to parse bytes as PEM block';
  return `unable to load root certificates: ${problem}`;
}

function checkStoredVersions(crd: CheckedObject): void {
  const versions = crd.in('spec').items('versions');
  const status = crd.in('status');
  const names = new Set(versions.map((version) => version.text('name')));
  const stored = textsIn(status.value, 'storedVersions');
  if (stored.length === 0 && !versions.some(({ value }) => value['storage'] === true)) {
    status.invalid('storedVersions', 'must have at least one stored version', null);
  }
  // The server adds the first one itself.
  const [, ...further] = versions.filter(({ value }) => value['storage'] === true);
  for (const version of stored.length > 0 ? further : []) {
    const name = version.text('name');
    if (!stored.includes(name)) {
      status.invalid('storedVersions', `must have the storage version ${name}`);
    }
  }
  for (const [index, version] of stored.entries()) {
    if (names.has(version)) continue;
    const detail = `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`;
    status.invalid(`storedVersions[${index}]`, detail, version);
  }
}

/** Checks that the names in stored objects and URLs do not change. */
function checkChange(spec: CheckedObject, previous: JsonObject): void {
  const before = new CheckedObject(previous).in('spec');
  const immutable = (object: CheckedObject, former: CheckedObject, field: string) => {
    const value = object.text(field);
    if (value !== former.text(field)) object.invalid(field, 'field is immutable', value);
  };
  const [names, namesBefore] = [spec.in('names'), before.in('names')];
  if (isEstablished(previous)) {
    immutable(spec, before, 'scope');
    immutable(names, namesBefore, 'kind');
  }
  immutable(spec, before, 'group');
  immutable(names, namesBefore, 'plural');
}

function isEstablished(crd: JsonObject): boolean {
  return objectsIn(objectIn(crd, 'status') ?? {}, 'conditions').some(
    (condition) => own(condition, 'type') === 'Established' && own(condition, 'status') === 'True',
  );
}

function checkEnum(object: CheckedObject, field: string, supported: readonly string[]): void {
  object.requireText(field);
  object.requireOneOf(field, supported);
}

function requireNames(object: CheckedObject, field: string): void {
  for (const [index, name] of textsIn(object.value, field).entries()) {
    requireName(object, `${field}[${index}]`, 'dns1035Label', name);
  }
}

/** @returns whether the name has the format */
function requireName(
  object: CheckedObject,
  field: string,
  format: 'dns1123Subdomain' | 'dns1035Label',
  name: string = object.text(field),
): boolean {
  const problems = nameProblems(name, format);
  if (problems.length > 0) object.invalid(field, problems.join(','), name);
  return problems.length === 0;
}

const ANNOTATION = 'api-approved.kubernetes.io';
const FIELD = `metadata.annotations[${ANNOTATION}]`;
const REFERENCE = 'see https://github.com/kubernetes/enhancements/pull/1111';

/**
 * Checks that a CRD in a protected group has an approval annotation. An update that does not change
 * the annotation is accepted.
 */
function checkApproval(crd: CheckedObject, previous: Readonly<JsonObject> | undefined): void {
  const { reason, message = '' } = approvalCondition(crd.value) ?? {};
  if (previous && approvalOf(previous) === approvalOf(crd.value)) return;
  if (reason === 'MissingAnnotation') crd.required(FIELD, message);
  if (reason === 'InvalidAnnotation') crd.invalid(FIELD, message, approvalOf(crd.value));
}

/** Returns the condition of a CRD in a protected group that shows whether the API is approved. */
export function approvalCondition(
  crd: Readonly<JsonObject>,
): Omit<Condition, 'lastTransitionTime'> | undefined {
  if (!isProtected(textIn(objectIn(crd, 'spec') ?? {}, 'group'))) return undefined;
  const approval = approvalOf(crd);
  const condition = (status: Condition['status'], reason: string, message: string) => ({
    type: 'KubernetesAPIApprovalPolicyConformant',
    status,
    reason,
    message,
  });
  const needed = `protected groups must have approval annotation "${ANNOTATION}"`;
  if (approval === '') {
    return condition('False', 'MissingAnnotation', `${needed}, ${REFERENCE}`);
  }
  if (approval.startsWith('unapproved')) {
    return condition('False', 'UnapprovedAnnotation', `not approved: ${goQuote(approval)}`);
  }
  if (isAbsoluteUrl(approval)) {
    return condition('True', 'ApprovedAnnotation', `approved in ${approval}`);
  }
  const detail = `${needed} with either a URL or a reason starting with "unapproved", ${REFERENCE}`;
  return condition('False', 'InvalidAnnotation', detail);
}

function isProtected(group: string): boolean {
  return ['k8s.io', 'kubernetes.io'].some(
    (domain) => group === domain || group.endsWith(`.${domain}`),
  );
}

function approvalOf(crd: Readonly<JsonObject>): string {
  return textIn(objectIn(objectIn(crd, 'metadata'), 'annotations') ?? {}, ANNOTATION);
}

function isAbsoluteUrl(text: string): boolean {
  return URL.canParse(text) && new URL(text).host !== '';
}
