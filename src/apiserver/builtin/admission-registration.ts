import type { StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { nameProblems } from '../object-names.ts';
import type { KindTraits } from './definition.ts';
import { isSet, listIn, numberIn, objectIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

const DEFAULTS = {
  'webhooks[].failurePolicy': 'Fail',
  'webhooks[].matchPolicy': 'Equivalent',
  'webhooks[].namespaceSelector': {},
  'webhooks[].objectSelector': {},
  'webhooks[].timeoutSeconds': 10,
  'webhooks[].clientConfig.service.port': 443,
  'webhooks[].rules[].scope': '*',
};

const TRAITS = {
  tracksGeneration: true,
  unconditionalUpdate: false,
  hooks: { validate },
} satisfies KindTraits;

export const VALIDATING_WEBHOOKS: KindTraits = { ...TRAITS, defaults: DEFAULTS };

export const MUTATING_WEBHOOKS: KindTraits = {
  ...TRAITS,
  defaults: { ...DEFAULTS, 'webhooks[].reinvocationPolicy': 'Never' },
};

const SIDE_EFFECTS = ['None', 'NoneOnDryRun'];
const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const REVIEW_VERSIONS = ['v1', 'v1beta1'];

function validate(configuration: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const names = new Set<string>();
  for (const [index, webhook] of objectsIn(configuration, 'webhooks').entries()) {
    const path = `webhooks[${index}]`;
    validateName(textIn(webhook, 'name'), `${path}.name`, findings);
    for (const [at, rule] of objectsIn(webhook, 'rules').entries()) {
      validateRule(rule, `${path}.rules[${at}]`, findings);
    }
    findings.requireOneOf(webhook, 'failurePolicy', ['Fail', 'Ignore'], path);
    findings.requireOneOf(webhook, 'matchPolicy', ['Equivalent', 'Exact'], path);
    findings.requireOneOf(webhook, 'sideEffects', SIDE_EFFECTS, path);
    const timeout = numberIn(webhook, 'timeoutSeconds') ?? 10;
    if (timeout < 1 || timeout > 30) {
      const detail = 'the timeout value must be between 1 and 30 seconds';
      findings.invalid(`${path}.timeoutSeconds`, timeout, detail);
    }
    findings.requireOneOf(webhook, 'reinvocationPolicy', ['IfNeeded', 'Never'], path);
    validateWebhookClient(
      objectIn(webhook, 'clientConfig') ?? {},
      `${path}.clientConfig`,
      findings,
    );
    validateVersions(webhook, `${path}.admissionReviewVersions`, findings);
    findings.requireUnique(webhook, 'name', names, path);
  }
  return findings.errors;
}

/** A name has at least three labels: `pods.example.com`. A missing name is reported by the schema. */
function validateName(name: string, path: string, findings: Findings): void {
  if (name === '') return;
  const problems = nameProblems(name, 'dns1123Subdomain');
  for (const problem of problems) findings.invalid(path, name, problem);
  if (problems.length === 0 && name.split('.').length < 3) {
    findings.invalid(
      path,
      name,
      'should be a domain with at least three segments separated by dots',
    );
  }
}

function validateRule(rule: JsonObject, path: string, findings: Findings): void {
  const operations = listIn(rule, 'operations');
  if (operations.length === 0) findings.required(`${path}.operations`);
  if (operations.length > 1 && operations.includes('*')) {
    const detail = "if '*' is present, must not specify other operations";
    findings.invalid(`${path}.operations`, operations, detail);
  }
  for (const [index, operation] of operations.entries()) {
    if (typeof operation === 'string' && OPERATIONS.includes(operation)) continue;
    const at = `${path}.operations[${index}]`;
    findings.notSupported(at, operation, OPERATIONS);
  }
  for (const field of ['apiGroups', 'apiVersions', 'resources'] as const) {
    if (listIn(rule, field).length === 0) findings.required(`${path}.${field}`);
  }
  findings.requireOneOf(rule, 'scope', ['*', 'Cluster', 'Namespaced'], path);
}

/** Validates the `clientConfig` of a webhook without its `caBundle`. */
export function validateWebhookClient(client: JsonObject, path: string, findings: Findings): void {
  const service = objectIn(client, 'service');
  if (isSet(client, 'url') === (service !== undefined)) {
    findings.required(path, 'exactly one of url or service is required');
    return;
  }
  if (service) {
    // Upstream mistakes the one for the other.
    if (textIn(service, 'namespace') === '') findings.required(`${path}.service.name`);
    if (textIn(service, 'name') === '') findings.required(`${path}.service.namespace`);
    return;
  }
  const url = textIn(client, 'url');
  if (!/^https:\/\/[^/]/.test(url)) {
    const detail = `'https' is the only allowed URL scheme; desired format: https://host[/path]`;
    const [, scheme = ''] = /^([a-z][a-z\d+.-]*):/i.exec(url) ?? [];
    findings.invalid(`${path}.url`, scheme.toLowerCase(), detail);
  }
}

function validateVersions(webhook: JsonObject, path: string, findings: Findings): void {
  const versions = listIn(webhook, 'admissionReviewVersions');
  // A missing list is reported by the schema.
  if (!isSet(webhook, 'admissionReviewVersions')) return;
  if (versions.length === 0) {
    findings.required(path, `must specify one of ${REVIEW_VERSIONS.join(', ')}`);
  } else if (!REVIEW_VERSIONS.some((version) => versions.includes(version))) {
    findings.invalid(path, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`);
  }
}
