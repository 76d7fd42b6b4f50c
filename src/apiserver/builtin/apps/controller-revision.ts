import { column, columns, numeric, qualifiedName } from '../../table/column.ts';
import { apiGroupOf } from '../../../api/resource.ts';
import { isRecord } from '../../../util/values.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const CONTROLLER_REVISION: BuiltinKind = {
  resource: 'apps/controllerrevisions',
  revalidatesName: 'object',
  immutable: ['data'],
  validate: (revision, previous) => {
    revision.requireNonNegative('revision');
    const { data } = revision.value;
    if (previous) return;
    if (data === undefined || data === null) revision.required('data', 'data is mandatory');
    else if (!isRecord(data)) revision.required('data', 'data must be a valid JSON object');
  },
  columns: columns(
    column('Controller', 'Owner of the revision.', ({ metadata }) => {
      const owner = metadata.ownerReferences?.find(({ controller }) => controller);
      if (!owner) return '<none>';
      return `${qualifiedName(owner.kind.toLowerCase(), apiGroupOf(owner.apiVersion))}/${owner.name}`;
    }),
    numeric('Revision', 'revision', 'string'),
  ),
};
