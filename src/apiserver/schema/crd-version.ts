import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import { Findings } from './findings.ts';
import { own, textAt } from './json-value.ts';
import type { JsonObject } from './json-value.ts';
import { isRecord } from '../../util/values.ts';
import { propertiesOf, typeOf } from './structural-schema.ts';

/** Validates the subresources of a version. */
export function checkSubresources(subresources: JsonObject, path: string): FieldError[] {
  const scale = own(subresources, 'scale');
  if (!isRecord(scale)) return [];
  const findings = new Findings();
  for (const [name, prefix] of [
    ['specReplicasPath', '.spec'],
    ['statusReplicasPath', '.status'],
  ] as const) {
    const at = `${path}.scale.${name}`;
    const value = textAt(scale, name);
    if (value === '') findings.required(at);
    else if (!isSimplePath(value)) findings.invalid(at, value, NOT_SIMPLE);
    else if (!value.startsWith(`${prefix}.`)) {
      findings.invalid(at, value, `should be a json path under ${prefix}`);
    }
  }
  const at = `${path}.scale.labelSelectorPath`;
  const selector = textAt(scale, 'labelSelectorPath');
  if (selector === '') return findings.errors;
  if (!isSimplePath(selector)) findings.invalid(at, selector, NOT_SIMPLE);
  else if (!/^\.(?:spec|status)\./.test(selector)) {
    const detail = 'should be a json path under either .spec or .status';
    findings.invalid(at, selector, detail);
  }
  return findings.errors;
}

const NOT_SIMPLE = 'must be a simple json path starting with .';

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
  const findings = new Findings();
  for (const [index, column] of columns.entries()) {
    const at = `${path}[${index}]`;
    if (textAt(column, 'name') === '') findings.required(`${at}.name`);
    const type = textAt(column, 'type');
    const types = `must be one of ${COLUMN_TYPES.join(',')}`;
    if (type === '') findings.required(`${at}.type`, types);
    else if (!COLUMN_TYPES.includes(type)) {
      findings.invalid(`${at}.type`, type, types);
    }
    const format = textAt(column, 'format');
    if (format !== '' && !COLUMN_FORMATS.includes(format)) {
      const detail = `must be one of ${COLUMN_FORMATS.join(',')}`;
      findings.invalid(`${at}.format`, format, detail);
    }
    const jsonPath = textAt(column, 'jsonPath');
    if (jsonPath === '') findings.required(`${at}.JSONPath`);
    else if (!isSimplePath(jsonPath)) findings.invalid(`${at}.JSONPath`, jsonPath, NOT_SIMPLE);
  }
  return findings.errors;
}

const MAX_SELECTABLE_FIELDS = 8;

/** Validates the selectable fields of a version. */
export function checkSelectableFields(
  fields: readonly JsonObject[],
  schema: unknown,
  path: string,
): FieldError[] {
  const findings = new Findings();
  const seen = new Set<string>();
  for (const [index, field] of fields.entries()) {
    const at = `${path}[${index}].jsonPath`;
    const jsonPath = textAt(field, 'jsonPath');
    if (jsonPath === '') {
      findings.required(at);
      continue;
    }
    const type = typeAt(schema, jsonPath);
    if (type === undefined) {
      const detail = 'is an invalid path: does not refer to a valid field';
      findings.invalid(at, jsonPath, detail);
      continue;
    }
    if (/^\.metadata(?:\.|$)/.test(jsonPath)) {
      findings.invalid(at, jsonPath, 'must not point to fields in metadata');
    }
    if (!['string', 'boolean', 'integer'].includes(type)) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      findings.invalid(at, jsonPath, detail);
    }
    if (seen.has(jsonPath)) findings.duplicate(at, jsonPath);
    seen.add(jsonPath);
  }
  if (seen.size > MAX_SELECTABLE_FIELDS) {
    findings.errors.push(fieldError.tooMany(path, seen.size, MAX_SELECTABLE_FIELDS));
  }
  return findings.errors;
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
