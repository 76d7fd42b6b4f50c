import type { FieldError } from '../../api/field-error.ts';
import { fieldError, MAX_FIELD_ERRORS } from '../../api/field-error.ts';
import type { ObjectMeta } from '../../api/object.ts';
import { isRecord } from '../../util/values.ts';
import { metadataProblem } from './go-types.ts';
import { validateMetadata } from '../objects/object-metadata.ts';
import { nameProblems } from '../../api/object-names.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { fieldSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { own, requireDepth } from '../../util/json-value.ts';
import { validateStructure } from '../schema/validate.ts';

/**
 * Validates a value of a custom resource: its structure, and `apiVersion`, `kind` and `metadata` of embedded
 * resources (`x-kubernetes-embedded-resource`). The server validates those of the object itself.
 *
 * @param previous the value before an update; its invalid parts may remain
 */
export function validateCustom(
  value: unknown,
  schema: JsonSchema,
  path: string = '',
  previous?: unknown,
): readonly FieldError[] {
  const errors = [...validateStructure(value, schema, path, previous)];
  checkEmbedded(value, schema, path, (error) => {
    if (errors.length < MAX_FIELD_ERRORS) errors.push(error);
  });
  return errors;
}

/** Returns the first error of a field of an embedded resource that Go does not decode, if any. */
export function embeddedTypeError(value: unknown, schema: JsonSchema): FieldError | undefined {
  let first: FieldError | undefined;
  checkEmbedded(value, schema, '', (error, isOfType) => {
    if (isOfType) first ??= error;
  });
  return first;
}

/** @param isOfType whether Go does not decode the field */
type Report = (error: FieldError, isOfType?: boolean) => void;

function checkEmbedded(value: unknown, schema: JsonSchema, path: string, report: Report): void {
  if (hasEmbedded(schema)) walk(value, schema, path, report, 0);
}

function walk(
  value: unknown,
  schema: JsonSchema | undefined,
  path: string,
  report: Report,
  depth: number,
): void {
  if (typeof value !== 'object' || value === null || !schema) return;
  requireDepth(depth);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      walk(value[index], schema.items, `${path}[${index}]`, report, depth + 1);
    }
    return;
  }
  if (!isRecord(value)) return;
  if (schema['x-kubernetes-embedded-resource']) checkResource(value, path, report);
  for (const [key, member] of Object.entries(value)) {
    walk(member, fieldSchema(schema, key), path === '' ? key : `${path}.${key}`, report, depth + 1);
  }
}

function checkResource(resource: JsonObject, path: string, report: Report): void {
  const prefix = path === '' ? '' : `${path}.`;
  for (const name of ['apiVersion', 'kind']) {
    const at = `${prefix}${name}`;
    const value = own(resource, name);
    if (value === undefined) report(fieldError.required(at));
    else if (typeof value !== 'string') {
      report(fieldError.invalid(at, value, 'must be a string'), true);
    } else if (value === '') report(fieldError.invalid(at, value, 'must not be empty'));
    else if (name === 'kind') checkKind(value, at, report);
    else if (value.split('/').length > 2) {
      report(fieldError.invalid(at, value, `unexpected GroupVersion string: ${value}`));
    }
  }
  const metadata = own(resource, 'metadata');
  if (metadata === undefined || metadata === null) return;
  const problem = metadataProblem(metadata);
  if (problem) report(fieldError.invalid(`${prefix}metadata`, metadata, problem), true);
  else {
    const named = { name: 'fakename', ...metadata } as ObjectMeta;
    for (const error of validateMetadata(named, named.namespace !== undefined, 'pathSegment')) {
      report({ ...error, field: `${prefix}${error.field}` });
    }
  }
}

function checkKind(kind: string, path: string, report: Report): void {
  const problems = nameProblems(kind.toLowerCase(), 'dns1035Label');
  if (problems.length === 0) return;
  const detail = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
  report(fieldError.invalid(path, kind, detail));
}

const embedded = new WeakMap<JsonSchema, boolean>();

/** Whether a schema has embedded resources; few have. Schemas are immutable and may be cyclic. */
export function hasEmbedded(
  schema: JsonSchema,
  visited: Set<JsonSchema> = new Set<JsonSchema>(),
): boolean {
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
