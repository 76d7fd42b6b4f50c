import type {
  CustomResourceDefinition,
  Event as MutableEvent,
  Lease,
  Namespace,
  Node as MutableNode,
  Scale,
  Service as MutableService,
} from '../../api/builtin.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import type { TableColumn } from '../resource-definition.ts';
import {
  AGE_COLUMN,
  CREATED_AT_COLUMN,
  DEFAULT_COLUMNS,
  NAME_COLUMN,
  ageOf,
  columnsFor,
} from './column.ts';

interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

interface Secret extends KubernetesObject {
  type?: string;
  data?: Record<string, string>;
}

interface PriorityClass extends KubernetesObject {
  value?: number;
  globalDefault?: boolean;
  preemptionPolicy?: string;
}

interface PodDisruptionBudget extends KubernetesObject {
  spec?: { minAvailable?: number | string; maxUnavailable?: number | string };
  status?: { disruptionsAllowed?: number };
}

interface Binding extends KubernetesObject {
  roleRef?: { kind?: string; name?: string };
  subjects?: { kind?: string; name?: string; namespace?: string }[];
}

type Event = DeepReadonly<MutableEvent>;
type Node = DeepReadonly<MutableNode>;
type Service = DeepReadonly<MutableService>;
type ServicePort = NonNullable<NonNullable<Service['spec']>['ports']>[number];

const namespace = columnsFor<Namespace>();
const configMap = columnsFor<ConfigMap>();
const secret = columnsFor<Secret>();
const lease = columnsFor<Lease>();
const scale = columnsFor<Scale>();
const priorityClass = columnsFor<PriorityClass>();
const budget = columnsFor<PodDisruptionBudget>();
const crd = columnsFor<CustomResourceDefinition>();
const binding = columnsFor<Binding>();
const node = columnsFor<MutableNode>();
const event = columnsFor<MutableEvent>();
const service = columnsFor<MutableService>();

export const NAMESPACE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  namespace.column('Status', 'Active or Terminating.', ({ status }) => status?.phase ?? ''),
  AGE_COLUMN,
];

export const CONFIG_MAP_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  configMap.column(
    'Data',
    'Number of entries.',
    ({ data = {}, binaryData = {} }) => Object.keys(data).length + Object.keys(binaryData).length,
  ),
  AGE_COLUMN,
];

export const SECRET_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  secret.column('Type', 'Type of the secret data.', ({ type = '' }) => type),
  secret.column('Data', 'Number of entries.', ({ data = {} }) => Object.keys(data).length),
  AGE_COLUMN,
];

export const LEASE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  lease.column('Holder', 'Identity of the holder.', ({ spec }) => spec?.holderIdentity ?? ''),
  AGE_COLUMN,
];

export const SCALE_COLUMNS: readonly TableColumn[] = [
  scale.column('Name', 'Name of the scaled object.', ({ metadata }) => metadata.name),
  scale.integer('Desired', 'Number of desired replicas.', ({ spec }) => spec?.replicas ?? 0),
  scale.integer('Available', 'Number of existing replicas.', ({ status }) => status?.replicas ?? 0),
  AGE_COLUMN,
];

export const PRIORITY_CLASS_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  priorityClass.integer('Value', 'Priority of the Pods of this class.', ({ value = 0 }) => value),
  priorityClass.column(
    'Global-Default',
    'Whether Pods without a class get this one.',
    ({ globalDefault = false }) => globalDefault,
    { type: 'boolean' },
  ),
  AGE_COLUMN,
  priorityClass.column(
    'PreemptionPolicy',
    'Whether Pods of this class preempt Pods of lower priority.',
    ({ preemptionPolicy = '' }) => preemptionPolicy,
  ),
];

export const DISRUPTION_BUDGET_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  budget.column('Min Available', 'Pods that must stay available.', ({ spec }) =>
    String(spec?.minAvailable ?? 'N/A'),
  ),
  budget.column('Max Unavailable', 'Pods that may be unavailable.', ({ spec }) =>
    String(spec?.maxUnavailable ?? 'N/A'),
  ),
  budget.integer(
    'Allowed Disruptions',
    'Pods that may be evicted now.',
    ({ status }) => status?.disruptionsAllowed ?? 0,
  ),
  AGE_COLUMN,
];

/** The apiextensions server prints CustomResourceDefinitions with a date instead of an age. */
/** Roles have a date instead of an age. */
export const ROLE_COLUMNS = DEFAULT_COLUMNS;

export const CRD_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  crd.column('Scope', 'Cluster or Namespaced.', ({ spec }) => spec.scope),
  crd.column('Versions', 'Served versions.', ({ spec }) =>
    spec.versions
      .filter(({ served }) => served)
      .map(({ name, storage }) => (storage ? `${name}(storage)` : name))
      .sort()
      .join(),
  ),
  CREATED_AT_COLUMN,
  crd.wide('Group', 'API group.', ({ spec }) => spec.group),
  crd.wide('Kind', 'Kind of the objects.', ({ spec }) => spec.names.kind),
  crd.wide('ShortNames', 'Short names.', ({ spec }) => (spec.names.shortNames ?? []).join()),
  crd.wide(
    'Established',
    'Whether the objects are served.',
    ({ status }) =>
      status?.conditions?.some(
        ({ type, status: value }) => type === 'Established' && value === 'True',
      ) ?? false,
    { type: 'boolean' },
  ),
];

export const BINDING_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  binding.column(
    'Role',
    'Role that the subjects are bound to.',
    ({ roleRef }) => `${roleRef?.kind ?? ''}/${roleRef?.name ?? ''}`,
  ),
  AGE_COLUMN,
  subjectsColumn('Users', 'User'),
  subjectsColumn('Groups', 'Group'),
  subjectsColumn('ServiceAccounts', 'ServiceAccount'),
];

function subjectsColumn(title: string, kind: string): TableColumn {
  return binding.wide(title, `Subjects of kind ${kind}.`, ({ subjects = [] }) =>
    subjects
      .filter((subject) => subject.kind === kind)
      .map(({ namespace: at = '', name = '' }) =>
        kind === 'ServiceAccount' ? `${at}/${name}` : name,
      )
      .join(', '),
  );
}

export const NODE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  node.column('Status', 'Whether the node is ready and schedulable.', nodeStatus),
  node.column('Roles', 'Roles of the node.', (object) => nodeRoles(object) || '<none>'),
  AGE_COLUMN,
  node.column(
    'Version',
    'Version of the kubelet.',
    ({ status }) => status?.nodeInfo?.kubeletVersion ?? '',
  ),
  node.wide('Internal-IP', 'Address inside the cluster.', nodeAddress('InternalIP')),
  node.wide('External-IP', 'Address outside the cluster.', nodeAddress('ExternalIP')),
  node.wide(
    'OS-Image',
    'Operating system.',
    ({ status }) => status?.nodeInfo?.osImage || '<unknown>',
  ),
  node.wide('Kernel-Version', 'Version of the kernel.', ({ status }) => {
    const { kernelVersion, architecture } = status?.nodeInfo ?? {};
    const version = kernelVersion || '<unknown>';
    return architecture ? `${version} (${architecture})` : version;
  }),
  node.wide(
    'Container-Runtime',
    'Container runtime and its version.',
    ({ status }) => status?.nodeInfo?.containerRuntimeVersion || '<unknown>',
  ),
];

function nodeStatus({ spec, status }: Node): string {
  const ready = status?.conditions?.findLast(({ type }) => type === 'Ready');
  const word = !ready ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return spec?.unschedulable ? `${word},SchedulingDisabled` : word;
}

function nodeRoles({ metadata }: Node): string {
  const prefix = 'node-role.kubernetes.io/';
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    if (key.startsWith(prefix)) roles.add(key.slice(prefix.length));
    else if (key === 'kubernetes.io/role') roles.add(value);
  }
  roles.delete('');
  return [...roles].sort().join(',');
}

function nodeAddress(type: string): (object: Node) => string {
  return ({ status }) =>
    status?.addresses?.find((address) => address.type === type)?.address ?? '<none>';
}

export const EVENT_COLUMNS: readonly TableColumn[] = [
  event.column('Last Seen', 'Time since the last occurrence.', lastSeen),
  event.column('Type', 'Normal or Warning.', ({ type = '' }) => type),
  event.column('Reason', 'Reason of the event, one word.', ({ reason = '' }) => reason),
  event.column('Object', 'Kind and name of the involved object.', involvedObject),
  event.wide(
    'Subobject',
    'Field path of the involved part of the object.',
    ({ involvedObject: { fieldPath = '' } }) => fieldPath,
  ),
  event.wide('Source', 'Component that reported the event.', eventSource),
  event.column('Message', 'Description of the event.', ({ message }) => (message ?? '').trim()),
  event.wide('First Seen', 'Time since the first occurrence.', firstSeen),
  event.wide('Count', 'Number of occurrences.', ({ series, count }) =>
    series ? (series.count ?? 0) : count || 1,
  ),
  event.wide('Name', 'Name of the event.', ({ metadata }) => metadata.name, { format: 'name' }),
];

function firstSeen({ firstTimestamp, eventTime }: Event, nowMs: number): string {
  return ageOf(firstTimestamp || eventTime, nowMs);
}

function lastSeen(object: Event, nowMs: number): string {
  const { series, lastTimestamp } = object;
  if (series) return ageOf(series.lastObservedTime, nowMs);
  return lastTimestamp ? ageOf(lastTimestamp, nowMs) : firstSeen(object, nowMs);
}

function involvedObject({ involvedObject: { kind = '', name } }: Event): string {
  return name ? `${kind.toLowerCase()}/${name}` : kind.toLowerCase();
}

function eventSource({ source, reportingComponent, reportingInstance }: Event): string {
  const component = source?.component || reportingComponent || '';
  const instance = source?.host || reportingInstance || '';
  return instance ? `${component}, ${instance}` : component;
}

export const SERVICE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  service.column('Type', 'Type of the service.', ({ spec }) => spec?.type ?? ''),
  service.column(
    'Cluster-IP',
    'Address inside the cluster.',
    ({ spec }) => spec?.clusterIPs?.[0] ?? '<none>',
  ),
  service.column('External-IP', 'Addresses outside the cluster.', externalAddress),
  service.column(
    'Port(s)',
    'Ports, each with its node port if it has one.',
    ({ spec }) => (spec?.ports ?? []).map(portText).join(',') || '<none>',
  ),
  AGE_COLUMN,
  service.wide('Selector', 'Labels of the Pods that the service selects.', ({ spec }) => {
    const pairs = Object.entries(spec?.selector ?? {}).map(([key, value]) => `${key}=${value}`);
    return pairs.sort().join(',') || '<none>';
  }),
];

function externalAddress({ spec, status }: Service): string {
  const external = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case 'ClusterIP':
    case 'NodePort':
      return external.join(',') || '<none>';
    case 'LoadBalancer': {
      const assigned = (status?.loadBalancer?.ingress ?? [])
        .map(({ ip, hostname }) => ip || hostname || '')
        .filter((address) => address !== '');
      return [...[...new Set(assigned)].sort(), ...external].join(',') || '<pending>';
    }
    case 'ExternalName':
      return spec.externalName ?? '';
    default:
      return '<unknown>';
  }
}

function portText({ port, nodePort, protocol = 'TCP' }: ServicePort): string {
  return nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
}
