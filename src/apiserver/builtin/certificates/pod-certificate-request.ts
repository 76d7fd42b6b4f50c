import { objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { NAME_COLUMN, column, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

export const POD_CERTIFICATE_REQUEST: BuiltinKind = {
  resource: 'certificates.k8s.io/podcertificaterequests',
  ...STATUS_ONLY,
  unconditionalUpdate: false,
  columns: [
    NAME_COLUMN,
    field('PodName', 'spec.podName'),
    field('ServiceAccountName', 'spec.serviceAccountName'),
    field('NodeName', 'spec.nodeName'),
    field('SignerName', 'spec.signerName'),
    column('State', 'State of the request.', (request) => {
      const conditions = objectsIn(objectIn(request, 'status'), 'conditions');
      const types = conditions.map((one) => textIn(one, 'type'));
      return types.findLast((type) => ['Issued', 'Denied', 'Failed'].includes(type)) ?? 'Pending';
    }),
  ],
};
