import type { FieldError } from './field-error.ts';
import { fieldError } from './field-error.ts';
import type { JsonObject } from './json-value.ts';
import { requireDepth } from './json-value.ts';
import { branchesOf, propertiesOf, propertyPath, subschema } from './schema-node.ts';

/**
 * Fields that value validations (`allOf`, `anyOf`, `oneOf`, `not`) speak of must be declared outside
 * of them.
 */
export function checkComplete(schema: JsonObject, path: string, errors: FieldError[]): void {
  checkBranches(schema, schema, path, path, errors, 0);
}

/** @param at path of `structural`, @param from path of `validation` */
function checkBranches(
  validation: JsonObject,
  structural: JsonObject,
  at: string,
  from: string,
  errors: FieldError[],
  depth: number,
): void {
  requireDepth(depth);
  const nested = (branch: JsonObject, where: string) =>
    checkNested(branch, structural, at, where, errors, depth + 1);
  const not = subschema(validation, 'not');
  if (not) nested(not, `${from}.not`);
  for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
    branchesOf(validation, key).forEach((branch, i) => nested(branch, `${from}.${key}[${i}]`));
  }
}

function checkNested(
  validation: JsonObject,
  structural: JsonObject,
  at: string,
  from: string,
  errors: FieldError[],
  depth: number,
): void {
  checkBranches(validation, structural, at, from, errors, depth);
  const compare = (
    inner: JsonObject,
    declared: JsonObject | undefined,
    where: string,
    source: string,
  ) => {
    if (declared) checkNested(inner, declared, where, source, errors, depth + 1);
    else errors.push(fieldError.required(where, `because it is defined in ${source}`));
  };
  const items = subschema(validation, 'items');
  if (items) compare(items, subschema(structural, 'items'), `${at}.items`, `${from}.items`);
  const declared = new Map(propertiesOf(structural));
  for (const [name, field] of propertiesOf(validation)) {
    compare(field, declared.get(name), propertyPath(at, name), propertyPath(from, name));
  }
}
