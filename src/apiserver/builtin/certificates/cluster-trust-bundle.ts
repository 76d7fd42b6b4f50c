import { NAME_COLUMN, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const CLUSTER_TRUST_BUNDLE: BuiltinKind = {
  resource: 'certificates.k8s.io/clustertrustbundles',
  nameFormat: 'pathSegment',
  unconditionalUpdate: false,
  columns: [NAME_COLUMN, field('SignerName', 'spec.signerName', '<none>')],
};
