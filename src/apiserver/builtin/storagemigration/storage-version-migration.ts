import { objectIn, textIn } from '../../../util/json-value.ts';
import { NAME_COLUMN, column, qualifiedName, trueCondition } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

export const STORAGE_VERSION_MIGRATION: BuiltinKind = {
  resource: 'storagemigration.k8s.io/storageversionmigrations',
  ...STATUS_ONLY,
  unconditionalUpdate: false,
  immutable: ['spec'],
  columns: [
    { ...NAME_COLUMN, format: '' },
    column('Resource', 'Resource to migrate.', (migration) => {
      const resource = objectIn(objectIn(migration, 'spec'), 'resource');
      return qualifiedName(textIn(resource, 'resource'), textIn(resource, 'group'));
    }),
    column(
      'Status',
      'Status of the migration.',
      (migration) => trueCondition(migration, ['Succeeded', 'Failed', 'Running']) ?? 'Unknown',
    ),
  ],
};
