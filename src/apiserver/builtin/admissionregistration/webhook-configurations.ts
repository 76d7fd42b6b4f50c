import { goUrlProblem } from '../../../util/go-url.ts';
import { objectsIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { nameProblems } from '../../../api/object-names.ts';
import { PolicyEnvironment } from '../../../cel/policy-environment.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { columns, count } from '../../table/column.ts';
import { staticNameWarnings, validateStaticName } from './static-names.ts';
import { validateLabelSelector } from '../shared/label-selector-validation.ts';
import { validateMatchConditions, validateRule } from './match-validation.ts';
import type { BuiltinKind, KindTraits } from '../shared/builtin-kind.ts';
import { requireQualifiedName } from '../shared/domain-names.ts';

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
  revalidatesName: 'object',
  ...TRAITS,
  defaults: { ...DEFAULTS, 'webhooks[].reinvocationPolicy': 'Never' },
};

export const VALIDATING_WEBHOOK_CONFIGURATION: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/validatingwebhookconfigurations',
  revalidatesName: 'object',
  ...TRAITS,
  defaults: DEFAULTS,
};

const SIDE_EFFECTS = ['None', 'NoneOnDryRun'];
const REVIEW_VERSIONS = ['v1', 'v1beta1'];

function validate(configuration: CheckedObject, previous: StoredObject | undefined): void {
  validateStaticName(configuration, previous);
  const names = new Set<string>();
  for (const webhook of configuration.items('webhooks')) {
    requireQualifiedName(webhook, 'name');
    for (const rule of webhook.items('rules')) validateRule(rule);
    webhook.requireSupported('failurePolicy', ['Fail', 'Ignore']);
    webhook.requireSupported('matchPolicy', ['Equivalent', 'Exact']);
    webhook.requireSupported('sideEffects', SIDE_EFFECTS);
    if (!webhook.has('sideEffects')) {
      webhook.required('sideEffects', `must specify one of ${SIDE_EFFECTS.join(', ')}`);
    }
    const timeout = webhook.number('timeoutSeconds') ?? 10;
    if (timeout < 1 || timeout > 30) {
      webhook.invalid('timeoutSeconds', 'the timeout value must be between 1 and 30 seconds');
    }
    webhook.requireSupported('reinvocationPolicy', ['IfNeeded', 'Never']);
    validateLabelSelector(webhook.get('namespaceSelector'));
    validateLabelSelector(webhook.get('objectSelector'));
    validateWebhookClient(webhook.in('clientConfig'));
    validateVersions(webhook);
    webhook.requireUnique('name', names);
    const conditions = webhook.list('matchConditions');
    const former = objectsIn(previous, 'webhooks').find(
      (each) => each['name'] === webhook.value['name'],
    );
    if (conditions.length > 0 && !equalJson(conditions, former?.['matchConditions'])) {
      validateMatchConditions(webhook, new PolicyEnvironment(false));
    }
  }
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
    const port = service.number('port') ?? 443;
    if (port < 1 || port > 65_535) {
      service.invalid('port', 'port is not valid: must be between 1 and 65535, inclusive', port);
    }
    validateServicePath(service);
    return;
  }
  validateUrl(client, client.text('url'));
}

/** The parts of a URL as Go finds them. */
const URL_PARTS =
  /^(?:([a-z][a-z\d+.-]*):)?(?:\/\/(?:([^/?#@]*)@)?([^/?#]*))?[^?#]*(?:\?([^#]*))?(?:#(.*))?$/is;

function validateUrl(client: CheckedObject, url: string): void {
  const [, scheme = '', user, host = '', query = '', fragment = ''] = URL_PARTS.exec(url) ?? [];
  const form = '; desired format: https://host[/path]';
  const problem = goUrlProblem(url);
  if (problem !== undefined) {
    client.required('url', `url must be a valid URL: ${problem}${form}`);
    return;
  }
  if (scheme.toLowerCase() !== 'https') {
    const why = `'https' is the only allowed URL scheme${form}`;
    client.invalid('url', why, scheme.toLowerCase());
  }
  if (host === '') client.invalid('url', `host must be specified${form}`, '');
  if (user !== undefined) {
    client.invalid('url', 'user information is not permitted in the URL', user);
  }
  if (fragment !== '') client.invalid('url', 'fragments are not permitted in the URL', fragment);
  if (query !== '') client.invalid('url', 'query parameters are not permitted in the URL', query);
}

function validateVersions(webhook: CheckedObject): void {
  const field = 'admissionReviewVersions';
  const versions = webhook.list(field);
  for (const [index, version] of versions.map(String).entries()) {
    if (versions.indexOf(version) < index) {
      webhook.invalid(`${field}[${index}]`, 'duplicate version', version);
    } else webhook.problems(`${field}[${index}]`, nameProblems(version, 'dns1035Label'), version);
  }
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
