import { utf8Length } from '../../../util/bytes.ts';
import type { ConfigMap } from '../../../api/builtin.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { column, columns } from '../../table/column.ts';
import {
  MAX_DATA_BYTES,
  base64Length,
  dataSize,
  requireUnchangedData,
  validateDataKey,
} from './config-data.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const CONFIG_MAP: BuiltinKind = {
  resource: 'configmaps',
  revalidatesName: 'object',
  validate: validateConfigMap,
  validateUpdate: (next, previous) => requireUnchangedData(next, previous, ['data', 'binaryData']),
  columns: columns(
    column<ConfigMap>(
      'Data',
      'Number of entries.',
      ({ data = {}, binaryData = {} }) => Object.keys(data).length + Object.keys(binaryData).length,
    ),
  ),
};

function validateConfigMap(map: CheckedObject): void {
  const data = map.in('data').value;
  const binaryData = map.in('binaryData').value;
  for (const key of Object.keys(data)) {
    validateDataKey(map, 'data', key);
    if (Object.hasOwn(binaryData, key)) {
      map.invalid(`data[${key}]`, 'duplicate of key present in binaryData', key);
    }
  }
  for (const key of Object.keys(binaryData)) validateDataKey(map, 'binaryData', key);
  const size = dataSize(data, utf8Length) + dataSize(binaryData, base64Length);
  if (size > MAX_DATA_BYTES) map.tooLong('[]', MAX_DATA_BYTES);
}
