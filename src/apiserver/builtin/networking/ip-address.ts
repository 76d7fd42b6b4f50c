import { objectIn, textIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { NAME_COLUMN, column, qualifiedName } from '../../table/column.ts';
import { ipProblem } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const IP_ADDRESS: BuiltinKind = {
  resource: 'networking.k8s.io/ipaddresses',
  immutable: ['spec.parentRef'],
  hidesImmutable: true,
  validate: validateAddress,
  nameFormat: 'pathSegment',
  // Upstream prints an age without a column.
  columns: [
    NAME_COLUMN,
    column('ParentRef', 'Object that uses the address.', (address) => {
      const parent = objectIn(objectIn(address, 'spec'), 'parentRef');
      if (!parent) return '<none>';
      const resource = qualifiedName(textIn(parent, 'resource'), textIn(parent, 'group'));
      return [resource.toLowerCase(), textIn(parent, 'namespace'), textIn(parent, 'name')]
        .filter((part) => part !== '')
        .join('/');
    }),
  ],
};

function validateAddress(object: CheckedObject<StoredObject>): void {
  const { name } = object.value.metadata;
  const problem = ipProblem(name, true);
  if (problem !== undefined) object.invalid('metadata.name', problem, name);
  const parent = object.in('spec').get('parentRef');
  if (!parent) {
    object.required('spec.parentRef');
    return;
  }
  parent.requireFormat('group', 'dns1123Subdomain');
  parent.requireName('resource', 'pathSegment');
  parent.requireName('name', 'pathSegment');
  parent.requireFormat('namespace', 'pathSegment');
}
