import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import { own, textAt } from './json-value.ts';
import type { JsonObject } from './json-value.ts';
import { isRecord } from '../../util/values.ts';
import { propertiesOf, typeOf } from './structural-schema.ts';

/** Validates the subresources of a version. */
export function checkSubresources(subresources: JsonObject, path: string): FieldError[] {
  const scale = own(subresources, 'scale');
  if (!isRecord(scale)) return [];
  const errors: FieldError[] = [];
  for (const [name, prefix] of [
    ['specReplicasPath', '.spec'],
    ['statusReplicasPath', '.status'],
  ] as const) {
    const at = `${path}.scale.${name}`;
    const value = textAt(scale, name);
    if (value === '') errors.push(fieldError.required(at));
    else if (!isSimplePath(value)) errors.push(notSimple(at, value));
    else if (!value.startsWith(`${prefix}.`)) {
      errors.push(fieldError.invalid(at, value, `should be a json path under ${prefix}`));
    }
  }
  const at = `${path}.scale.labelSelectorPath`;
  const selector = textAt(scale, 'labelSelectorPath');
  if (selector === '') return errors;
  if (!isSimplePath(selector)) errors.push(notSimple(at, selector));
  else if (!/^\.(?:spec|status)\./.test(selector)) {
    const detail = 'should be a json path under either .spec or .status';
    errors.push(fieldError.invalid(at, selector, detail));
  }
  return errors;
}

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = [
  'byte',
  'date',
  'date-time',
  'double',
  'float',
  'int32',
  'int64',
  'password',
];

/** Validates printer columns. */
export function checkColumns(columns: readonly JsonObject[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, column] of columns.entries()) {
    const at = `${path}[${index}]`;
    if (textAt(column, 'name') === '') errors.push(fieldError.required(`${at}.name`));
    const type = textAt(column, 'type');
    const types = `must be one of ${COLUMN_TYPES.join(',')}`;
    if (type === '') errors.push(fieldError.required(`${at}.type`, types));
    else if (!COLUMN_TYPES.includes(type)) {
      errors.push(fieldError.invalid(`${at}.type`, type, types));
    }
    const format = textAt(column, 'format');
    if (format !== '' && !COLUMN_FORMATS.includes(format)) {
      const detail = `must be one of ${COLUMN_FORMATS.join(',')}`;
      errors.push(fieldError.invalid(`${at}.format`, format, detail));
    }
    const jsonPath = textAt(column, 'jsonPath');
    if (jsonPath === '') errors.push(fieldError.required(`${at}.JSONPath`));
    else if (!isSimplePath(jsonPath)) errors.push(notSimple(`${at}.JSONPath`, jsonPath));
  }
  return errors;
}

const MAX_SELECTABLE_FIELDS = 8;

/** Validates the selectable fields of a version. */
export function checkSelectableFields(
  fields: readonly JsonObject[],
  schema: unknown,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, field] of fields.entries()) {
    const at = `${path}[${index}].jsonPath`;
    const jsonPath = textAt(field, 'jsonPath');
    if (jsonPath === '') {
      errors.push(fieldError.required(at));
      continue;
    }
    const type = typeAt(schema, jsonPath);
    if (type === undefined) {
      const detail = 'is an invalid path: does not refer to a valid field';
      errors.push(fieldError.invalid(at, jsonPath, detail));
      continue;
    }
    if (/^\.metadata(?:\.|$)/.test(jsonPath)) {
      errors.push(fieldError.invalid(at, jsonPath, 'must not point to fields in metadata'));
    }
    if (!['string', 'boolean', 'integer'].includes(type)) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      errors.push(fieldError.invalid(at, jsonPath, detail));
    }
    if (seen.has(jsonPath)) errors.push(fieldError.duplicate(at, jsonPath));
    seen.add(jsonPath);
  }
  if (seen.size > MAX_SELECTABLE_FIELDS) {
    errors.push(fieldError.tooMany(path, seen.size, MAX_SELECTABLE_FIELDS));
  }
  return errors;
}

/** Returns the declared type of a field such as `.spec.name`, or undefined if it is not declared. */
function typeAt(schema: unknown, jsonPath: string): string | undefined {
  if (!jsonPath.startsWith('.')) return undefined;
  let current = schema;
  for (const name of jsonPath.slice(1).split('.')) {
    if (!isRecord(current)) return undefined;
    current = new Map(propertiesOf(current)).get(name);
  }
  return isRecord(current) ? typeOf(current) : undefined;
}

function isSimplePath(jsonPath: string): boolean {
  return jsonPath.startsWith('.');
}

function notSimple(path: string, jsonPath: string): FieldError {
  return fieldError.invalid(path, jsonPath, 'must be a simple json path starting with .');
}
