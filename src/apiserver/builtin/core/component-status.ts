import { NAME_COLUMN, column } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const COMPONENT_STATUS: BuiltinKind = {
  resource: 'componentstatuses',
  deprecationWarning: 'v1 ComponentStatus is deprecated in v1.19+',
  columns: [
    NAME_COLUMN,
    column('Status', 'Status of the component.', () => 'Unknown'),
    column('Message', 'Message of the component.', () => ''),
    column('Error', 'Error of the component.', () => ''),
  ],
};
