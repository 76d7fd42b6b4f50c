import type { Node, Pod } from '../../api/builtin.ts';
import { selects } from '../../api/label-selector.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { amountsOf, requestsOf } from './node-usage.ts';
import type { NodeUsage } from './node-usage.ts';
import { tolerates, untolerated } from './taints.ts';

type PodSpec = NonNullable<DeepReadonly<Pod>['spec']>;
type NodeSelectorTerm = NonNullable<
  NonNullable<NonNullable<PodSpec['affinity']>['nodeAffinity']>
>['requiredDuringSchedulingIgnoredDuringExecution'] extends infer T
  ? NonNullable<T> extends { readonly nodeSelectorTerms: readonly (infer Term)[] }
    ? Term
    : never
  : never;
type PodAffinityTerm = NonNullable<
  NonNullable<
    NonNullable<PodSpec['affinity']>['podAffinity']
  >['requiredDuringSchedulingIgnoredDuringExecution']
>[number];

/** Why a Pod does not fit on a node. */
export interface Misfit {
  /** Reasons of kube-scheduler. */
  readonly reasons: readonly string[];
  /** Whether the Pod could fit if other Pods of the node were gone. */
  readonly isResolvable: boolean;
}

/** What the filters know besides the Pod and the node. */
export interface FilterContext {
  readonly usage: NodeUsage;
  readonly nodes: readonly DeepReadonly<Node>[];
  readonly namespaceLabels: (name: string) => Readonly<Record<string, string>> | undefined;
}

type Filter = (
  pod: DeepReadonly<Pod>,
  node: DeepReadonly<Node>,
  context: FilterContext,
) => Misfit | undefined;

const never = (...reasons: readonly string[]): Misfit => ({ reasons, isResolvable: false });

/** Filters in the order of kube-scheduler, which reports the first that rejects a node. */
const FILTERS: readonly Filter[] = [
  isSchedulable,
  toleratesTaints,
  matchesNode,
  hasPorts,
  hasResources,
  matchesPods,
];

/** Returns why a Pod does not fit on a node, or undefined if it fits. */
export function misfitOf(
  pod: DeepReadonly<Pod>,
  node: DeepReadonly<Node>,
  context: FilterContext,
): Misfit | undefined {
  for (const filter of FILTERS) {
    const misfit = filter(pod, node, context);
    if (misfit) return misfit;
  }
  return undefined;
}

function isSchedulable(pod: DeepReadonly<Pod>, { spec }: DeepReadonly<Node>): Misfit | undefined {
  const taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const;
  const isTolerated = pod.spec?.tolerations?.some((toleration) => tolerates(toleration, taint));
  return spec?.unschedulable && !isTolerated ? never('node(s) were unschedulable') : undefined;
}

function toleratesTaints(pod: DeepReadonly<Pod>, { spec }: DeepReadonly<Node>): Misfit | undefined {
  const effects = ['NoSchedule', 'NoExecute'];
  const taints = untolerated(spec?.taints ?? [], pod.spec?.tolerations ?? [], effects);
  return taints.length > 0 ? never('node(s) had untolerated taint(s)') : undefined;
}

function matchesNode({ spec }: DeepReadonly<Pod>, node: DeepReadonly<Node>): Misfit | undefined {
  return matchesNodeAffinity(spec, node)
    ? undefined
    : never("node(s) didn't match Pod's node affinity/selector");
}

/** Returns whether the node selector and the required node affinity of a Pod match a node. */
export function matchesNodeAffinity(
  spec: PodSpec | undefined,
  { metadata }: DeepReadonly<Node>,
): boolean {
  const labels = metadata.labels ?? {};
  const selector = Object.entries(spec?.nodeSelector ?? {});
  if (!selector.every(([key, value]) => labels[key] === value)) return false;
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return (
    required?.nodeSelectorTerms.some((term) => matchesTerm(term, labels, metadata.name)) ?? true
  );
}

/** An empty term matches nothing. */
function matchesTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  labels: Readonly<Record<string, string>>,
  name: string,
): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((requirement) => matchesRequirement(requirement, labels)) &&
    matchFields.every((requirement) => matchesRequirement(requirement, { 'metadata.name': name }))
  );
}

function matchesRequirement(
  {
    key,
    operator,
    values = [],
  }: { readonly key: string; readonly operator: string; readonly values?: readonly string[] },
  labels: Readonly<Record<string, string>>,
): boolean {
  const value = labels[key];
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return Number.parseInt(value ?? '', 10) > Number(values[0]);
    case 'Lt':
      return Number.parseInt(value ?? '', 10) < Number(values[0]);
    default:
      return false;
  }
}

/** Address of a host port on all addresses of its node. */
const ANY = '0.0.0.0';

interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

function hostPortsOf({ spec }: DeepReadonly<Pod>): readonly HostPort[] {
  return (spec?.containers ?? []).flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort = 0, hostIP = ANY, protocol = 'TCP' }) =>
      hostPort > 0 ? { ip: hostIP, protocol, port: hostPort } : [],
    ),
  );
}

function hasPorts(
  pod: DeepReadonly<Pod>,
  { metadata }: DeepReadonly<Node>,
  { usage }: FilterContext,
): Misfit | undefined {
  const wanted = hostPortsOf(pod);
  if (wanted.length === 0) return undefined;
  const used = new Map<string, Set<string>>();
  for (const pod of usage.podsOn(metadata.name)) {
    for (const { ip, protocol, port } of hostPortsOf(pod)) {
      const key = `${protocol}/${port}`;
      const addresses = used.get(key);
      if (addresses) addresses.add(ip);
      else used.set(key, new Set([ip]));
    }
  }
  const isTaken = wanted.some(({ ip, protocol, port }) => {
    const addresses = used.get(`${protocol}/${port}`);
    return addresses && (ip === ANY || addresses.has(ip) || addresses.has(ANY));
  });
  if (!isTaken) return undefined;
  const reasons = ["node(s) didn't have free ports for the requested pod ports"];
  return { reasons, isResolvable: true };
}

function hasResources(
  pod: DeepReadonly<Pod>,
  { metadata, status }: DeepReadonly<Node>,
  { usage }: FilterContext,
): Misfit | undefined {
  const allocatable = amountsOf(status?.allocatable);
  const requested = usage.requestedOn(metadata.name);
  const reasons: string[] = [];
  let isResolvable = true;
  for (const [name, amount] of requestsOf(pod)) {
    const capacity = allocatable.get(name) ?? 0n;
    if (amount === 0n || amount + (requested.get(name) ?? 0n) <= capacity) continue;
    reasons.push(name === 'pods' ? 'Too many pods' : `Insufficient ${name}`);
    if (amount > capacity && name !== 'pods') isResolvable = false;
  }
  return reasons.length > 0 ? { reasons, isResolvable } : undefined;
}

/** Required affinity and anti-affinity to Pods, and the anti-affinity of Pods that run. */
function matchesPods(
  pod: DeepReadonly<Pod>,
  node: DeepReadonly<Node>,
  context: FilterContext,
): Misfit | undefined {
  const affinity = requiredTerms(pod, 'podAffinity');
  for (const term of affinity) {
    // The first Pod of a group that selects itself would find no node.
    const isFirst =
      selectsPod(term, pod, pod, context) &&
      !context.nodes.some((each) => hasMatch(term, pod, each, context));
    const hasKey = node.metadata.labels?.[term.topologyKey] !== undefined;
    if (hasKey && (isFirst || inDomain(term, pod, node, context))) continue;
    return never("node(s) didn't match pod affinity rules");
  }
  for (const term of requiredTerms(pod, 'podAntiAffinity')) {
    if (!inDomain(term, pod, node, context)) continue;
    return { reasons: ["node(s) didn't match pod anti-affinity rules"], isResolvable: true };
  }
  for (const other of context.nodes) {
    for (const existing of context.usage.podsOn(other.metadata.name)) {
      for (const term of requiredTerms(existing, 'podAntiAffinity')) {
        if (!sameDomain(term, node, other) || !selectsPod(term, existing, pod, context)) continue;
        const reasons = ["node(s) didn't satisfy existing pods anti-affinity rules"];
        return { reasons, isResolvable: true };
      }
    }
  }
  return undefined;
}

function requiredTerms(
  { spec }: DeepReadonly<Pod>,
  kind: 'podAffinity' | 'podAntiAffinity',
): readonly PodAffinityTerm[] {
  return spec?.affinity?.[kind]?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
}

/** Returns whether a node of the same topology domain has a Pod that the term selects. */
function inDomain(
  term: PodAffinityTerm,
  pod: DeepReadonly<Pod>,
  node: DeepReadonly<Node>,
  context: FilterContext,
): boolean {
  return context.nodes.some(
    (other) => sameDomain(term, node, other) && hasMatch(term, pod, other, context),
  );
}

function sameDomain(
  { topologyKey }: PodAffinityTerm,
  { metadata: a }: DeepReadonly<Node>,
  { metadata: b }: DeepReadonly<Node>,
): boolean {
  const domain = a.labels?.[topologyKey];
  return domain !== undefined && domain === b.labels?.[topologyKey];
}

function hasMatch(
  term: PodAffinityTerm,
  pod: DeepReadonly<Pod>,
  { metadata }: DeepReadonly<Node>,
  context: FilterContext,
): boolean {
  for (const other of context.usage.podsOn(metadata.name)) {
    if (other.metadata.deletionTimestamp === undefined && selectsPod(term, pod, other, context)) {
      return true;
    }
  }
  return false;
}

/** @param owner Pod that has the term */
function selectsPod(
  { labelSelector, namespaces = [], namespaceSelector }: PodAffinityTerm,
  owner: DeepReadonly<Pod>,
  pod: DeepReadonly<Pod>,
  { namespaceLabels }: FilterContext,
): boolean {
  const { namespace = '' } = pod.metadata;
  const isInNamespace =
    namespaces.length === 0 && !namespaceSelector
      ? namespace === owner.metadata.namespace
      : namespaces.includes(namespace) || selects(namespaceSelector, namespaceLabels(namespace));
  return isInNamespace && selects(labelSelector, pod.metadata.labels);
}
