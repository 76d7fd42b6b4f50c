import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import type { ObjectMeta } from '../../api/object.ts';
import { isRecord } from '../../util/values.ts';
import { metadataProblem } from '../object-decoder.ts';
import { validateMetadata } from '../object-metadata.ts';
import { nameProblems } from '../object-names.ts';
import type { JsonSchema } from './json-schema.ts';
import { fieldSchema } from './json-schema.ts';
import type { JsonObject } from './json-value.ts';
import { own, requireDepth } from './json-value.ts';

/**
 * Validates `apiVersion`, `kind` and `metadata` of embedded resources
 * (`x-kubernetes-embedded-resource`). The server validates those of the object itself.
 */
export function validateEmbedded(
  value: unknown,
  schema: JsonSchema,
  path: string = '',
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (hasEmbedded(schema, new Set())) walk(value, schema, path, errors, 0);
  return errors;
}

function walk(
  value: unknown,
  schema: JsonSchema | undefined,
  path: string,
  errors: FieldError[],
  depth: number,
): void {
  if (typeof value !== 'object' || value === null || !schema) return;
  requireDepth(depth);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      walk(value[index], schema.items, `${path}[${index}]`, errors, depth + 1);
    }
    return;
  }
  if (!isRecord(value)) return;
  if (schema['x-kubernetes-embedded-resource']) checkResource(value, path, errors);
  for (const [key, member] of Object.entries(value)) {
    walk(member, fieldSchema(schema, key), path === '' ? key : `${path}.${key}`, errors, depth + 1);
  }
}

function checkResource(resource: JsonObject, path: string, errors: FieldError[]): void {
  const prefix = path === '' ? '' : `${path}.`;
  for (const name of ['apiVersion', 'kind']) {
    const at = `${prefix}${name}`;
    const value = own(resource, name);
    if (value === undefined) errors.push(fieldError.required(at));
    else if (typeof value !== 'string') {
      errors.push(fieldError.invalid(at, value, 'must be a string'));
    } else if (value === '') errors.push(fieldError.invalid(at, value, 'must not be empty'));
    else if (name === 'kind') checkKind(value, at, errors);
    else if (value.split('/').length > 2) {
      errors.push(fieldError.invalid(at, value, `unexpected GroupVersion string: ${value}`));
    }
  }
  const metadata = own(resource, 'metadata');
  if (metadata === undefined || metadata === null) return;
  const problem = metadataProblem(metadata);
  if (problem !== undefined)
    errors.push(fieldError.invalid(`${prefix}metadata`, metadata, problem));
  else {
    const named = { name: 'fakename', ...metadata } as ObjectMeta;
    for (const error of validateMetadata(named, named.namespace !== undefined, 'pathSegment')) {
      errors.push({ ...error, field: `${prefix}${error.field}` });
    }
  }
}

function checkKind(kind: string, path: string, errors: FieldError[]): void {
  const problems = nameProblems(kind.toLowerCase(), 'dns1035Label');
  if (problems.length === 0) return;
  const detail = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
  errors.push(fieldError.invalid(path, kind, detail));
}

const embedded = new WeakMap<JsonSchema, boolean>();

/** Whether a schema has embedded resources; few have. Schemas are immutable and may be cyclic. */
function hasEmbedded(schema: JsonSchema, visited: Set<JsonSchema>): boolean {
  const known = embedded.get(schema);
  if (known !== undefined) return known;
  if (visited.has(schema)) return false;
  visited.add(schema);
  const { additionalProperties } = schema;
  const found =
    schema['x-kubernetes-embedded-resource'] === true ||
    Object.values(schema.properties ?? {}).some((field) => hasEmbedded(field, visited)) ||
    (schema.items !== undefined && hasEmbedded(schema.items, visited)) ||
    (typeof additionalProperties === 'object' && hasEmbedded(additionalProperties, visited));
  // Inside a cycle a negative result may depend on an unfinished parent; only the root's is final.
  if (found || visited.values().next().value === schema) embedded.set(schema, found);
  return found;
}
