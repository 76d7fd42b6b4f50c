import { goJson } from '../../../util/go-format.ts';
import { Verbatim } from '../../../api/field-error.ts';
import { qualifiedNameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { requireLabelValues } from '../shared/label-selector-validation.ts';

/** A review asks either about a resource or about a path, and not about both. */
export function validateAttributes(spec: CheckedObject): void {
  const resource = spec.get('resourceAttributes');
  const path = spec.get('nonResourceAttributes');
  if ((path === undefined) === (resource === undefined)) {
    const why = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    spec.invalid('', why, path ? goAttributes(path) : null);
  }
  if (!resource) return;
  validateSelector(resource, 'fieldSelector');
  validateSelector(resource, 'labelSelector');
}

/** Paths are in no namespace. */
export function requireNoPath(spec: CheckedObject): void {
  const path = spec.get('nonResourceAttributes');
  path?.invalid('', 'disallowed on this kind of request', goAttributes(path));
}

/** A review about a subject requires a user or a group. */
export function validateSubject(spec: CheckedObject): void {
  if (spec.text('user') !== '' || spec.list('groups').length > 0) return;
  spec.invalid('user', 'at least one of user or group must be specified', '');
}

/** Rejects metadata, which a review does not have: its name, labels, or annotations. managedFields are ignored. */
export function validateMetadataOf(
  review: CheckedObject<StoredObject>,
  scope?: 'namespaced',
): void {
  const { metadata } = review.value;
  const { managedFields: _, namespace: __, name, ...rest } = metadata;
  if (name === '' && Object.keys(rest).length === 0) return;
  const why = scope ? 'must be empty except for namespace' : 'must be empty';
  review.invalid('metadata', why, metadata);
}

/** A path's attributes in the form that a server has them in. */
function goAttributes(path: CheckedObject): Verbatim {
  return new Verbatim(goJson({ Path: path.text('path'), Verb: path.text('verb') }));
}

function validateSelector(resource: CheckedObject, field: 'fieldSelector' | 'labelSelector'): void {
  const selector = resource.get(field);
  if (!selector) return;
  const raw = selector.text('rawSelector');
  const requirements = selector.items('requirements');
  if (raw !== '' && requirements.length > 0) {
    selector.invalid('rawSelector', 'may not specified at the same time as requirements');
  }
  if (raw === '' && requirements.length === 0) {
    const why = `when ${selector.path} is specified, requirements or rawSelector is required`;
    selector.required('requirements', why);
  }
  for (const requirement of requirements) {
    const key = requirement.text('key');
    if (field === 'fieldSelector' && key === '') requirement.required('key', 'must be specified');
    validateValues(requirement);
    if (field !== 'labelSelector') continue;
    requirement.problems('key', qualifiedNameProblems(key), key);
    requireLabelValues(requirement);
  }
}

function validateValues(requirement: CheckedObject): void {
  const hasValues = requirement.list('values').length > 0;
  switch (requirement.text('operator')) {
    case 'In':
    case 'NotIn':
      if (hasValues) return;
      requirement.required('values', "must be specified when `operator` is 'In' or 'NotIn'");
      return;
    case 'Exists':
    case 'DoesNotExist':
      if (!hasValues) return;
      requirement.forbidden(
        'values',
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      );
      return;
    default:
      // Newer servers can have more operators, which the authorizer reports.
      return;
  }
}
