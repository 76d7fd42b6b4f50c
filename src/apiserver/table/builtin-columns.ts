import type {
  ConfigMap,
  Event as MutableEvent,
  Node as MutableNode,
  Secret,
} from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { listIn, objectIn, textIn } from '../../util/json-value.ts';
import { textOf } from '../objects/field-path.ts';
import type { KindColumns } from './column.ts';
import {
  AGE_COLUMN,
  NAME_COLUMN,
  WIDE,
  ageOf,
  column,
  columns,
  field,
  flagColumn,
  numeric,
  wide,
} from './column.ts';
import { CONTROL_PLANE_COLUMNS } from './control-plane-columns.ts';
import { NETWORK_COLUMNS } from './network-columns.ts';
import { POD_COLUMNS } from './pod-columns.ts';
import { STORAGE_COLUMNS } from './storage-columns.ts';
import { WORKLOAD_COLUMNS } from './workload-columns.ts';

type Event = DeepReadonly<MutableEvent>;
type Node = DeepReadonly<MutableNode>;

const nodeColumn = column<MutableNode>;
const wideNodeColumn = wide<MutableNode>;
const eventColumn = column<MutableEvent>;
const wideEventColumn = wide<MutableEvent>;

const EVENT_COLUMNS = [
  eventColumn('Last Seen', 'Time since the last occurrence.', lastSeen),
  field('Type', 'type'),
  field('Reason', 'reason'),
  eventColumn('Object', 'Kind and name of the involved object.', involvedObject),
  field('Subobject', 'involvedObject.fieldPath', '', WIDE),
  wideEventColumn('Source', 'Component that reported the event.', eventSource),
  eventColumn('Message', 'Description of the event.', ({ message }) => (message ?? '').trim()),
  wideEventColumn('First Seen', 'Time since the first occurrence.', firstSeen),
  wideEventColumn('Count', 'Number of occurrences.', ({ series, count }) =>
    series ? (series.count ?? 0) : count || 1,
  ),
  wideEventColumn('Name', 'Name of the event.', ({ metadata }) => metadata.name, {
    format: 'name',
  }),
];

/**
 * The columns that kubectl shows of built-in kinds; kinds without an entry have `DEFAULT_COLUMNS`. The names, types
 * and placeholders are those of upstream's printers.
 */
export const BUILTIN_COLUMNS: KindColumns = {
  ...CONTROL_PLANE_COLUMNS,
  ...NETWORK_COLUMNS,
  ...STORAGE_COLUMNS,
  ...WORKLOAD_COLUMNS,

  componentstatuses: [
    NAME_COLUMN,
    column('Status', 'Status of the component.', () => 'Unknown'),
    column('Message', 'Message of the component.', () => ''),
    column('Error', 'Error of the component.', () => ''),
  ],
  configmaps: columns(
    column<ConfigMap>(
      'Data',
      'Number of entries.',
      ({ data = {}, binaryData = {} }) => Object.keys(data).length + Object.keys(binaryData).length,
    ),
  ),
  events: EVENT_COLUMNS,
  namespaces: columns(field('Status', 'status.phase')),
  nodes: [
    NAME_COLUMN,
    nodeColumn('Status', 'Whether the node is ready and schedulable.', nodeStatus),
    nodeColumn('Roles', 'Roles of the node.', (object) => nodeRoles(object) || '<none>'),
    AGE_COLUMN,
    field('Version', 'status.nodeInfo.kubeletVersion'),
    wideNodeColumn('Internal-IP', 'Address inside the cluster.', nodeAddress('InternalIP')),
    wideNodeColumn('External-IP', 'Address outside the cluster.', nodeAddress('ExternalIP')),
    wideNodeColumn(
      'OS-Image',
      'Operating system.',
      ({ status }) => status?.nodeInfo?.osImage || '<unknown>',
    ),
    wideNodeColumn('Kernel-Version', 'Version of the kernel.', ({ status }) => {
      const { kernelVersion, architecture } = status?.nodeInfo ?? {};
      const version = kernelVersion || '<unknown>';
      return architecture ? `${version} (${architecture})` : version;
    }),
    wideNodeColumn(
      'Container-Runtime',
      'Container runtime and its version.',
      ({ status }) => status?.nodeInfo?.containerRuntimeVersion || '<unknown>',
    ),
  ],
  pods: POD_COLUMNS,
  resourcequotas: columns(
    column('Request', 'Used and allowed amounts, without limits.', (quota) =>
      quotaText(quota, (resource) => !resource.startsWith('limits.')),
    ),
    column('Limit', 'Used and allowed limits.', (quota) =>
      quotaText(quota, (resource) => resource.startsWith('limits.')),
    ),
  ),
  secrets: columns(
    field('Type', 'type'),
    column<Secret>('Data', 'Number of entries.', ({ data = {} }) => Object.keys(data).length),
  ),
  serviceaccounts: columns(),

  'coordination.k8s.io/leases': columns(field('Holder', 'spec.holderIdentity')),

  'events.k8s.io/events': EVENT_COLUMNS,

  'node.k8s.io/runtimeclasses': columns(field('Handler', 'handler')),

  'policy/poddisruptionbudgets': columns(
    field('Min Available', 'spec.minAvailable', 'N/A'),
    field('Max Unavailable', 'spec.maxUnavailable', 'N/A'),
    numeric('Allowed Disruptions', 'status.disruptionsAllowed'),
  ),

  'resource.k8s.io/deviceclasses': columns(),
  'resource.k8s.io/devicetaintrules': columns(
    field('Key', 'spec.taint.key'),
    field('Value', 'spec.taint.value'),
    field('Effect', 'spec.taint.effect'),
    column('TimeAdded', 'Time since the taint was added.', (rule, nowMs) => {
      const added = textIn(objectIn(objectIn(rule, 'spec'), 'taint'), 'timeAdded');
      return added === '' ? '' : ageOf(added, nowMs);
    }),
  ),
  'resource.k8s.io/resourceclaims': columns(
    column('State', 'State of the claim.', (claim) => {
      const status = objectIn(claim, 'status');
      const isDeleted = claim.metadata.deletionTimestamp !== undefined;
      const isAllocated = objectIn(status, 'allocation') !== undefined;
      const isReserved = listIn(status, 'reservedFor').length > 0;
      return [
        ...(isDeleted ? ['deleted'] : isAllocated ? [] : ['pending']),
        ...(isAllocated ? ['allocated', ...(isReserved ? ['reserved'] : [])] : []),
      ].join(',');
    }),
  ),
  'resource.k8s.io/resourceclaimtemplates': columns(),
  'resource.k8s.io/resourceslices': columns(
    field('Node', 'spec.nodeName'),
    field('Driver', 'spec.driver'),
    field('Pool', 'spec.pool.name'),
  ),

  'scheduling.k8s.io/priorityclasses': [
    NAME_COLUMN,
    numeric('Value', 'value'),
    flagColumn('Global-Default', 'globalDefault'),
    AGE_COLUMN,
    field('PreemptionPolicy', 'preemptionPolicy'),
  ],
};

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

function quotaText(quota: StoredObject, isShown: (resource: string) => boolean): string {
  const hard = objectIn(objectIn(quota, 'status') ?? {}, 'hard') ?? {};
  const used = objectIn(objectIn(quota, 'status') ?? {}, 'used') ?? {};
  return Object.keys(hard)
    .sort()
    .filter(isShown)
    .map((resource) => `${resource}: ${textOf(used[resource], '0')}/${textOf(hard[resource], '0')}`)
    .join(', ');
}
