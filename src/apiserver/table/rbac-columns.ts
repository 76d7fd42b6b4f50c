import type { KubernetesObject } from '../../api/object.ts';
import type { TableColumn } from '../resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, columnsFor } from './column.ts';

interface Binding extends KubernetesObject {
  roleRef?: { kind?: string; name?: string };
  subjects?: { kind?: string; name?: string; namespace?: string }[];
}

const role = columnsFor<KubernetesObject>();
const binding = columnsFor<Binding>();

/** Roles are shown with a date instead of an age. */
export const ROLE_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  role.column(
    'Created At',
    'When the object was created.',
    ({ metadata }) => metadata.creationTimestamp,
    { type: 'date' },
  ),
];

export const BINDING_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  binding.column(
    'Role',
    'What the subjects may do.',
    ({ roleRef }) => `${roleRef?.kind ?? ''}/${roleRef?.name ?? ''}`,
  ),
  AGE_COLUMN,
  subjects('Users', 'User'),
  subjects('Groups', 'Group'),
  subjects('ServiceAccounts', 'ServiceAccount'),
];

function subjects(title: string, kind: string): TableColumn {
  return binding.wide(title, `Subjects of kind ${kind}.`, ({ subjects: all = [] }) =>
    all
      .filter((subject) => subject.kind === kind)
      .map(({ namespace = '', name = '' }) =>
        kind === 'ServiceAccount' ? `${namespace}/${name}` : name,
      )
      .join(', '),
  );
}
