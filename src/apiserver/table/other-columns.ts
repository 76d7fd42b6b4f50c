import type { CustomResourceDefinition, Lease, Namespace, Scale } from '../../api/builtin.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { TableColumn } from '../resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, columnsFor } from './column.ts';

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

const namespace = columnsFor<Namespace>();
const configMap = columnsFor<ConfigMap>();
const secret = columnsFor<Secret>();
const lease = columnsFor<Lease>();
const scale = columnsFor<Scale>();
const priorityClass = columnsFor<PriorityClass>();
const budget = columnsFor<PodDisruptionBudget>();
const definition = columnsFor<CustomResourceDefinition>();

/** What a kind without columns of its own shows. */
export const DEFAULT_COLUMNS: readonly TableColumn[] = [NAME_COLUMN, AGE_COLUMN];

export const NAMESPACE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  namespace.column(
    'Status',
    'Active, or Terminating while it is emptied.',
    ({ status }) => status?.phase ?? '',
  ),
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
  secret.column('Type', 'What the entries are for.', ({ type = '' }) => type),
  secret.column('Data', 'Number of entries.', ({ data = {} }) => Object.keys(data).length),
  AGE_COLUMN,
];

export const LEASE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  lease.column('Holder', 'Who holds the lease.', ({ spec }) => spec?.holderIdentity ?? ''),
  AGE_COLUMN,
];

export const SCALE_COLUMNS: readonly TableColumn[] = [
  scale.column('Name', 'Name of what is scaled.', ({ metadata }) => metadata.name),
  scale.column('Desired', 'Replicas there should be.', ({ spec }) => spec?.replicas ?? 0, {
    type: 'integer',
  }),
  scale.column('Available', 'Replicas there are.', ({ status }) => status?.replicas ?? 0, {
    type: 'integer',
  }),
  AGE_COLUMN,
];

export const PRIORITY_CLASS_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  priorityClass.column('Value', 'Higher goes first.', ({ value = 0 }) => value, {
    type: 'integer',
  }),
  priorityClass.column(
    'Global-Default',
    'Whether Pods that name no class have this one.',
    ({ globalDefault = false }) => globalDefault,
    { type: 'boolean' },
  ),
  AGE_COLUMN,
  priorityClass.column(
    'PreemptionPolicy',
    'Whether Pods of lower priority have to make room.',
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
  budget.column(
    'Allowed Disruptions',
    'Pods that may be evicted now.',
    ({ status }) => status?.disruptionsAllowed ?? 0,
    { type: 'integer' },
  ),
  AGE_COLUMN,
];

/** The extension server shows its own kind with a date instead of an age. */
export const CRD_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  definition.column(
    'Created At',
    'When the object was created.',
    ({ metadata }) => metadata.creationTimestamp,
    { type: 'date' },
  ),
];
