import type {
  PersistentVolumeClaim,
  Pod,
  ResourceClaim,
  ResourceQuota,
  Service,
} from './builtin.ts';
import type { DeepReadonly, KubernetesObject } from './object.ts';
import type { ResourceList } from './resource-list.ts';
import { addLists, isPodLevel, maxOf, podResources } from './resource-list.ts';
import { groupResourceOf } from './resource.ts';
import type { Resource } from './resource.ts';
import { isFinished } from './workloads.ts';

type GroupResource = Pick<Resource, 'group' | 'plural'>;

/** A scope of a quota. */
export type QuotaScope = NonNullable<
  NonNullable<NonNullable<DeepReadonly<ResourceQuota>['spec']>['scopeSelector']>['matchExpressions']
>[number];

/** Measures what the objects of one resource use of quotas. */
export interface QuotaEvaluator {
  /** Whether the resource uses the quantity of this name. */
  tracks(name: string): boolean;
  /** Returns what one object uses. */
  usage(object: DeepReadonly<KubernetesObject>, nowMs: number): ResourceList;
  /** Whether the object is within a scope. */
  isWithin(object: DeepReadonly<KubernetesObject>, scope: QuotaScope): boolean;
}

/** Names of quantities that count objects, besides `count/RESOURCE.GROUP`. */
const ALIASES = ['configmaps', 'resourcequotas', 'replicationcontrollers', 'secrets'];

const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'];
const OF_PODS = new Set([
  'count/pods',
  'pods',
  ...COMPUTE.flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
]);
const OF_SERVICES = new Set([
  'count/services',
  'services',
  'services.nodeports',
  'services.loadbalancers',
]);
const CLASS_SUFFIX = '.storageclass.storage.k8s.io/';
const RESOURCE_CLAIMS_COUNT = 'count/resourceclaims.resource.k8s.io';
const DEVICES_SUFFIX = '.deviceclass.resource.k8s.io/devices';

/** Maximum number of devices that a claim for all devices of a class gets. */
const ALL_DEVICES = 32;

const PODS: QuotaEvaluator = {
  tracks: (name) =>
    OF_PODS.has(name) ||
    /^(requests\.)?hugepages-/.test(name) ||
    (name.startsWith('requests.') && isExtended(name)),
  usage: (object, nowMs) => podUsage(object, nowMs),
  isWithin: (object, scope) => isPodWithin(object, scope),
};

const SERVICES: QuotaEvaluator = {
  tracks: (name) => OF_SERVICES.has(name),
  usage: (object) => serviceUsage(object),
  isWithin: () => false,
};

const CLAIMS: QuotaEvaluator = {
  tracks: (name) =>
    name === 'count/persistentvolumeclaims' ||
    /(^|\.storageclass\.storage\.k8s\.io\/)(persistentvolumeclaims|requests\.storage)$/.test(name),
  usage: (object) => claimUsage(object),
  isWithin: (object, scope) => isClaimWithin(object, scope),
};

const RESOURCE_CLAIMS: QuotaEvaluator = {
  tracks: (name) => name === RESOURCE_CLAIMS_COUNT || name.endsWith(DEVICES_SUFFIX),
  usage: (object) => deviceUsage(object),
  isWithin: () => false,
};

/** Resources of which quotas limit more than the number of objects. */
const MEASURED: ReadonlyMap<string, QuotaEvaluator> = new Map([
  ['pods', PODS],
  ['services', SERVICES],
  ['persistentvolumeclaims', CLAIMS],
  ['resourceclaims.resource.k8s.io', RESOURCE_CLAIMS],
]);

/** Returns the evaluator of a resource; undefined if quotas ignore it. */
export function quotaEvaluator(resource: GroupResource): QuotaEvaluator | undefined {
  const id = groupResourceOf(resource);
  if (resource.plural === 'events') return undefined;
  const measured = MEASURED.get(id);
  if (measured) return measured;
  const names = [`count/${id}`, ...ALIASES.filter((alias) => alias === id)];
  const usage = Object.fromEntries(names.map((name) => [name, '1']));
  return { tracks: (name) => names.includes(name), usage: () => usage, isWithin: () => false };
}

/** Returns the resources that use the quantities of these names. */
export function quotaResources(names: readonly string[]): GroupResource[] {
  const ids = names.flatMap((name) => {
    for (const [id, evaluator] of MEASURED) if (evaluator.tracks(name)) return [id];
    if (ALIASES.includes(name)) return [name];
    return name.startsWith('count/') ? [name.slice('count/'.length)] : [];
  });
  return Array.from(new Set(ids), (id) => {
    const [plural = '', ...group] = id.split('.');
    return { plural, group: group.join('.') };
  });
}

/** Whether an object is within all scopes of a quota. */
export function isWithinScopes(
  evaluator: QuotaEvaluator,
  { spec }: DeepReadonly<ResourceQuota>,
  object: DeepReadonly<KubernetesObject>,
): boolean {
  const scopes: QuotaScope[] = (spec?.scopes ?? []).map((scopeName) => ({
    scopeName,
    operator: 'Exists',
  }));
  return [...scopes, ...(spec?.scopeSelector?.matchExpressions ?? [])].every((scope) =>
    evaluator.isWithin(object, scope),
  );
}

/** Whether the Pod has a deadline, which is the scope Terminating. */
export function hasDeadline({ spec }: DeepReadonly<Pod>): boolean {
  return (spec?.activeDeadlineSeconds ?? -1) >= 0;
}

/** Whether the Pod uses compute resources: it is neither finished nor deleted for longer than its grace period. */
export function usesCompute(pod: DeepReadonly<Pod>, nowMs: number): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  if (isFinished(pod)) return false;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return true;
  return nowMs <= Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000;
}

/**
 * Returns the message for containers that do not specify a quantity that a quota requires, or undefined.
 *
 * @param names quantities that the quota limits
 */
export function missingAmounts(
  { spec }: DeepReadonly<Pod>,
  names: readonly string[],
): string | undefined {
  const { limits = {}, requests = {} } = spec?.resources ?? {};
  if (Object.keys({ ...limits, ...requests }).some(isPodLevel)) return undefined;
  const required = names.filter((name) => /^(requests\.|limits\.)?(cpu|memory)$/.test(name));
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const missing = required.toSorted().flatMap((name) => {
    const without = containers.filter(
      ({ resources }) => !Object.hasOwn(computeUsage(resources?.requests, resources?.limits), name),
    );
    const all = [...new Set(without.map((container) => container.name))].toSorted();
    return all.length > 0 ? [`${name} for: ${all.join(',')}`] : [];
  });
  return missing.length > 0 ? `must specify ${missing.join('; ')}` : undefined;
}

function podUsage(pod: DeepReadonly<Pod>, nowMs: number): ResourceList {
  const count = { 'count/pods': '1' };
  if (!usesCompute(pod, nowMs)) return count;
  const compute = computeUsage(podResources(pod, 'requests'), podResources(pod, 'limits'));
  return { ...count, pods: '1', ...compute };
}

function computeUsage(requests: ResourceList = {}, limits: ResourceList = {}): ResourceList {
  const usage: Record<string, string> = {};
  for (const [name, amount] of Object.entries(requests)) {
    if (COMPUTE.includes(name) || name.startsWith('hugepages-')) {
      usage[name] = amount;
      usage[`requests.${name}`] = amount;
    } else if (isExtended(name)) usage[`requests.${name}`] = amount;
  }
  for (const [name, amount] of Object.entries(limits)) {
    if (COMPUTE.includes(name)) usage[`limits.${name}`] = amount;
  }
  return usage;
}

/** Whether the resource has a domain other than Kubernetes's. */
function isExtended(name: string): boolean {
  return name.includes('/') && !name.includes('kubernetes.io/');
}

function isPodWithin(pod: DeepReadonly<Pod>, { scopeName, operator, values = [] }: QuotaScope) {
  const { priorityClassName = '', affinity } = pod.spec ?? {};
  switch (scopeName) {
    case 'Terminating':
      return hasDeadline(pod);
    case 'NotTerminating':
      return !hasDeadline(pod);
    case 'BestEffort':
      return pod.status?.qosClass === 'BestEffort';
    case 'NotBestEffort':
      return pod.status?.qosClass !== 'BestEffort';
    case 'PriorityClass': {
      const isSet = priorityClassName !== '';
      if (operator === 'Exists') return isSet;
      if (operator === 'DoesNotExist') return !isSet;
      return (isSet && values.includes(priorityClassName)) === (operator === 'In');
    }
    case 'CrossNamespacePodAffinity': {
      const kinds = [affinity?.podAffinity, affinity?.podAntiAffinity];
      const required = kinds.flatMap(
        (each) => each?.requiredDuringSchedulingIgnoredDuringExecution ?? [],
      );
      const preferred = kinds.flatMap(
        (each) => each?.preferredDuringSchedulingIgnoredDuringExecution ?? [],
      );
      const terms = [...required, ...preferred.map(({ podAffinityTerm }) => podAffinityTerm)];
      return terms.some(
        ({ namespaces = [], namespaceSelector }) => namespaces.length > 0 || namespaceSelector,
      );
    }
    default:
      return false;
  }
}

/** Whether a class that the claim has or gets is within the scope. */
function isClaimWithin(
  { spec, status }: DeepReadonly<PersistentVolumeClaim>,
  { scopeName, operator, values = [] }: QuotaScope,
): boolean {
  const names = [
    spec?.volumeAttributesClassName ?? '',
    status?.currentVolumeAttributesClassName ?? '',
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName ?? '',
  ].filter((name) => name !== '');
  if (scopeName !== 'VolumeAttributesClass') return false;
  if (operator === 'Exists') return names.length > 0;
  if (names.length === 0) return operator !== 'In';
  if (operator === 'DoesNotExist') return false;
  return names.some((name) => values.includes(name) === (operator === 'In'));
}

function serviceUsage({ spec }: DeepReadonly<Service>): ResourceList {
  const { type, ports = [], allocateLoadBalancerNodePorts } = spec ?? {};
  const isBalanced = type === 'LoadBalancer';
  // The node ports of a new Service are not allocated yet.
  const nodePorts =
    isBalanced && allocateLoadBalancerNodePorts === false
      ? ports.filter(({ nodePort }) => nodePort)
      : type === 'NodePort' || isBalanced
        ? ports
        : [];
  return {
    'count/services': '1',
    services: '1',
    'services.nodeports': String(nodePorts.length),
    'services.loadbalancers': isBalanced ? '1' : '0',
  };
}

function claimUsage({ metadata, spec }: DeepReadonly<PersistentVolumeClaim>): ResourceList {
  const storage = spec?.resources?.requests?.['storage'];
  const legacy = metadata.annotations?.['volume.beta.kubernetes.io/storage-class'];
  const storageClass = legacy ?? spec?.storageClassName;
  const usage = {
    persistentvolumeclaims: '1',
    ...(storage !== undefined && { 'requests.storage': storage }),
  };
  const ofClass = Object.entries(usage).map(([name, amount]) => [
    `${storageClass}${CLASS_SUFFIX}${name}`,
    amount,
  ]);
  return {
    'count/persistentvolumeclaims': '1',
    ...usage,
    ...(storageClass && (Object.fromEntries(ofClass) as ResourceList)),
  };
}

/** A request with alternatives uses the largest number of devices of each class. */
function deviceUsage({ spec }: DeepReadonly<ResourceClaim>): ResourceList {
  let usage: ResourceList = { [RESOURCE_CLAIMS_COUNT]: '1' };
  for (const { exactly, firstAvailable = [] } of spec?.devices?.requests ?? []) {
    const alternatives = (exactly ? [exactly] : firstAvailable).map(
      ({ deviceClassName, allocationMode, count = 0 }): ResourceList => ({
        [`${deviceClassName}${DEVICES_SUFFIX}`]: String(
          allocationMode === 'All' ? ALL_DEVICES : count,
        ),
      }),
    );
    usage = addLists(usage, alternatives.reduce(maxOf, {}));
  }
  return usage;
}
