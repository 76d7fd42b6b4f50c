import type { FieldError } from './field-error.ts';
import { fieldError } from './field-error.ts';
import type { JsonSchema } from './json-schema.ts';
import { fieldSchema } from './json-schema.ts';
import type { JsonObject } from './json-value.ts';
import { own, requireDepth } from './json-value.ts';
import { isRecord } from '../../util/values.ts';

/**
 * What is wrong with the type and metadata of embedded resources
 * (`x-kubernetes-embedded-resource`). Those of the object itself are the server's business.
 */
export function validateEmbedded(
  value: unknown,
  schema: JsonSchema,
  path: string,
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
  for (const name of ['apiVersion', 'kind']) {
    const at = path === '' ? name : `${path}.${name}`;
    const value = own(resource, name);
    if (value === undefined) errors.push(fieldError.required(at));
    else if (typeof value !== 'string') {
      errors.push(fieldError.invalid(at, value, 'must be a string'));
    } else if (value === '') errors.push(fieldError.invalid(at, value, 'must not be empty'));
  }
  const metadata = own(resource, 'metadata');
  if (metadata !== undefined && metadata !== null && !isRecord(metadata)) {
    const at = path === '' ? 'metadata' : `${path}.metadata`;
    errors.push(fieldError.invalid(at, metadata, 'must be an object'));
  }
}

const embedded = new WeakMap<JsonSchema, boolean>();

/** Few schemas have embedded resources: looked up once. Schemas do not change, and may be cyclic. */
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
  // Within a cycle a "no" may be of a question still open further up; only the root's is final.
  if (found || visited.values().next().value === schema) embedded.set(schema, found);
  return found;
}
