import { repeatedIndexes } from '../../../util/values.ts';
import { objectIn, objectsIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { columns, count } from '../../table/column.ts';
import { requireDriverName } from '../pods/volume-sources.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { qualifiedNameProblems } from '../../../api/object-names.ts';

export const CSI_NODE: BuiltinKind = {
  resource: 'storage.k8s.io/csinodes',
  revalidatesName: 'object',
  ...STATUS_ONLY,
  returnsDeleted: true,
  unconditionalUpdate: false,
  disabledFields: ['status.storageHealth'],
  defaults: { 'spec.drivers': null },
  validate: validateNode,
  columns: columns(count('Drivers', 'spec.drivers')),
};

function validateNode(node: CheckedObject, previous: StoredObject | undefined): void {
  const names = new Set<string>();
  const spec = node.in('spec');
  for (const [index, driver] of spec.items('drivers').entries()) {
    const name = driver.text('name');
    requireDriverName(driver, 'name');
    driver.requireText('nodeID');
    if (driver.text('nodeID').length > 256) {
      driver.invalid('nodeID', 'must be 256 characters or less');
    }
    driver.in('allocatable').requireNonNegative('count');
    if (names.has(name)) driver.duplicate('name', name);
    names.add(name);
    const keys = driver.list('topologyKeys').map(String);
    const repeated = repeatedIndexes(keys);
    for (const [at, key] of keys.entries()) {
      // A server reports keys with the path of the driver.
      if (key === '') spec.required(`drivers[${index}]`);
      if (repeated.has(at)) spec.duplicate(`drivers[${index}]`, key);
      spec.problems(`drivers[${index}]`, qualifiedNameProblems(key), key);
    }
    const { allocatable: _, ...fixed } = driver.value;
    for (const former of objectsIn(objectIn(previous, 'spec'), 'drivers')) {
      if (former['name'] !== name) continue;
      const { allocatable: _former, ...was } = former;
      if (!equalJson(fixed, was)) spec.invalid('drivers', 'field is immutable', fixed);
    }
  }
}
