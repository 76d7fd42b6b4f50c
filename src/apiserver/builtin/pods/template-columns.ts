import { objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { isRecord } from '../../../util/values.ts';
import { valueAtPath } from '../../objects/field-path.ts';
import type { StoredObject, TableColumn } from '../../objects/resource-definition.ts';
import { column, wide } from '../../table/column.ts';
import { selectorCell } from '../shared/cells.ts';

/** Columns with the containers of the Pod template at a path. */
export function containerColumns(template: readonly string[], priority: 0 | 1 = 1): TableColumn[] {
  const texts = (name: 'name' | 'image') => (object: StoredObject) => {
    const spec = valueAtPath(object, [...template, 'spec']);
    return objectsIn(isRecord(spec) ? spec : {}, 'containers')
      .map((container) => textIn(container, name))
      .join(',');
  };
  const options = { priority };
  return [
    column('Containers', 'Names of the containers in the template.', texts('name'), options),
    column('Images', 'Images of the containers in the template.', texts('image'), options),
  ];
}

export const CONTAINER_COLUMNS = containerColumns(['spec', 'template']);

/** Columns with the containers of the Pods of a workload, and their label selector. */
export const TEMPLATE_COLUMNS = [
  ...CONTAINER_COLUMNS,
  wide('Selector', 'Selector of the Pods of the object.', (object) =>
    selectorCell(objectIn(objectIn(object, 'spec'), 'selector')),
  ),
];
