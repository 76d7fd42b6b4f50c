import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { columns, count } from '../../table/column.ts';
import { staticNameWarnings, validateStaticName } from './static-names.ts';
import type { BuiltinKind, KindTraits } from '../shared/builtin-kind.ts';

const TRAITS = {
  tracksGeneration: true,
  unconditionalUpdate: false,
  validate,
  columns: columns(count('Webhooks', 'webhooks')),
  warnings: webhookWarnings,
} satisfies KindTraits;

const DEFAULTS = {
  'webhooks[].failurePolicy': 'Fail',
  'webhooks[].matchPolicy': 'Equivalent',
  'webhooks[].namespaceSelector': {},
  'webhooks[].objectSelector': {},
  'webhooks[].timeoutSeconds': 10,
  'webhooks[].clientConfig.service.port': 443,
  'webhooks[].rules[].scope': '*',
};

export const MUTATING_WEBHOOK_CONFIGURATION: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/mutatingwebhookconfigurations',
  ...TRAITS,
  defaults: { ...DEFAULTS, 'webhooks[].reinvocationPolicy': 'Never' },
};

export const VALIDATING_WEBHOOK_CONFIGURATION: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/validatingwebhookconfigurations',
  ...TRAITS,
  defaults: DEFAULTS,
};

const SIDE_EFFECTS = ['None', 'NoneOnDryRun'];
const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const REVIEW_VERSIONS = ['v1', 'v1beta1'];

function validate(configuration: CheckedObject, previous: StoredObject | undefined): void {
  validateStaticName(configuration, previous);
  const names = new Set<string>();
  for (const webhook of configuration.items('webhooks')) {
    validateName(webhook);
    for (const rule of webhook.items('rules')) validateRule(rule);
    webhook.requireOneOf('failurePolicy', ['Fail', 'Ignore']);
    webhook.requireOneOf('matchPolicy', ['Equivalent', 'Exact']);
    webhook.requireOneOf('sideEffects', SIDE_EFFECTS);
    const timeout = webhook.number('timeoutSeconds') ?? 10;
    if (timeout < 1 || timeout > 30) {
      webhook.invalid('timeoutSeconds', 'the timeout value must be between 1 and 30 seconds');
    }
    webhook.requireOneOf('reinvocationPolicy', ['IfNeeded', 'Never']);
    validateWebhookClient(webhook.in('clientConfig'));
    validateVersions(webhook);
    webhook.requireUnique('name', names);
  }
}

/** A name has at least three labels: `pods.example.com`. A missing name is reported by the schema. */
function validateName(webhook: CheckedObject): void {
  const name = webhook.text('name');
  if (name === '') return;
  const problems = nameProblems(name, 'dns1123Subdomain');
  webhook.problems('name', problems);
  if (problems.length === 0 && name.split('.').length < 3) {
    webhook.invalid('name', 'should be a domain with at least three segments separated by dots');
  }
}

function validateRule(rule: CheckedObject): void {
  const operations = rule.list('operations');
  if (operations.length === 0) rule.required('operations');
  if (operations.length > 1 && operations.includes('*')) {
    rule.invalid('operations', "if '*' is present, must not specify other operations");
  }
  rule.requireEachOf('operations', OPERATIONS);
  validateRuleGroups(rule);
  rule.requireOneOf('scope', ['*', 'Cluster', 'Namespaced']);
}

/** Validates groups, versions and resources of a rule; a wildcard stands alone. */
export function validateRuleGroups(rule: CheckedObject): void {
  const words = { apiGroups: 'API groups', apiVersions: 'API versions' };
  for (const [field, word] of Object.entries(words)) {
    const list = rule.list(field);
    if (list.length === 0) rule.required(field);
    else if (list.length > 1 && list.includes('*')) {
      rule.invalid(field, `if '*' is present, must not specify other ${word}`);
    }
  }
  for (const [index, version] of rule.list('apiVersions').entries()) {
    if (version === '') rule.required(`apiVersions[${index}]`);
  }
  if (rule.list('resources').length === 0) rule.required('resources');
}

/** Validates the `clientConfig` of a webhook without its `caBundle`. */
export function validateWebhookClient(client: CheckedObject): void {
  const service = client.get('service');
  if (client.has('url') === (service !== undefined)) {
    client.required('', 'exactly one of url or service is required');
    return;
  }
  if (service) {
    // Upstream mistakes the one for the other.
    if (service.text('namespace') === '') service.required('name');
    if (service.text('name') === '') service.required('namespace');
    validateServicePath(service);
    return;
  }
  const url = client.text('url');
  if (!/^https:\/\/[^/]/.test(url)) {
    const detail = `'https' is the only allowed URL scheme; desired format: https://host[/path]`;
    const [, scheme = ''] = /^([a-z][a-z\d+.-]*):/i.exec(url) ?? [];
    client.invalid('url', detail, scheme.toLowerCase());
  }
}

function validateVersions(webhook: CheckedObject): void {
  const field = 'admissionReviewVersions';
  const versions = webhook.list(field);
  // A missing list is reported by the schema.
  if (!webhook.has(field)) return;
  if (versions.length === 0) {
    webhook.required(field, `must specify one of ${REVIEW_VERSIONS.join(', ')}`);
  } else if (!REVIEW_VERSIONS.some((version) => versions.includes(version))) {
    webhook.invalid(field, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`);
  }
}

/** Each segment of a path is a DNS name. */
function validateServicePath(service: CheckedObject): void {
  const path = service.text('path');
  if (path === '' || path === '/') return;
  if (!path.startsWith('/')) service.invalid('path', "must start with a '/'");
  for (const [index, segment] of path.slice(1).replace(/\/$/, '').split('/').entries()) {
    if (segment === '') service.invalid('path', `segment[${index}] may not be empty`);
    else {
      const problems = nameProblems(segment, 'dns1123Subdomain');
      service.problems(
        'path',
        problems.map((problem) => `segment[${index}]: ${problem}`),
      );
    }
  }
}

/** Resources that no webhook is called for. */
const EXCLUDED: ReadonlySet<string> = new Set([
  'selfsubjectreviews.authentication.k8s.io',
  'tokenreviews.authentication.k8s.io',
  'localsubjectaccessreviews.authorization.k8s.io',
  'selfsubjectaccessreviews.authorization.k8s.io',
  'selfsubjectrulesreviews.authorization.k8s.io',
  'subjectaccessreviews.authorization.k8s.io',
]);

function webhookWarnings(
  configurations: CheckedObject<StoredObject>,
  previous?: StoredObject,
): string[] {
  const rules = configurations.items('webhooks').flatMap((hook) => hook.items('rules'));
  const ofRules = rules.flatMap((rule) => {
    const [groups, resources] = [rule.list('apiGroups'), rule.list('resources')];
    if (groups.includes('*') || resources.includes('*')) return [];
    const named = groups.flatMap((group) =>
      resources.map((resource) => `${String(resource)}.${String(group)}`),
    );
    return [...new Set(named)]
      .filter((name) => EXCLUDED.has(name))
      .map(
        (name) =>
          `${rule.path}: ${name} is excluded from admission webhooks; this rule will have no effect`,
      );
  });
  return [...staticNameWarnings(configurations, previous), ...ofRules];
}
