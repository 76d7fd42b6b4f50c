import { objectIn, objectsIn, setDefault, textIn } from '../../../util/json-value.ts';
import { plainText } from '../../../api/field-error.ts';
import { equalJson } from '../../../api/equal.ts';
import { requireBindingRights } from '../../auth/privilege-escalation.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, TableColumn } from '../../objects/resource-definition.ts';
import { column, columns, wide } from '../../table/column.ts';
import { RBAC_TRAITS, requireNamePrefix } from './roles.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

const GROUP = 'rbac.authorization.k8s.io';

export const CLUSTER_ROLE_BINDING: BuiltinKind = bindingKind('clusterrolebindings');

export const ROLE_BINDING: BuiltinKind = bindingKind('rolebindings');

function bindingKind(plural: 'rolebindings' | 'clusterrolebindings'): BuiltinKind {
  return {
    resource: `${GROUP}/${plural}`,
    ...RBAC_TRAITS,
    hooks: {
      applyDefaults: applyBindingDefaults,
      requireRights: (binding, previous, context) =>
        requireBindingRights(plural, context, binding, previous),
    },
    validate: (binding) => validateBinding(binding, plural === 'rolebindings'),
    validateUpdate: (next, previous) => {
      if (equalJson(next.value['roleRef'], previous['roleRef'])) return;
      // As a server shows what it has decoded.
      const { apiGroup = '', kind = '', name = '' } = next.in('roleRef').value;
      const shown = { APIGroup: apiGroup, Kind: kind, Name: name };
      next.invalid('roleRef', 'field is immutable', shown);
    },
    columns: [
      ...columns(
        column('Role', 'Role that the subjects are bound to.', (binding) => {
          const role = objectIn(binding, 'roleRef');
          return `${textIn(role, 'kind')}/${textIn(role, 'name')}`;
        }),
      ),
      subjectsColumn('Users', 'User'),
      subjectsColumn('Groups', 'Group'),
      subjectsColumn('ServiceAccounts', 'ServiceAccount'),
    ],
  };
}

function applyBindingDefaults(binding: ApiObject): void {
  const roleRef = objectIn(binding, 'roleRef');
  if (roleRef) setDefault(roleRef, 'apiGroup', GROUP);
  for (const subject of objectsIn(binding, 'subjects')) {
    if (['User', 'Group'].includes(textIn(subject, 'kind'))) setDefault(subject, 'apiGroup', GROUP);
  }
}

function validateBinding(binding: CheckedObject, isNamespaced: boolean): void {
  requireNamePrefix(binding);
  const roleRef = binding.in('roleRef');
  requireAmong(roleRef, 'apiGroup', [GROUP]);
  requireAmong(roleRef, 'kind', isNamespaced ? ['Role', 'ClusterRole'] : ['ClusterRole']);
  roleRef.requireFormat('name', 'pathSegment');
  const subjects = binding.items('subjects');
  for (const subject of subjects) validateSubject(subject, isNamespaced);
  for (const subject of subjects) subject.requireText('name');
  roleRef.requireText('name');
}

function validateSubject(subject: CheckedObject, isNamespaced: boolean): void {
  switch (subject.text('kind')) {
    case 'ServiceAccount':
      subject.requireFormat('name', 'dns1123Subdomain');
      requireAmong(subject, 'apiGroup', ['']);
      if (!isNamespaced) subject.requireText('namespace');
      break;
    case 'User':
    case 'Group':
      requireAmong(subject, 'apiGroup', [GROUP]);
      break;
    default:
      requireAmong(subject, 'kind', ['ServiceAccount', 'User', 'Group']);
  }
}

/** The text of a field must be one of these, also if it is empty. */
function requireAmong(object: CheckedObject, field: string, supported: readonly string[]): void {
  const value = object.text(field);
  if (!supported.includes(value)) object.notSupported(field, supported, plainText(value));
}

function subjectsColumn(title: string, kind: string): TableColumn {
  return wide(title, `Subjects of kind ${kind}.`, (binding) =>
    objectsIn(binding, 'subjects')
      .filter((subject) => subject['kind'] === kind)
      .map((subject) => {
        const name = textIn(subject, 'name');
        return kind === 'ServiceAccount' ? `${textIn(subject, 'namespace')}/${name}` : name;
      })
      .join(', '),
  );
}
