import { objectIn, textIn } from '../../../util/json-value.ts';
import { NAME_COLUMN, column, qualified } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const IP_ADDRESS: BuiltinKind = {
  resource: 'networking.k8s.io/ipaddresses',
  immutable: ['spec'],
  nameFormat: 'pathSegment',
  // Upstream prints an age without a column.
  columns: [
    NAME_COLUMN,
    column('ParentRef', 'Object that uses the address.', (address) => {
      const parent = objectIn(objectIn(address, 'spec'), 'parentRef');
      if (!parent) return '<none>';
      const resource = qualified(textIn(parent, 'resource'), textIn(parent, 'group'));
      return [resource.toLowerCase(), textIn(parent, 'namespace'), textIn(parent, 'name')]
        .filter((part) => part !== '')
        .join('/');
    }),
  ],
};
