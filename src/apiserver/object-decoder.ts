import type { ManagedFieldsEntry, ObjectMeta, OwnerReference } from '../api/object.ts';
import type { Call } from './call.ts';
import { apiVersionIn } from './negotiation.ts';
import type { ApiObject, ResourceDefinition } from './resource-definition.ts';
import { isObject } from './schema/json-value.ts';
import { prune } from './schema/prune.ts';
import { badRequest } from './status-error.ts';

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

/** How a field of metadata must be formed. */
type Shape = 'string' | 'integer' | 'strings' | 'map' | 'owners' | 'entries';

const METADATA_SHAPES: ReadonlyMap<string, Shape> = new Map<keyof ObjectMeta, Shape>([
  ['name', 'string'],
  ['generateName', 'string'],
  ['namespace', 'string'],
  ['selfLink', 'string'],
  ['uid', 'string'],
  ['resourceVersion', 'string'],
  ['generation', 'integer'],
  ['creationTimestamp', 'string'],
  ['deletionTimestamp', 'string'],
  ['deletionGracePeriodSeconds', 'integer'],
  ['labels', 'map'],
  ['annotations', 'map'],
  ['ownerReferences', 'owners'],
  ['finalizers', 'strings'],
  ['managedFields', 'entries'],
]);

const OWNER_FIELDS: readonly (keyof OwnerReference)[] = ['apiVersion', 'kind', 'name', 'uid'];

/** @throws {StatusError} 400 unless the query's `fieldValidation` is one of the three */
export function fieldValidationOf({ info }: Call): FieldValidation {
  const value = info.query.get('fieldValidation') || 'Warn';
  if (value === 'Ignore' || value === 'Warn' || value === 'Strict') return value;
  throw badRequest(
    `fieldValidation: Unsupported value: ${JSON.stringify(value)}: supported values: "", "Ignore", "Strict", "Warn"`,
  );
}

/**
 * A body as an object of the kind that the path says: identity and metadata are well-formed, fields
 * that the schema does not know are gone.
 *
 * @returns the object, and what was dropped or odd about it: `unknown field "spec.x"`
 * @throws {StatusError} 400 if it is of another kind, or not an object of any
 */
export function decodeObject(
  body: Record<string, unknown>,
  definition: ResourceDefinition,
): { object: ApiObject; oddities: string[] } {
  requireKind(body, definition);
  const dropped: string[] = [];
  const metadata = decodeMetadata(body['metadata'], definition, dropped);
  const { apiVersion: _version, kind: _kind, metadata: _metadata, ...rest } = body;
  const object: ApiObject = {
    apiVersion: apiVersionIn(definition),
    kind: definition.kind,
    metadata,
    ...rest,
  };
  if (definition.schema) dropped.push(...prune(object, definition.schema));
  return { object, oddities: dropped.map((path) => `unknown field ${JSON.stringify(path)}`) };
}

/**
 * Does with unknown fields what the client asked for.
 *
 * @throws {StatusError} what `refuse` makes of them, under Strict
 */
export function reportOddities(
  call: Call,
  oddities: readonly string[],
  refuse: (message: string) => Error,
): void {
  if (oddities.length === 0) return;
  switch (fieldValidationOf(call)) {
    case 'Ignore':
      return;
    case 'Warn':
      call.warnings.push(...oddities);
      return;
    case 'Strict':
      throw refuse(`strict decoding error: ${oddities.join(', ')}`);
  }
}

/** The 400 for a body that is not of its kind. */
export function cannotBeHandled(definition: ResourceDefinition, why: string): Error {
  const { kind, version } = definition;
  return badRequest(
    `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${why}`,
  );
}

function requireKind(body: Record<string, unknown>, definition: ResourceDefinition): void {
  const expected = apiVersionIn(definition);
  const { apiVersion, kind } = body;
  // Built-in kinds may leave out what the path says already.
  const lenient = !definition.custom;
  if (kind === undefined || kind === '') {
    if (!lenient) throw badRequest(`Object 'Kind' is missing in '${excerpt(body)}'`);
  } else if (kind !== definition.kind) {
    throw badRequest(
      `${shown(kind)} in version ${JSON.stringify(definition.version)} cannot be handled as a ${definition.kind}: the kind in the data (${shown(kind)}) does not match the expected kind (${definition.kind})`,
    );
  }
  if (apiVersion === undefined || apiVersion === '') {
    if (!lenient) throw badRequest(`Object 'apiVersion' is missing in '${excerpt(body)}'`);
  } else if (apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${shown(apiVersion)}) does not match the expected API version (${expected})`,
    );
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function excerpt(body: Record<string, unknown>): string {
  const text = JSON.stringify(body);
  return text.length > 500 ? `${text.slice(0, 500)}…` : text;
}

function decodeMetadata(
  value: unknown,
  definition: ResourceDefinition,
  dropped: string[],
): ObjectMeta {
  if (value !== undefined && value !== null && !isObject(value)) {
    throw cannotBeHandled(definition, mismatch('metadata', value, 'ObjectMeta'));
  }
  const metadata: Record<string, unknown> = { name: '' };
  for (const [field, member] of Object.entries(value ?? {})) {
    const shape = METADATA_SHAPES.get(field);
    if (!shape) dropped.push(`metadata.${field}`);
    else if (member !== null && member !== undefined) {
      const problem = shapeProblem(`metadata.${field}`, member, shape);
      if (problem) throw cannotBeHandled(definition, problem);
      if (!isEmpty(member)) metadata[field] = member;
    }
  }
  delete metadata['selfLink'];
  return metadata as Partial<ObjectMeta> as ObjectMeta;
}

/** Empty members are left out of what is stored, as Go's `omitempty` does. */
function isEmpty(member: unknown): boolean {
  if (member === '') return true;
  return typeof member === 'object' && member !== null && Object.keys(member).length === 0;
}

function shapeProblem(path: string, value: unknown, shape: Shape): string | undefined {
  switch (shape) {
    case 'string':
      return typeof value === 'string' ? undefined : mismatch(path, value, 'string');
    case 'integer':
      return Number.isSafeInteger(value) ? undefined : mismatch(path, value, 'int64');
    case 'strings':
      return Array.isArray(value) && value.every((item) => typeof item === 'string')
        ? undefined
        : mismatch(path, value, '[]string');
    case 'map':
      return isObject(value) && Object.values(value).every((item) => typeof item === 'string')
        ? undefined
        : mismatch(path, value, 'map[string]string');
    case 'owners':
      return Array.isArray(value) && value.every(isOwner)
        ? undefined
        : mismatch(path, value, '[]v1.OwnerReference');
    case 'entries':
      return Array.isArray(value) && value.every(isEntry)
        ? undefined
        : mismatch(path, value, '[]v1.ManagedFieldsEntry');
  }
}

function isOwner(value: unknown): boolean {
  return (
    isObject(value) &&
    OWNER_FIELDS.every((field) => value[field] === undefined || typeof value[field] === 'string') &&
    ['controller', 'blockOwnerDeletion'].every((field) =>
      ['undefined', 'boolean'].includes(value[field] === null ? 'undefined' : typeof value[field]),
    )
  );
}

function isEntry(value: unknown): value is ManagedFieldsEntry {
  if (!isObject(value)) return false;
  const { fieldsV1, ...rest } = value;
  return (
    (fieldsV1 === undefined || isObject(fieldsV1)) &&
    Object.values(rest).every((member) => typeof member === 'string')
  );
}

function mismatch(path: string, value: unknown, type: string): string {
  const got = Array.isArray(value) ? 'array' : isObject(value) ? 'object' : typeof value;
  return `json: cannot unmarshal ${got} into Go struct field ObjectMeta.${path} of type ${type}`;
}
