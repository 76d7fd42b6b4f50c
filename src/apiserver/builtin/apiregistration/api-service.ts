import { objectIn, textIn } from '../../../util/json-value.ts';
import { column, columns } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';
import { conditionOfType } from '../shared/cells.ts';

export const API_SERVICE: BuiltinKind = {
  resource: 'apiregistration.k8s.io/apiservices',
  ...STATUS_ONLY,
  unconditionalUpdate: false,
  defaults: { 'spec.service.port': 443 },
  columns: columns(
    column('Service', 'Service that serves the API.', (service) => {
      const reference = objectIn(objectIn(service, 'spec'), 'service');
      return reference ? `${textIn(reference, 'namespace')}/${textIn(reference, 'name')}` : 'Local';
    }),
    column('Available', 'Whether the API is available.', (service) => {
      const available = conditionOfType(service, 'Available');
      const value = textIn(available, 'status') || 'Unknown';
      const reason = textIn(available, 'reason');
      return value !== 'True' && reason ? `${value} (${reason})` : value;
    }),
  ),
};
