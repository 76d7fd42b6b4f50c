import type {
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceConversion,
  MutatingWebhook,
  MutatingWebhookConfiguration,
  PolicyRule,
  Role,
  RoleBinding,
  RuleWithOperations,
  Service,
  ValidatingWebhook,
  ValidatingWebhookConfiguration,
} from '../api/builtin.ts';
import type { LabelSelector } from '../api/label-selector.ts';
import type { Draft } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import { caBundleRules } from './ca-bundle.ts';
import type { CaBundleTargets } from './ca-bundle.ts';
import { certificateRules } from './certificates.ts';
import { CONVERSION_PATH } from './declaration.ts';
import type { AdmissionEntry, MatchCondition, WebhookEntries } from './declaration.ts';

/** The names of what a program with webhooks is installed with. */
export interface WebhookNames {
  /** Name of the program and of its ServiceAccount. */
  readonly program: string;
  /** Namespace of the program. */
  readonly namespace: string;
  /** Namespaces whose objects are reviewed; empty or absent: all. */
  readonly namespaces?: readonly string[];
  /** Name of the webhook configurations, which are cluster-scoped. */
  readonly configuration: string;
  /** Name of the Service of the webhook server. */
  readonly service: string;
  /** Host name of the webhook server, for its certificate. */
  readonly dnsName: string;
  /** Name of the Secret with the certificates that the replicas share. */
  readonly secret: string;
}

/** Returns the names for a program: `backup-operator` has the Service `backup-operator-webhook`. */
export function webhookNames(
  program: string,
  namespace: string,
  namespaces: readonly string[] = [],
): WebhookNames {
  const service = `${program}-webhook`;
  return {
    program,
    namespace,
    namespaces,
    configuration: program,
    service,
    dnsName: `${service}.${namespace}.svc`,
    secret: `${service}-certificate`,
  };
}

/** Name of the container port of the webhook server in the Deployment. */
export const WEBHOOK_PORT_NAME = 'webhook';
/** Number of this port, by default. */
export const WEBHOOK_PORT = 9443;

const SERVICE_PORT = 443;
const ADMISSION = 'admissionregistration.k8s.io/v1';

/** Label of each namespace with its name. */
export const NAMESPACE_LABEL = 'kubernetes.io/metadata.name';

/** Returns the webhook configurations of the declared functions; none for a type without functions. */
export function webhookConfigurations(
  { admission }: Pick<WebhookEntries, 'admission'>,
  names: WebhookNames,
): readonly [
  mutating: Draft<MutatingWebhookConfiguration> | undefined,
  validating: Draft<ValidatingWebhookConfiguration> | undefined,
] {
  const metadata = { name: names.configuration, labels: labelsOf(names) };
  const ofType = (type: AdmissionEntry['type']) =>
    admission.filter((entry) => entry.type === type).map((entry) => webhookOf(entry, names));
  const mutating = ofType('mutating').map((webhook): MutatingWebhook =>
    // A function can depend on a default that another webhook sets.
    Object.assign(webhook, { reinvocationPolicy: 'IfNeeded' as const }),
  );
  const validating = ofType('validating');
  return [
    mutating.length === 0
      ? undefined
      : {
          apiVersion: ADMISSION,
          kind: 'MutatingWebhookConfiguration',
          metadata,
          webhooks: mutating,
        },
    validating.length === 0
      ? undefined
      : {
          apiVersion: ADMISSION,
          kind: 'ValidatingWebhookConfiguration',
          metadata,
          webhooks: validating,
        },
  ];
}

function webhookOf(
  { path, resource, options, type }: AdmissionEntry,
  names: WebhookNames,
): ValidatingWebhook & MutatingWebhook {
  const { name, failurePolicy, timeoutSeconds, sideEffects } = options;
  const prefix = name === undefined ? [] : [name];
  const conditions = [...conditionsOf(options), ...options.matchConditions];
  const namespaceSelector = namespacesOf(resource, options.namespaceSelector, names);
  return {
    name: [...prefix, type, resource.version, groupResourceOf(resource)].join('.'),
    clientConfig: {
      service: { name: names.service, namespace: names.namespace, path, port: SERVICE_PORT },
    },
    rules: [matchRuleOf({ resource, options })],
    matchPolicy: 'Equivalent',
    failurePolicy,
    timeoutSeconds,
    sideEffects,
    admissionReviewVersions: ['v1'],
    ...(conditions.length > 0 && { matchConditions: conditions }),
    ...(namespaceSelector && { namespaceSelector }),
    ...(options.objectSelector && { objectSelector: options.objectSelector }),
  };
}

/** Returns the rule that selects the requests. */
export function matchRuleOf({
  resource: { group, version, plural, namespaced },
  options: { operations, subresources },
}: Pick<AdmissionEntry, 'resource' | 'options'>): RuleWithOperations {
  return {
    apiGroups: [group],
    apiVersions: [version],
    resources: subresources.map((each) => (each === '' ? plural : `${plural}/${each}`)),
    operations: [...operations],
    scope: namespaced ? 'Namespaced' : 'Cluster',
  };
}

/**
 * With this condition, finalizers can be removed also while the webhook is not available. It reads the stored object: the
 * API server sets the timestamp of an update that omits it only after the mutating webhooks.
 */
export function conditionsOf({
  whileDeleting,
  operations,
}: AdmissionEntry['options']): MatchCondition[] {
  if (whileDeleting || !operations.includes('UPDATE')) return [];
  const expression = "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)";
  return [{ name: 'not-being-deleted', expression }];
}

/**
 * A webhook for a built-in kind is not called for objects in the namespace of the program and in `kube-system`. Otherwise
 * the program, its Leases and its Secrets, and the components that it needs, could not be created while it does not run.
 */
function namespacesOf(
  resource: Resource,
  selector: LabelSelector | undefined,
  { namespace, namespaces = [] }: WebhookNames,
): LabelSelector | undefined {
  const key = NAMESPACE_LABEL;
  const own = [...new Set([namespace, 'kube-system'])];
  const expressions = [
    ...(namespaces.length > 0 ? [{ key, operator: 'In', values: namespaces } as const] : []),
    ...(isBuiltin(resource) ? [{ key, operator: 'NotIn', values: own } as const] : []),
  ];
  if (expressions.length === 0) return selector;
  const { matchExpressions = [] } = selector ?? {};
  return { ...selector, matchExpressions: [...matchExpressions, ...expressions] };
}

/** Whether the kind is one of Kubernetes' own. Groups with other names are those of custom resources. */
export function isBuiltin({ group }: Pick<Resource, 'group'>): boolean {
  return !group.includes('.') || group.endsWith('.k8s.io');
}

function labelsOf({ program }: WebhookNames): Record<string, string> {
  return { 'app.kubernetes.io/name': program, 'app.kubernetes.io/component': 'webhook' };
}

/** Returns `spec.conversion` of a CRD; undefined if its objects are not converted by the program. */
export function conversionOf(
  { conversions }: Pick<WebhookEntries, 'conversions'>,
  crd: string,
  { service: name, namespace }: WebhookNames,
): CustomResourceConversion | undefined {
  if (!conversions.some(({ hub }) => groupResourceOf(hub) === crd)) return undefined;
  const service = { name, namespace, path: CONVERSION_PATH, port: SERVICE_PORT };
  return {
    strategy: 'Webhook',
    webhook: { clientConfig: { service }, conversionReviewVersions: ['v1'] },
  };
}

/** Returns the Service of the webhook server. */
export function webhookService(names: WebhookNames): Draft<Service> {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: names.service, namespace: names.namespace, labels: labelsOf(names) },
    spec: {
      selector: { 'app.kubernetes.io/name': names.program },
      ports: [{ name: 'https', port: SERVICE_PORT, targetPort: WEBHOOK_PORT_NAME }],
    },
  };
}

/** Permissions of a program with webhooks, in addition to those of its controllers. */
export interface WebhookRules {
  /** In the namespace of the program. */
  readonly namespace: readonly PolicyRule[];
  readonly cluster: readonly PolicyRule[];
}

/** Returns the roles with the rules, and their bindings to the ServiceAccount of the program. */
export function webhookRoles(
  rules: WebhookRules,
  names: WebhookNames,
): readonly (Draft<Role> | Draft<RoleBinding> | Draft<ClusterRole> | Draft<ClusterRoleBinding>)[] {
  const { program, namespace, service: name } = names;
  const rbac = 'rbac.authorization.k8s.io';
  const apiVersion = `${rbac}/v1`;
  const labels = labelsOf(names);
  const subjects = [{ kind: 'ServiceAccount', name: program, namespace }];
  return [
    {
      apiVersion,
      kind: 'Role',
      metadata: { name, namespace, labels },
      rules: [...rules.namespace],
    },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata: { name, namespace, labels },
      roleRef: { apiGroup: rbac, kind: 'Role', name },
      subjects,
    },
    { apiVersion, kind: 'ClusterRole', metadata: { name, labels }, rules: [...rules.cluster] },
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name, labels },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name },
      subjects,
    },
  ];
}

/**
 * Returns the permissions of a program that manages its certificate: the Secret, and the CA bundles of exactly the
 * objects in its manifests.
 */
export function webhookRules(entries: WebhookEntries, names: WebhookNames): WebhookRules {
  return {
    namespace: certificateRules(names.secret),
    cluster: caBundleRules(caBundleTargets(entries, names)),
  };
}

/** Returns the objects with CA bundles. */
export function caBundleTargets(
  { admission, conversions }: WebhookEntries,
  { configuration }: WebhookNames,
): CaBundleTargets {
  const named = (type: AdmissionEntry['type']) =>
    admission.some((entry) => entry.type === type) ? [configuration] : [];
  return {
    mutatingWebhookConfigurations: named('mutating'),
    validatingWebhookConfigurations: named('validating'),
    customResourceDefinitions: conversions.map(({ hub }) => groupResourceOf(hub)),
  };
}
