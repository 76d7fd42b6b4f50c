import { qualifiedNameProblems } from '../object-names.ts';
import type { StoredObject } from '../resource-definition.ts';
import { Verbatim } from '../../api/field-error.ts';
import { goJson } from '../../util/go-format.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { isSet, listIn, objectIn, objectsIn, textIn } from './fields.ts';
import type { Findings } from './findings.ts';

/** A review asks either about a resource or about a path, and not about both. */
export function validateAttributes(spec: JsonObject, findings: Findings): void {
  const resource = objectIn(spec, 'resourceAttributes');
  const path = objectIn(spec, 'nonResourceAttributes');
  if ((path === undefined) === (resource === undefined)) {
    findings.invalid(
      'spec',
      path ? goAttributes(path) : null,
      'exactly one of nonResourceAttributes or resourceAttributes must be specified',
    );
  }
  if (!resource) return;
  validateSelector(resource, 'fieldSelector', findings);
  validateSelector(resource, 'labelSelector', findings);
}

/** Paths are in no namespace. */
export function requireNoPath(spec: JsonObject, findings: Findings): void {
  const path = objectIn(spec, 'nonResourceAttributes');
  if (!path) return;
  const why = 'disallowed on this kind of request';
  findings.invalid('spec.nonResourceAttributes', goAttributes(path), why);
}

/** A review about a subject requires a user or a group. */
export function validateSubject(spec: JsonObject, findings: Findings): void {
  if (textIn(spec, 'user') !== '' || listIn(spec, 'groups').length > 0) return;
  findings.invalid('spec.user', '', 'at least one of user or group must be specified');
}

/** A review has no name, no labels, nothing that only an object has which is kept. */
export function validateMetadataOf(
  { metadata }: StoredObject,
  findings: Findings,
  scope?: 'namespaced',
): void {
  const { managedFields: _, namespace: __, name, ...rest } = metadata;
  if (name === '' && Object.keys(rest).length === 0) return;
  findings.invalid(
    'metadata',
    metadata,
    scope ? 'must be empty except for namespace' : 'must be empty',
  );
}

/** A path's attributes in the form that a server has them in. */
function goAttributes(path: JsonObject): Verbatim {
  return new Verbatim(goJson({ Path: textIn(path, 'path'), Verb: textIn(path, 'verb') }));
}

function validateSelector(
  resource: JsonObject,
  field: 'fieldSelector' | 'labelSelector',
  findings: Findings,
): void {
  const selector = objectIn(resource, field);
  if (!selector) return;
  const path = `spec.resourceAttributes.${field}`;
  const raw = textIn(selector, 'rawSelector');
  const requirements = objectsIn(selector, 'requirements');
  if (raw !== '' && requirements.length > 0) {
    const why = 'may not specified at the same time as requirements';
    findings.invalid(`${path}.rawSelector`, raw, why);
  }
  if (raw === '' && requirements.length === 0) {
    findings.required(
      `${path}.requirements`,
      `when ${path} is specified, requirements or rawSelector is required`,
    );
  }
  requirements.forEach((requirement, index) => {
    const at = `${path}.requirements[${index}]`;
    const key = textIn(requirement, 'key');
    if (field === 'fieldSelector' && key === '')
      findings.required(`${at}.key`, 'must be specified');
    validateValues(requirement, at, findings);
    if (field === 'fieldSelector') return;
    for (const problem of qualifiedNameProblems(key)) findings.invalid(`${at}.key`, key, problem);
  });
}

function validateValues(requirement: JsonObject, at: string, findings: Findings): void {
  const hasValues = isSet(requirement, 'values') && listIn(requirement, 'values').length > 0;
  switch (textIn(requirement, 'operator')) {
    case 'In':
    case 'NotIn':
      if (hasValues) return;
      findings.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'");
      return;
    case 'Exists':
    case 'DoesNotExist':
      if (!hasValues) return;
      findings.forbidden(
        `${at}.values`,
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      );
      return;
    default:
      // Newer servers can have more operators, which the authorizer reports.
      return;
  }
}
