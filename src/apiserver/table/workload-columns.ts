import type { Deployment, ReplicaSet } from '../../api/builtin.ts';
import { isRecord } from '../../util/values.ts';
import { listIn, objectIn, objectsIn, textIn } from '../builtin/fields.ts';
import { valueAt } from '../field-path.ts';
import type { StoredObject, TableColumn } from '../resource-definition.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { AGE_COLUMN, NAME_COLUMN, columnsFor } from './column.ts';

const deployment = columnsFor<Deployment>();
const replicaSet = columnsFor<ReplicaSet>();

/** Columns with the containers of the Pod template at a path. */
export function containerColumns(
  template: readonly string[],
  priority: 0 | 1 = 1,
): readonly TableColumn[] {
  const all = (object: StoredObject, field: 'name' | 'image') =>
    objectsIn(objectIn(valueIn(object, template), 'spec'), 'containers')
      .map((container) => textIn(container, field))
      .join(',');
  const column = (name: string, description: string, field: 'name' | 'image'): TableColumn => ({
    name,
    type: 'string',
    description,
    priority,
    value: (object) => all(object, field),
  });
  return [
    column('Containers', 'Names of the containers in the template.', 'name'),
    column('Images', 'Images of the containers in the template.', 'image'),
  ];
}

function valueIn(object: StoredObject, path: readonly string[]): JsonObject {
  const value = valueAt(object, path);
  return isRecord(value) ? value : {};
}

/** Column with the label selector of the Pods of a workload. */
export const SELECTOR_COLUMN: TableColumn = {
  name: 'Selector',
  type: 'string',
  description: 'Selector of the Pods of the object.',
  priority: 1,
  value: (object) => selectorCell(objectIn(objectIn(object, 'spec'), 'selector')),
};

const TEMPLATE_COLUMNS: readonly TableColumn[] = [
  ...containerColumns(['spec', 'template']),
  SELECTOR_COLUMN,
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

/** A label selector as servers print it: requirements ordered by key, their values ordered too. */
export function selectorCell(selector: JsonObject | undefined): string {
  const equalities = Object.entries(objectIn(selector, 'matchLabels') ?? {}).map(
    ([key, value]) => ({ key, text: `${key}=${String(value)}` }),
  );
  const expressions = objectsIn(selector, 'matchExpressions').map((requirement) => {
    const key = textIn(requirement, 'key');
    const values = listIn(requirement, 'values').filter((value) => typeof value === 'string');
    const text = expressionText(key, textIn(requirement, 'operator'), values.sort().join(','));
    return { key, text };
  });
  const all = [...equalities, ...expressions].sort((a, b) =>
    a.key < b.key ? -1 : a.key > b.key ? 1 : 0,
  );
  return all.map(({ text }) => text).join(',') || '<none>';
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
