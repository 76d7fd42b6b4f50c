import type { CheckedObject } from '../objects/checked-object.ts';
import { isRecord } from '../../util/values.ts';
import { fieldError } from '../../api/field-error.ts';
import { propertiesOf, schemaTypeOf } from './structural-schema.ts';

/** Validates the subresources of a version. */
export function checkSubresources(subresources: CheckedObject): void {
  const scale = subresources.get('scale');
  if (!scale) return;
  for (const [name, prefix] of [
    ['specReplicasPath', '.spec'],
    ['statusReplicasPath', '.status'],
  ] as const) {
    const value = scale.text(name);
    if (value === '') scale.required(name);
    else if (!isSimplePath(value)) scale.invalid(name, NOT_SIMPLE);
    else if (!value.startsWith(`${prefix}.`)) {
      scale.invalid(name, `should be a json path under ${prefix}`);
    }
  }
  const selector = scale.text('labelSelectorPath');
  if (selector === '') return;
  if (!isSimplePath(selector)) scale.invalid('labelSelectorPath', NOT_SIMPLE);
  else if (!/^\.(?:spec|status)\./.test(selector)) {
    const detail = 'should be a json path under either .spec or .status';
    scale.invalid('labelSelectorPath', detail);
  }
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
export function checkColumns(columns: readonly CheckedObject[]): void {
  for (const column of columns) {
    if (column.text('name') === '') column.required('name');
    const type = column.text('type');
    const types = `must be one of ${COLUMN_TYPES.join(',')}`;
    if (type === '') column.required('type', types);
    else if (!COLUMN_TYPES.includes(type)) column.invalid('type', types);
    const format = column.text('format');
    if (format !== '' && !COLUMN_FORMATS.includes(format)) {
      column.invalid('format', `must be one of ${COLUMN_FORMATS.join(',')}`);
    }
    const jsonPath = column.text('jsonPath');
    if (jsonPath === '') column.required('JSONPath');
    else if (!isSimplePath(jsonPath)) column.invalid('JSONPath', NOT_SIMPLE, jsonPath);
  }
}

const MAX_SELECTABLE_FIELDS = 8;

/** Validates the selectable fields of a version, a list in its field `name`. */
export function checkSelectableFields(version: CheckedObject, name: string, schema: unknown): void {
  const seen = new Set<string>();
  for (const field of version.items(name)) {
    const jsonPath = field.text('jsonPath');
    if (jsonPath === '') {
      field.required('jsonPath');
      continue;
    }
    const type = typeAt(schema, jsonPath);
    if (type === undefined) {
      const why = /^[.[]/.test(jsonPath)
        ? 'does not refer to a valid field'
        : `expected [ or . but got: ${jsonPath.split(/[.[]/, 1)[0]}`;
      field.invalid('jsonPath', `is an invalid path: ${why}`);
      continue;
    }
    if (/^\.metadata(?:\.|$)/.test(jsonPath)) {
      field.invalid('jsonPath', 'must not point to fields in metadata');
    }
    if (!['string', 'boolean', 'integer'].includes(type)) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      field.invalid('jsonPath', detail);
    }
    field.requireUnique('jsonPath', seen);
  }
  if (seen.size > MAX_SELECTABLE_FIELDS) {
    version.errors.push(fieldError.tooMany(version.at(name), seen.size, MAX_SELECTABLE_FIELDS));
  }
}

/** Returns the declared type of a field such as `.spec.name`, or undefined if it is not declared. */
function typeAt(schema: unknown, jsonPath: string): string | undefined {
  if (!jsonPath.startsWith('.')) return undefined;
  let current = schema;
  for (const name of jsonPath.slice(1).split('.')) {
    if (!isRecord(current)) return undefined;
    current = new Map(propertiesOf(current)).get(name);
  }
  return isRecord(current) ? schemaTypeOf(current) : undefined;
}

function isSimplePath(jsonPath: string): boolean {
  return jsonPath.startsWith('.');
}
