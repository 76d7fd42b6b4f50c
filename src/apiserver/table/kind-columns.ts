import { listIn, numberIn, objectIn, objectsIn, textIn } from '../builtin/fields.ts';
import { fieldPath, valueAt } from '../field-path.ts';
import type { StoredObject, TableCell, TableColumn } from '../resource-definition.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { AGE_COLUMN, NAME_COLUMN, ageOf, humanDuration } from './column.ts';
import { SELECTOR_COLUMN, containerColumns, selectorCell } from './workload-columns.ts';

/*
 * The columns that kubectl shows of kinds whose cells are single fields or short texts. The names, types and
 * placeholders are those of upstream's printers.
 */

type Cell = (object: StoredObject, nowMs: number) => TableCell;
type Options = Partial<Pick<TableColumn, 'type' | 'priority' | 'format'>>;

/** A cell with the field at a path, as text; `absent` if it has no value. */
function field(name: string, path: string, absent = '', options: Options = {}): TableColumn {
  const fields = fieldPath(path);
  return computed(name, `Value of ${path}.`, (object) => text(valueAt(object, fields), absent), {
    type: 'string',
    ...options,
  });
}

function numeric(name: string, path: string): TableColumn {
  const fields = fieldPath(path);
  return computed(
    name,
    `Value of ${path}.`,
    (object) => {
      const value = valueAt(object, fields);
      return typeof value === 'number' ? value : 0;
    },
    { type: 'integer' },
  );
}

function flag(name: string, path: string, absent = false): TableColumn {
  const fields = fieldPath(path);
  return computed(
    name,
    `Value of ${path}.`,
    (object) => {
      const value = valueAt(object, fields);
      return typeof value === 'boolean' ? value : absent;
    },
    { type: 'boolean' },
  );
}

function count(name: string, path: string): TableColumn {
  const fields = fieldPath(path);
  return computed(
    name,
    `Number of entries in ${path}.`,
    (object) => {
      const value = valueAt(object, fields);
      return Array.isArray(value) ? value.length : 0;
    },
    { type: 'integer' },
  );
}

function computed(
  name: string,
  description: string,
  value: Cell,
  options: Options = {},
): TableColumn {
  return { name, type: 'string', description, ...options, value };
}

function text(value: unknown, absent: string): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : absent;
}

const spec = (object: StoredObject): JsonObject => objectIn(object, 'spec') ?? {};
const status = (object: StoredObject): JsonObject => objectIn(object, 'status') ?? {};
const texts = (values: readonly unknown[]): string[] =>
  values.filter((value) => typeof value === 'string');

/** The first `max` texts, and the number of the others. */
function limited(
  all: readonly string[],
  { max = 3, separator = ',', absent = '<none>' } = {},
): string {
  if (all.length === 0) return absent;
  const shown = all.slice(0, max).join(separator);
  return all.length > max ? `${shown} + ${all.length - max} more...` : shown;
}

function labelsText(labels: JsonObject | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${String(value)}`);
  return pairs.sort().join(',') || '<none>';
}

/** The type of the last condition with status True that is in `types`. */
function trueCondition(object: StoredObject, types: readonly string[]): string | undefined {
  const isTrue = new Set(
    objectsIn(status(object), 'conditions')
      .filter((condition) => condition['status'] === 'True')
      .map((condition) => textIn(condition, 'type')),
  );
  return types.find((type) => isTrue.has(type));
}

const ACCESS_MODES = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
} as const;

function accessModes(parent: JsonObject): string {
  const modes = listIn(parent, 'accessModes');
  return Object.entries(ACCESS_MODES)
    .flatMap(([mode, short]) => (modes.includes(mode) ? [short] : []))
    .join(',');
}

function volumePhase(object: StoredObject): string {
  return object.metadata.deletionTimestamp ? 'Terminating' : textIn(status(object), 'phase');
}

const storageClass: Cell = (object) =>
  object.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ??
  textIn(spec(object), 'storageClassName');

const VOLUME_MODE = field('VolumeMode', 'spec.volumeMode', '<unset>', { priority: 1 });
const ATTRIBUTES_CLASS = field(
  'VolumeAttributesClass',
  'spec.volumeAttributesClassName',
  '<unset>',
);

export const PERSISTENT_VOLUME_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('Capacity', 'spec.capacity.storage', '0'),
  computed('Access Modes', 'Ways to mount the volume.', (volume) => accessModes(spec(volume))),
  field('Reclaim Policy', 'spec.persistentVolumeReclaimPolicy'),
  computed('Status', 'Phase of the volume.', volumePhase),
  computed('Claim', 'Namespace and name of the claim.', (volume) => {
    const claim = objectIn(spec(volume), 'claimRef');
    return claim ? `${textIn(claim, 'namespace')}/${textIn(claim, 'name')}` : '';
  }),
  computed('StorageClass', 'Name of the StorageClass.', storageClass),
  ATTRIBUTES_CLASS,
  field('Reason', 'status.reason'),
  AGE_COLUMN,
  VOLUME_MODE,
];

export const VOLUME_CLAIM_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Status', 'Phase of the claim.', volumePhase),
  field('Volume', 'spec.volumeName'),
  computed('Capacity', 'Size of the bound volume.', (claim) => {
    if (textIn(spec(claim), 'volumeName') === '') return '';
    return text(valueAt(status(claim), ['capacity', 'storage']), '0');
  }),
  computed('Access Modes', 'Ways to mount the bound volume.', (claim) =>
    textIn(spec(claim), 'volumeName') === '' ? '' : accessModes(status(claim)),
  ),
  computed('StorageClass', 'Name of the StorageClass.', storageClass),
  ATTRIBUTES_CLASS,
  AGE_COLUMN,
  VOLUME_MODE,
];

export const STORAGE_CLASS_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('Provisioner', 'provisioner'),
  field('ReclaimPolicy', 'reclaimPolicy', 'Delete'),
  field('VolumeBindingMode', 'volumeBindingMode', 'Immediate'),
  { ...flag('AllowVolumeExpansion', 'allowVolumeExpansion'), type: 'string' },
  AGE_COLUMN,
];

export const VOLUME_ATTRIBUTES_CLASS_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('DriverName', 'driverName'),
  AGE_COLUMN,
];

export const VOLUME_ATTACHMENT_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('Attacher', 'spec.attacher', '', { format: 'name' }),
  field('PV', 'spec.source.persistentVolumeName'),
  field('Node', 'spec.nodeName'),
  flag('Attached', 'status.attached'),
  AGE_COLUMN,
];

export const CSI_DRIVER_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  flag('AttachRequired', 'spec.attachRequired', true),
  flag('PodInfoOnMount', 'spec.podInfoOnMount'),
  flag('StorageCapacity', 'spec.storageCapacity'),
  computed('TokenRequests', 'Audiences of the tokens that the driver needs.', (driver) => {
    const { tokenRequests } = spec(driver);
    if (!Array.isArray(tokenRequests)) return '<unset>';
    return objectsIn(spec(driver), 'tokenRequests')
      .map((request) => textIn(request, 'audience'))
      .join(',');
  }),
  flag('RequiresRepublish', 'spec.requiresRepublish'),
  computed(
    'Modes',
    'Volume modes of the driver.',
    (driver) => texts(listIn(spec(driver), 'volumeLifecycleModes')).join(',') || '<none>',
  ),
  AGE_COLUMN,
];

export const CSI_NODE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  count('Drivers', 'spec.drivers'),
  AGE_COLUMN,
];

export const NAME_AND_AGE_COLUMNS: readonly TableColumn[] = [NAME_COLUMN, AGE_COLUMN];

export const COMPONENT_STATUS_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Status', 'Status of the component.', () => 'Unknown'),
  computed('Message', 'Message of the component.', () => ''),
  computed('Error', 'Error of the component.', () => ''),
];

export const POD_TEMPLATE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  ...containerColumns(['template'], 0),
  computed('Pod Labels', 'Labels of the template.', (object) =>
    labelsText(objectIn(objectIn(objectIn(object, 'template'), 'metadata'), 'labels')),
  ),
];

export const REPLICATION_CONTROLLER_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  numeric('Desired', 'spec.replicas'),
  numeric('Current', 'status.replicas'),
  numeric('Ready', 'status.readyReplicas'),
  AGE_COLUMN,
  ...containerColumns(['spec', 'template']),
  computed(
    'Selector',
    'Labels of the Pods of the controller.',
    (controller) => labelsText(objectIn(spec(controller), 'selector')),
    { priority: 1 },
  ),
];

export const DAEMON_SET_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  numeric('Desired', 'status.desiredNumberScheduled'),
  numeric('Current', 'status.currentNumberScheduled'),
  numeric('Ready', 'status.numberReady'),
  numeric('Up-to-date', 'status.updatedNumberScheduled'),
  numeric('Available', 'status.numberAvailable'),
  computed('Node Selector', 'Labels of the nodes that run the Pods.', (set) =>
    labelsText(objectIn(objectIn(objectIn(spec(set), 'template'), 'spec'), 'nodeSelector')),
  ),
  AGE_COLUMN,
  ...containerColumns(['spec', 'template']),
  SELECTOR_COLUMN,
];

export const STATEFUL_SET_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Ready', 'Ready Pods, of all desired ones.', (set) => {
    const ready = numberIn(status(set), 'readyReplicas') ?? 0;
    return `${ready}/${numberIn(spec(set), 'replicas') ?? 0}`;
  }),
  AGE_COLUMN,
  ...containerColumns(['spec', 'template']),
];

export const JOB_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Status', 'Status of the job.', (job) => {
    const ended = trueCondition(job, ['Complete', 'Failed']);
    if (ended) return ended;
    if (job.metadata.deletionTimestamp) return 'Terminating';
    return trueCondition(job, ['Suspended', 'FailureTarget', 'SuccessCriteriaMet']) ?? 'Running';
  }),
  computed('Completions', 'Succeeded Pods, of all required ones.', (job) => {
    const succeeded = numberIn(status(job), 'succeeded') ?? 0;
    const completions = numberIn(spec(job), 'completions');
    if (completions !== undefined) return `${succeeded}/${completions}`;
    const parallelism = numberIn(spec(job), 'parallelism') ?? 0;
    return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
  }),
  computed('Duration', 'Time between start and completion.', (job, nowMs) => {
    const started = textIn(status(job), 'startTime');
    const completed = textIn(status(job), 'completionTime');
    if (started === '') return '';
    return humanDuration((completed ? Date.parse(completed) : nowMs) - Date.parse(started));
  }),
  AGE_COLUMN,
  ...containerColumns(['spec', 'template']),
  SELECTOR_COLUMN,
];

export const CRON_JOB_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('Schedule', 'spec.schedule'),
  field('Timezone', 'spec.timeZone', '<none>'),
  computed(
    'Suspend',
    'Whether no new job is started.',
    (job) => {
      const { suspend } = spec(job);
      return typeof suspend === 'boolean' ? (suspend ? 'True' : 'False') : '<unset>';
    },
    { type: 'boolean' },
  ),
  count('Active', 'status.active'),
  computed('Last Schedule', 'Time since the last job was started.', (job, nowMs) => {
    const last = textIn(status(job), 'lastScheduleTime');
    return last === '' ? '<none>' : ageOf(last, nowMs);
  }),
  AGE_COLUMN,
  ...containerColumns(['spec', 'jobTemplate', 'spec', 'template']),
  computed(
    'Selector',
    'Selector of the Pods of a job.',
    (job) =>
      selectorCell(objectIn(objectIn(objectIn(spec(job), 'jobTemplate'), 'spec'), 'selector')),
    { priority: 1 },
  ),
];

export const CONTROLLER_REVISION_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Controller', 'Owner of the revision.', ({ metadata }) => {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller);
    if (!owner) return '<none>';
    const group = owner.apiVersion.includes('/') ? `.${owner.apiVersion.split('/')[0]}` : '';
    return `${owner.kind.toLowerCase()}${group}/${owner.name}`;
  }),
  { ...numeric('Revision', 'revision'), type: 'string' },
  AGE_COLUMN,
];

export const ENDPOINTS_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Endpoints', 'Addresses and ports.', (endpoints) =>
    limited(
      objectsIn(endpoints, 'subsets').flatMap((subset) => {
        const addresses = objectsIn(subset, 'addresses').map((address) => textIn(address, 'ip'));
        const ports = objectsIn(subset, 'ports').map((port) => numberIn(port, 'port') ?? 0);
        if (ports.length === 0) return addresses;
        return ports.flatMap((port) =>
          addresses.map((ip) => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`),
        );
      }),
    ),
  ),
  AGE_COLUMN,
];

export const ENDPOINT_SLICE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('AddressType', 'addressType'),
  computed('Ports', 'Ports of the endpoints.', (slice) => {
    const ports = objectsIn(slice, 'ports');
    return limited(
      ports.map((port) => text(numberIn(port, 'port') ?? port['name'], '*')),
      { absent: '<unset>' },
    );
  }),
  computed('Endpoints', 'Addresses of the endpoints.', (slice) =>
    limited(
      objectsIn(slice, 'endpoints').flatMap((one) => texts(listIn(one, 'addresses'))),
      { absent: '<unset>' },
    ),
  ),
  AGE_COLUMN,
];

export const INGRESS_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('Class', 'spec.ingressClassName', '<none>'),
  computed('Hosts', 'Hosts of the rules.', (ingress) => {
    const rules = objectsIn(spec(ingress), 'rules');
    const hosts = rules.map((rule) => textIn(rule, 'host')).filter((host) => host !== '');
    if (hosts.length === 0) return '*';
    const more = hosts.length > 3 ? ` + ${rules.length - 3} more...` : '';
    return hosts.slice(0, 3).join(',') + more;
  }),
  computed('Address', 'Addresses of the load balancer.', (ingress) => {
    const entries = objectsIn(objectIn(status(ingress), 'loadBalancer'), 'ingress');
    const addresses = entries.map((entry) => textIn(entry, 'ip') || textIn(entry, 'hostname'));
    return [...new Set(addresses.filter((address) => address !== ''))].sort().join(',');
  }),
  computed('Ports', 'Ports of the rules.', (ingress) =>
    listIn(spec(ingress), 'tls').length > 0 ? '80, 443' : '80',
  ),
  AGE_COLUMN,
];

const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class';

export const INGRESS_CLASS_COLUMNS: readonly TableColumn[] = [
  {
    ...NAME_COLUMN,
    value: ({ metadata: { name, annotations } }) =>
      annotations?.[DEFAULT_CLASS] === 'true' ? `${name} (default)` : name,
  },
  field('Controller', 'spec.controller'),
  computed('Parameters', 'Reference to more parameters.', (ingressClass) => {
    const parameters = objectIn(spec(ingressClass), 'parameters');
    if (!parameters) return '<none>';
    const group = textIn(parameters, 'apiGroup');
    return `${textIn(parameters, 'kind')}${group ? `.${group}` : ''}/${textIn(parameters, 'name')}`;
  }),
  AGE_COLUMN,
];

export const NETWORK_POLICY_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Pod-Selector', 'Selector of the Pods of the policy.', (policy) =>
    selectorCell(objectIn(spec(policy), 'podSelector')),
  ),
  AGE_COLUMN,
];

export const SERVICE_CIDR_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('CIDRs', 'Address ranges.', (object) => texts(listIn(spec(object), 'cidrs')).join(',')),
  AGE_COLUMN,
];

/** The name of this kind's objects is an address; upstream prints an age without a column. */
export const IP_ADDRESS_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('ParentRef', 'Object that uses the address.', (address) => {
    const parent = objectIn(spec(address), 'parentRef');
    if (!parent) return '<none>';
    const group = textIn(parent, 'group');
    const resource = `${textIn(parent, 'resource')}${group ? `.${group}` : ''}`;
    return [resource.toLowerCase(), textIn(parent, 'namespace'), textIn(parent, 'name')]
      .filter((part) => part !== '')
      .join('/');
  }),
];

export const RESOURCE_QUOTA_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Request', 'Used and allowed amounts, without limits.', (quota) =>
    quotaText(quota, (resource) => !resource.startsWith('limits.')),
  ),
  computed('Limit', 'Used and allowed limits.', (quota) =>
    quotaText(quota, (resource) => resource.startsWith('limits.')),
  ),
  AGE_COLUMN,
];

function quotaText(quota: StoredObject, isShown: (resource: string) => boolean): string {
  const hard = objectIn(status(quota), 'hard') ?? {};
  const used = objectIn(status(quota), 'used') ?? {};
  return Object.keys(hard)
    .sort()
    .filter(isShown)
    .map((resource) => `${resource}: ${text(used[resource], '0')}/${text(hard[resource], '0')}`)
    .join(', ');
}

export const AUTOSCALER_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Reference', 'Kind and name of the scaled object.', (autoscaler) => {
    const target = objectIn(spec(autoscaler), 'scaleTargetRef');
    return `${textIn(target, 'kind')}/${textIn(target, 'name')}`;
  }),
  computed('Targets', 'Current and target values of the metrics.', (autoscaler) => {
    const current = objectsIn(status(autoscaler), 'currentMetrics');
    const metrics = objectsIn(spec(autoscaler), 'metrics');
    return limited(
      metrics.map((metric, index) => metricText(metric, current[index])),
      { max: 2, separator: ', ' },
    );
  }),
  field('MinPods', 'spec.minReplicas', '<unset>'),
  { ...numeric('MaxPods', 'spec.maxReplicas'), type: 'string' },
  { ...numeric('Replicas', 'status.currentReplicas'), type: 'string' },
  AGE_COLUMN,
];

/** The source of a metric is in the field of its type: `containerResource` of ContainerResource. */
function metricText(metric: JsonObject, current: JsonObject | undefined): string {
  const type = textIn(metric, 'type');
  const key = type.charAt(0).toLowerCase() + type.slice(1);
  const source = objectIn(metric, key);
  if (!source) return '<unknown type>';
  const target = objectIn(source, 'target') ?? {};
  const value = objectIn(objectIn(current, key), 'current') ?? {};
  const amount = (name: string) =>
    `${text(value[name], '<unknown>')}/${text(target[name], '<auto>')}`;
  if (type === 'Resource' || type === 'ContainerResource') {
    const name = textIn(source, 'name');
    if (target['averageValue'] !== undefined) return `${name}: ${amount('averageValue')}`;
    const percent = (holder: JsonObject, absent: string) => {
      const utilization = numberIn(holder, 'averageUtilization');
      return utilization === undefined ? absent : `${utilization}%`;
    };
    return `${name}: ${percent(value, '<unknown>')}/${percent(target, '<auto>')}`;
  }
  if (type === 'Pods') return amount('averageValue');
  return target['averageValue'] === undefined ? amount('value') : `${amount('averageValue')} (avg)`;
}

export const CSR_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  AGE_COLUMN,
  field('SignerName', 'spec.signerName', '<none>'),
  field('Requestor', 'spec.username'),
  computed('RequestedDuration', 'Requested validity of the certificate.', (request) => {
    const seconds = numberIn(spec(request), 'expirationSeconds');
    return seconds === undefined ? '<none>' : humanDuration(seconds * 1000);
  }),
  computed('Condition', 'State of the request.', (request) => {
    const types = new Set(
      objectsIn(status(request), 'conditions').map((one) => textIn(one, 'type')),
    );
    const state = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending';
    const failed = types.has('Failed') ? ',Failed' : '';
    return `${state}${failed}${textIn(status(request), 'certificate') ? ',Issued' : ''}`;
  }),
];

export const CLUSTER_TRUST_BUNDLE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('SignerName', 'spec.signerName', '<none>'),
];

export const POD_CERTIFICATE_REQUEST_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('PodName', 'spec.podName'),
  field('ServiceAccountName', 'spec.serviceAccountName'),
  field('NodeName', 'spec.nodeName'),
  field('SignerName', 'spec.signerName'),
  computed('State', 'State of the request.', (request) => {
    const types = objectsIn(status(request), 'conditions').map((one) => textIn(one, 'type'));
    return types.findLast((type) => ['Issued', 'Denied', 'Failed'].includes(type)) ?? 'Pending';
  }),
];

export const WEBHOOK_CONFIGURATION_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  count('Webhooks', 'webhooks'),
  AGE_COLUMN,
];

const PARAM_KIND = computed('ParamKind', 'Kind of the parameters.', (policy) => {
  const kind = objectIn(spec(policy), 'paramKind');
  return kind ? `${textIn(kind, 'apiVersion')}/${textIn(kind, 'kind')}` : '<unset>';
});

export const VALIDATING_POLICY_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  count('Validations', 'spec.validations'),
  PARAM_KIND,
  AGE_COLUMN,
];

export const MUTATING_POLICY_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  count('Mutations', 'spec.mutations'),
  PARAM_KIND,
  AGE_COLUMN,
];

export const POLICY_BINDING_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('PolicyName', 'spec.policyName'),
  computed('ParamRef', 'Reference to the parameters.', (binding) => {
    const reference = objectIn(spec(binding), 'paramRef');
    const name = textIn(reference, 'name');
    if (name !== '') return `${textIn(reference, 'namespace') || '*'}/${name}`;
    const selector = objectIn(reference, 'selector');
    return selector ? selectorCell(selector) : '<unset>';
  }),
  AGE_COLUMN,
];

export const FLOW_SCHEMA_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('PriorityLevel', 'spec.priorityLevelConfiguration.name'),
  { ...numeric('MatchingPrecedence', 'spec.matchingPrecedence'), type: 'string' },
  field('DistinguisherMethod', 'spec.distinguisherMethod.type', '<none>'),
  AGE_COLUMN,
  computed('MissingPL', 'Whether the priority level does not exist.', (schema) => {
    const conditions = objectsIn(status(schema), 'conditions');
    const dangling = conditions.find((condition) => condition['type'] === 'Dangling');
    return dangling ? textIn(dangling, 'status') : '?';
  }),
];

function limit(name: string, path: string): TableColumn {
  const fields = fieldPath(path);
  return computed(name, `Value of ${path}.`, (level) => {
    const value = valueAt(level, fields);
    return typeof value === 'number' ? value : '<none>';
  });
}

export const PRIORITY_LEVEL_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('Type', 'spec.type'),
  limit('NominalConcurrencyShares', 'spec.limited.nominalConcurrencyShares'),
  limit('Queues', 'spec.limited.limitResponse.queuing.queues'),
  limit('HandSize', 'spec.limited.limitResponse.queuing.handSize'),
  limit('QueueLengthLimit', 'spec.limited.limitResponse.queuing.queueLengthLimit'),
  AGE_COLUMN,
];

export const RUNTIME_CLASS_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('Handler', 'handler'),
  AGE_COLUMN,
];

export const RESOURCE_CLAIM_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('State', 'State of the claim.', (claim) => {
    const isDeleted = claim.metadata.deletionTimestamp !== undefined;
    const isAllocated = objectIn(status(claim), 'allocation') !== undefined;
    const isReserved = listIn(status(claim), 'reservedFor').length > 0;
    return [
      ...(isDeleted ? ['deleted'] : isAllocated ? [] : ['pending']),
      ...(isAllocated ? ['allocated', ...(isReserved ? ['reserved'] : [])] : []),
    ].join(',');
  }),
  AGE_COLUMN,
];

export const RESOURCE_SLICE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('Node', 'spec.nodeName'),
  field('Driver', 'spec.driver'),
  field('Pool', 'spec.pool.name'),
  AGE_COLUMN,
];

export const DEVICE_TAINT_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  field('Key', 'spec.taint.key'),
  field('Value', 'spec.taint.value'),
  field('Effect', 'spec.taint.effect'),
  computed('TimeAdded', 'Time since the taint was added.', (rule, nowMs) => {
    const added = textIn(objectIn(spec(rule), 'taint'), 'timeAdded');
    return added === '' ? '' : ageOf(added, nowMs);
  }),
  AGE_COLUMN,
];

export const API_SERVICE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  computed('Service', 'Service that serves the API.', (service) => {
    const reference = objectIn(spec(service), 'service');
    return reference ? `${textIn(reference, 'namespace')}/${textIn(reference, 'name')}` : 'Local';
  }),
  computed('Available', 'Whether the API is available.', (service) => {
    const conditions = objectsIn(status(service), 'conditions');
    const available = conditions.find((condition) => condition['type'] === 'Available');
    const value = textIn(available, 'status') || 'Unknown';
    const reason = textIn(available, 'reason');
    return value !== 'True' && reason ? `${value} (${reason})` : value;
  }),
  AGE_COLUMN,
];

export const STORAGE_VERSION_MIGRATION_COLUMNS: readonly TableColumn[] = [
  { ...NAME_COLUMN, format: '' },
  computed('Resource', 'Resource to migrate.', (migration) => {
    const resource = objectIn(spec(migration), 'resource');
    const group = textIn(resource, 'group');
    return `${textIn(resource, 'resource')}${group ? `.${group}` : ''}`;
  }),
  computed(
    'Status',
    'Status of the migration.',
    (migration) => trueCondition(migration, ['Succeeded', 'Failed', 'Running']) ?? 'Unknown',
  ),
];
