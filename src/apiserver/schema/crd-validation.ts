import { X509Certificate } from 'node:crypto';
import type { Condition } from '../../api/conditions.ts';
import { equalJson } from '../../api/equal.ts';
import { goQuote } from '../../util/go-quote.ts';
import { validateWebhookClient } from '../builtin/admission-registration.ts';
import { CheckedObject } from '../builtin/checked-object.ts';
import { Findings } from './findings.ts';
import { nameProblems } from '../object-names.ts';
import { checkCrdSchema } from './crd-schema.ts';
import { checkColumns, checkSelectableFields, checkSubresources } from './crd-version.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import { objectAt, objectsAt, own, textAt, textsAt } from './json-value.ts';
import type { JsonObject } from './json-value.ts';
import { isRecord } from '../../util/values.ts';

/**
 * Validates a CustomResourceDefinition (`apiextensions.k8s.io/v1`) with defaults. Returns the errors
 * with upstream's texts; empty if it is valid.
 *
 * @param previous the stored definition, if this is an update
 * @throws {NestingError} if a schema is nested too deeply
 */
export function checkCrd(crd: Readonly<JsonObject>, previous?: Readonly<JsonObject>): FieldError[] {
  const spec = objectAt(crd, 'spec');
  const metadata = objectAt(crd, 'metadata');
  const errors: FieldError[] = [];
  const expected = `${textAt(objectAt(spec, 'names'), 'plural')}.${textAt(spec, 'group')}`;
  for (const field of previous ? [] : ['generateName', 'name']) {
    const name = textAt(metadata, field);
    if (name === '' || name === expected) continue;
    const detail = 'must be spec.names.plural+"."+spec.group';
    errors.push(fieldError.invalid(`metadata.${field}`, name, detail));
  }
  checkSpec(spec, errors);
  for (const error of checkConversion(crd, previous)) errors.push(error);
  if (previous) checkChange(crd, previous, errors);
  checkStoredVersions(crd, errors);
  for (const error of checkApproval(crd, previous)) errors.push(error);
  if (own(spec, 'preserveUnknownFields') === true) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    errors.push(fieldError.invalid('spec.preserveUnknownFields', true, detail));
  }
  return errors;
}

function checkSpec(spec: JsonObject, errors: FieldError[]): void {
  const group = textAt(spec, 'group');
  if (group === '') {
    errors.push(fieldError.required('spec.group'));
  } else if (requireName(group, 'dns1123Subdomain', 'spec.group', errors) && !group.includes('.')) {
    const detail = 'should be a domain with at least one dot';
    errors.push(fieldError.invalid('spec.group', group, detail));
  }
  checkEnum(spec, 'scope', ['Cluster', 'Namespaced'], 'spec.scope', errors);
  checkVersions(spec, errors);
  checkNames(objectAt(spec, 'names'), errors);
}

/** Parts that are equal in all versions are reported once, under their path in `v1beta1`. */
const SHARED = [
  ['schema', 'validation'],
  ['subresources', 'subresources'],
  ['additionalPrinterColumns', 'additionalPrinterColumns'],
  ['selectableFields', 'selectableFields'],
] as const;

type VersionPart = (typeof SHARED)[number][0];

function checkVersions(spec: JsonObject, errors: FieldError[]): void {
  const versions = objectsAt(spec, 'versions');
  const names = versions.map((version) => textAt(version, 'name'));
  versions.forEach((version, index) => {
    if (!isRecord(own(objectAt(version, 'schema'), 'openAPIV3Schema'))) {
      errors.push(fieldError.required(`spec.versions[${index}].schema.openAPIV3Schema`));
    }
  });
  const common = new Map<VersionPart, string>();
  for (const [part, path] of SHARED) {
    const first = versions[0] && own(versions[0], part);
    if (versions.every((version) => equalJson(own(version, part), first))) {
      common.set(part, `spec.${path}`);
    }
  }
  const anyStatus = versions.some(hasStatus);
  versions.forEach((version, index) => {
    const at = `spec.versions[${index}]`;
    requireName(names[index] ?? '', 'dns1035Label', `${at}.name`, errors);
    checkDeprecation(version, at, errors);
    for (const [part] of SHARED) {
      if (!common.has(part)) {
        const found = checkPart(part, version, `${at}.${part}`, hasStatus(version));
        for (const error of found) errors.push(error);
      }
    }
  });
  if (new Set(names).size < names.length) {
    const detail = 'must contain unique version names';
    errors.push(fieldError.invalid('spec.versions', versions, detail));
  }
  if (versions.filter((version) => own(version, 'storage') === true).length !== 1) {
    const detail = 'must have exactly one version marked as storage version';
    errors.push(fieldError.invalid('spec.versions', versions, detail));
  }
  const [first] = versions;
  if (!first) return;
  // The first version is also checked as `spec.version` of `v1beta1`, as upstream.
  requireName(names[0] ?? '', 'dns1035Label', 'spec.version', errors);
  for (const [part, path] of common) {
    for (const error of checkPart(part, first, path, anyStatus)) errors.push(error);
  }
}

function checkPart(
  part: VersionPart,
  version: JsonObject,
  path: string,
  statusEnabled: boolean,
): readonly FieldError[] {
  const schema = own(objectAt(version, 'schema'), 'openAPIV3Schema');
  switch (part) {
    case 'schema':
      return isRecord(schema)
        ? checkCrdSchema(schema, `${path}.openAPIV3Schema`, statusEnabled)
        : [];
    case 'subresources':
      return checkSubresources(objectAt(version, part), path);
    case 'additionalPrinterColumns':
      return checkColumns(objectsAt(version, part), path);
    case 'selectableFields':
      return checkSelectableFields(objectsAt(version, part), schema, path);
  }
}

function hasStatus(version: JsonObject): boolean {
  return isRecord(own(objectAt(version, 'subresources'), 'status'));
}

function checkDeprecation(version: JsonObject, path: string, errors: FieldError[]): void {
  const warning = own(version, 'deprecationWarning');
  if (typeof warning !== 'string') return;
  const fail = (detail: string) =>
    errors.push(fieldError.invalid(`${path}.deprecationWarning`, warning, detail));
  if (own(version, 'deprecated') !== true) fail('can only be set for deprecated versions');
  else if (warning.length > 256) fail('must be <= 256 characters long');
  else if (warning === '') fail('must not be an empty string');
  else {
    const index = warning.search(/\p{C}/u);
    if (index >= 0) {
      fail(
        `must only contain printable UTF-8 characters; non-printable character found at index ${index}`,
      );
    }
  }
}

function checkNames(names: JsonObject, errors: FieldError[]): void {
  for (const name of ['plural', 'singular', 'kind', 'listKind']) {
    if (textAt(names, name) === '') errors.push(fieldError.required(`spec.names.${name}`));
  }
  for (const name of ['plural', 'singular']) {
    const value = textAt(names, name);
    if (value !== '') requireName(value, 'dns1035Label', `spec.names.${name}`, errors);
  }
  for (const name of ['kind', 'listKind']) {
    const value = textAt(names, name);
    const problems = value === '' ? [] : nameProblems(value.toLowerCase(), 'dns1035Label');
    if (problems.length > 0) {
      const detail = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
      errors.push(fieldError.invalid(`spec.names.${name}`, value, detail));
    }
  }
  textsAt(names, 'shortNames').forEach((name, index) =>
    requireName(name, 'dns1035Label', `spec.names.shortNames[${index}]`, errors),
  );
  const kind = textAt(names, 'kind');
  if (kind !== '' && kind === textAt(names, 'listKind')) {
    const detail = 'kind and listKind may not be the same';
    errors.push(fieldError.invalid('spec.names.listKind', kind, detail));
  }
  textsAt(names, 'categories').forEach((name, index) =>
    requireName(name, 'dns1035Label', `spec.names.categories[${index}]`, errors),
  );
}

function checkConversion(
  crd: Readonly<JsonObject>,
  previous: Readonly<JsonObject> | undefined,
): FieldError[] {
  const conversion = objectAt(objectAt(crd, 'spec'), 'conversion');
  if (Object.keys(conversion).length === 0) return [];
  const findings = new Findings();
  const path = 'spec.conversion';
  checkEnum(conversion, 'strategy', ['None', 'Webhook'], `${path}.strategy`, findings.errors);
  const webhook = conversionWebhookOf(crd);
  const client = own(webhook, 'clientConfig');
  const versions = textsAt(webhook, 'conversionReviewVersions');
  if (own(conversion, 'strategy') !== 'Webhook') {
    const detail = 'should not be set when strategy is not set to Webhook';
    if (isRecord(client)) findings.forbidden(`${path}.webhookClientConfig`, detail);
    if (versions.length > 0) findings.forbidden(`${path}.conversionReviewVersions`, detail);
    return findings.errors;
  }
  if (isRecord(client)) {
    const field = `${path}.webhookClientConfig`;
    validateWebhookClient(new CheckedObject(client, field, findings.errors));
    const problem = caBundleProblem(crd);
    if (
      problem !== undefined &&
      previous &&
      isEstablished(previous) &&
      !caBundleProblem(previous)
    ) {
      findings.invalid(`${path}.webhookClientConfig.caBundle`, own(client, 'caBundle'), problem);
    }
  } else {
    findings.required(`${path}.webhookClientConfig`, 'required when strategy is set to Webhook');
  }
  const at = `${path}.conversionReviewVersions`;
  if (versions.length === 0) findings.required(at);
  for (const [index, version] of versions.entries()) {
    requireName(version, 'dns1035Label', `${at}[${index}]`, findings.errors);
  }
  const former = previous ? reviewVersionsOf(previous) : [];
  if (versions.length > 0 && !isReviewed(versions) && (former.length === 0 || isReviewed(former))) {
    findings.invalid(at, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`);
  }
  return findings.errors;
}

const REVIEW_VERSIONS = ['v1', 'v1beta1'];

function isReviewed(versions: readonly string[]): boolean {
  return versions.some((version) => REVIEW_VERSIONS.includes(version));
}

function conversionWebhookOf(crd: JsonObject): JsonObject {
  return objectAt(objectAt(objectAt(crd, 'spec'), 'conversion'), 'webhook');
}

function reviewVersionsOf(crd: JsonObject): readonly string[] {
  return textsAt(conversionWebhookOf(crd), 'conversionReviewVersions');
}

/** Returns why the certificate authorities of the conversion webhook are invalid; undefined without any. */
export function caBundleProblem(crd: Readonly<JsonObject>): string | undefined {
  const client = objectAt(conversionWebhookOf(crd), 'clientConfig');
  const bundle = Buffer.from(textAt(client, 'caBundle'), 'base64');
  if (bundle.length === 0) return undefined;
  const blocks = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;
  const certificates = bundle.toString('latin1').match(blocks) ?? [];
  // As in Go, one valid certificate is sufficient.
  if (certificates.some(isCertificate)) return undefined;
  const problem =
    certificates.length > 0 ? 'failed to parse certificate' : 'unable to parse bytes as PEM block';
  return `unable to load root certificates: ${problem}`;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

function checkStoredVersions(crd: JsonObject, errors: FieldError[]): void {
  const versions = objectsAt(objectAt(crd, 'spec'), 'versions');
  const names = new Set(versions.map((version) => textAt(version, 'name')));
  const stored = textsAt(objectAt(crd, 'status'), 'storedVersions');
  if (stored.length === 0 && !versions.some((version) => own(version, 'storage') === true)) {
    const detail = 'must have at least one stored version';
    errors.push(fieldError.invalid('status.storedVersions', null, detail));
  }
  stored.forEach((version, index) => {
    if (names.has(version)) return;
    const detail = `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`;
    errors.push(fieldError.invalid(`status.storedVersions[${index}]`, version, detail));
  });
}

/** Checks that the names in stored objects and URLs do not change. */
function checkChange(crd: JsonObject, previous: JsonObject, errors: FieldError[]): void {
  const [spec, before] = [objectAt(crd, 'spec'), objectAt(previous, 'spec')];
  const [names, namesBefore] = [objectAt(spec, 'names'), objectAt(before, 'names')];
  const immutable = (value: string, former: string, path: string) => {
    if (value !== former) errors.push(fieldError.invalid(path, value, 'field is immutable'));
  };
  if (isEstablished(previous)) {
    immutable(textAt(spec, 'scope'), textAt(before, 'scope'), 'spec.scope');
    immutable(textAt(names, 'kind'), textAt(namesBefore, 'kind'), 'spec.names.kind');
  }
  immutable(textAt(spec, 'group'), textAt(before, 'group'), 'spec.group');
  immutable(textAt(names, 'plural'), textAt(namesBefore, 'plural'), 'spec.names.plural');
}

function isEstablished(crd: JsonObject): boolean {
  return objectsAt(objectAt(crd, 'status'), 'conditions').some(
    (condition) => own(condition, 'type') === 'Established' && own(condition, 'status') === 'True',
  );
}

function checkEnum(
  object: JsonObject,
  name: string,
  supported: readonly string[],
  path: string,
  errors: FieldError[],
): void {
  const value = textAt(object, name);
  if (value === '') errors.push(fieldError.required(path));
  else if (!supported.includes(value)) {
    errors.push(fieldError.notSupported(path, value, supported));
  }
}

/** @returns whether `name` has the format */
function requireName(
  name: string,
  format: 'dns1123Subdomain' | 'dns1035Label',
  path: string,
  errors: FieldError[],
): boolean {
  const problems = nameProblems(name, format);
  if (problems.length > 0) errors.push(fieldError.invalid(path, name, problems.join(',')));
  return problems.length === 0;
}

const ANNOTATION = 'api-approved.kubernetes.io';
const FIELD = `metadata.annotations[${ANNOTATION}]`;
const REFERENCE = 'see https://github.com/kubernetes/enhancements/pull/1111';

/**
 * Checks that a CRD in a protected group has an approval annotation. An update that does not change
 * the annotation is accepted.
 */
function checkApproval(
  crd: Readonly<JsonObject>,
  previous: Readonly<JsonObject> | undefined,
): FieldError[] {
  const { reason, message = '' } = approvalCondition(crd) ?? {};
  if (previous && approvalOf(previous) === approvalOf(crd)) return [];
  if (reason === 'MissingAnnotation') return [fieldError.required(FIELD, message)];
  if (reason !== 'InvalidAnnotation') return [];
  return [fieldError.invalid(FIELD, approvalOf(crd), message)];
}

/** Returns the condition of a CRD in a protected group that shows whether the API is approved. */
export function approvalCondition(
  crd: Readonly<JsonObject>,
): Omit<Condition, 'lastTransitionTime'> | undefined {
  if (!isProtected(textAt(objectAt(crd, 'spec'), 'group'))) return undefined;
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
  return textAt(objectAt(objectAt(crd, 'metadata'), 'annotations'), ANNOTATION);
}

function isAbsoluteUrl(text: string): boolean {
  return URL.canParse(text) && new URL(text).host !== '';
}
