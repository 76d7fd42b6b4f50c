import type { Deployment, ReplicaSet } from '../../api/builtin.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import type { TableColumn } from '../resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, columnsFor } from './column.ts';

/** The common part of Deployment and ReplicaSet. */
interface Workload extends KubernetesObject {
  readonly spec?: Pick<NonNullable<ReplicaSet['spec']>, 'selector' | 'template'>;
}

type Selector = DeepReadonly<NonNullable<Workload['spec']>['selector']>;

const workload = columnsFor<Workload>();
const deployment = columnsFor<Deployment>();
const replicaSet = columnsFor<ReplicaSet>();

const TEMPLATE_COLUMNS: readonly TableColumn[] = [
  workload.wide('Containers', 'Names of the containers in the template.', ({ spec }) =>
    (spec?.template?.spec?.containers ?? []).map(({ name }) => name).join(','),
  ),
  workload.wide('Images', 'Images of the containers in the template.', ({ spec }) =>
    (spec?.template?.spec?.containers ?? []).map(({ image = '' }) => image).join(','),
  ),
  workload.wide(
    'Selector',
    'Selector of its pods.',
    ({ spec }) => selectorText(spec?.selector) || '<none>',
  ),
];

export const DEPLOYMENT_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  deployment.column(
    'Ready',
    'Number of ready pods, and of desired pods.',
    ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
  ),
  deployment.column(
    'Up-to-date',
    'Number of pods of the current template.',
    ({ status }) => status?.updatedReplicas ?? 0,
  ),
  deployment.column(
    'Available',
    'Number of pods that have been ready for minReadySeconds.',
    ({ status }) => status?.availableReplicas ?? 0,
  ),
  AGE_COLUMN,
  ...TEMPLATE_COLUMNS,
];

export const REPLICA_SET_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  replicaSet.integer('Desired', 'Number of desired pods.', ({ spec }) => spec?.replicas ?? 0),
  replicaSet.integer('Current', 'Number of pods.', ({ status }) => status?.replicas ?? 0),
  replicaSet.integer('Ready', 'Number of ready pods.', ({ status }) => status?.readyReplicas ?? 0),
  AGE_COLUMN,
  ...TEMPLATE_COLUMNS,
];

/** The selector as upstream prints it: requirements sorted by key, their values sorted too. */
function selectorText({ matchLabels = {}, matchExpressions = [] }: Selector = {}): string {
  const equalities = Object.entries(matchLabels).map(([key, value]) => ({
    key,
    text: `${key}=${value}`,
  }));
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => ({
    key,
    text: expressionText(key, operator, [...values].sort().join(',')),
  }));
  return [...equalities, ...expressions]
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ text }) => text)
    .join(',');
}

function expressionText(key: string, operator: string, values: string): string {
  switch (operator) {
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return `${key} ${operator.toLowerCase()} (${values})`;
  }
}
