import type { StoredObject } from './resource-definition.ts';
import type { ScaleFieldPaths } from './subresources.ts';
import { fieldPath } from './field-path.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import { goJson, goNumber } from '../../util/go-format.ts';
import { own } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';

const MAX_INT32 = 2 ** 31 - 1;

/**
 * Validates the fields at the paths of a CRD's scale subresource. As upstream, this check is
 * independent of the schema, so that one mistake can cause two errors.
 */
export function validateScaleValues(object: StoredObject, paths: ScaleFieldPaths): FieldError[] {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = paths;
  return [
    ...validateReplicas(object, specReplicasPath),
    ...validateReplicas(object, statusReplicasPath),
    ...(labelSelectorPath ? validateSelector(object, labelSelectorPath) : []),
  ];
}

function validateReplicas(object: StoredObject, path: string): FieldError[] {
  const { value, problem } = read(object, path, 'int64', Number.isSafeInteger);
  if (problem) return [fieldError.invalid(path, 0, problem)];
  const replicas = Number(value ?? 0);
  if (replicas < 0) return [fieldError.invalid(path, replicas, 'should be a non-negative integer')];
  if (replicas <= MAX_INT32) return [];
  return [fieldError.invalid(path, replicas, `should be less than or equal to ${MAX_INT32}`)];
}

function validateSelector(object: StoredObject, path: string): FieldError[] {
  const { problem } = read(object, path, 'string', (value) => typeof value === 'string');
  return problem ? [fieldError.invalid(path, '', problem)] : [];
}

/** Reads the value at a path: undefined if it is absent, a problem if it has another type. */
function read(
  object: StoredObject,
  path: string,
  type: string,
  isOfType: (value: unknown) => boolean,
): { readonly value?: unknown; readonly problem?: string } {
  const fields = fieldPath(path);
  let value: unknown = object;
  for (const [depth, field] of fields.entries()) {
    if (value === null) return {};
    if (!isRecord(value)) {
      const at = fields.slice(0, depth + 1);
      return { problem: accessorError(at, value, 'map[string]interface{}') };
    }
    if (!Object.hasOwn(value, field)) return {};
    value = own(value, field);
  }
  return isOfType(value) ? { value } : { problem: accessorError(fields, value, type) };
}

function accessorError(fields: readonly string[], value: unknown, expected: string): string {
  return `.${fields.join('.')} accessor error: ${goText(value)} is of the type ${goType(value)}, expected ${expected}`;
}

function goText(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      return goNumber(value);
    default:
      return value === null ? '<nil>' : goJson(value);
  }
}

function goType(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'number':
      return Number.isSafeInteger(value) ? 'int64' : 'float64';
    case 'boolean':
      return 'bool';
    default:
      if (value === null) return '<nil>';
      return Array.isArray(value) ? '[]interface {}' : 'map[string]interface{}';
  }
}
