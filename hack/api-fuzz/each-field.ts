/** Sequences of creates, one for each field of the built-in kinds and each of a few values. */
import { MICRO_TIME, TIME } from '../../src/api/formats.ts';
import type { JsonSchema } from '../../src/api/json-schema.ts';
import { BUILTIN_FUZZ_KINDS } from './builtin-kinds.ts';
import type { FuzzKind } from './kinds.ts';
import type { FuzzRequest, Json } from './requests.ts';
import type { Change } from './schema-values.ts';

/** Requests of a sequence, whose objects are in one namespace and are not stored. */
const LENGTH = 100;

/** Levels of fields: the schemas of CRDs contain themselves. */
const MAX_DEPTH = 12;

/**
 * Returns the sequences of the kinds whose API version and resource, `apps/v1/deployments`, match. A template of Pods has
 * the fields of a Pod, which only Pods and Deployments are created with.
 */
export function* eachField(pattern: RegExp): Generator<readonly FuzzRequest[]> {
  for (const kind of BUILTIN_FUZZ_KINDS) {
    if (!pattern.test(`${kind.apiVersion}/${kind.resource}`)) continue;
    const requests = [...changesOf(kind)].map((change) => requestOf(kind, change));
    for (let first = 0; first < requests.length; first += LENGTH) {
      yield requests.slice(first, first + LENGTH);
    }
  }
}

function* changesOf({ schema, resource }: FuzzKind): Generator<Change> {
  for (const change of valuesOf(schema ?? {}, [])) {
    const [path] = change;
    const isOfPod =
      path.includes('template') && path.lastIndexOf('spec') > path.indexOf('template');
    if (path[0] === 'status' || path.length === 0) continue;
    if (!isOfPod || resource === 'deployments') yield change;
  }
}

function requestOf(
  { apiVersion, kind, resource, base, isClusterScoped, names }: FuzzKind,
  [path, value]: Change,
): FuzzRequest {
  const root = apiVersion.includes('/') ? '/apis/' : '/api/';
  const place = isClusterScoped ? '' : '/namespaces/$ns';
  const list = `${root}${apiVersion}${place}/${resource}`;
  const object = { apiVersion, kind, metadata: { name: names?.[0] ?? 'sample' }, ...base };
  return {
    method: 'POST',
    path: `${list}?dryRun=All`,
    subject: list,
    body: withValue(object, path, value),
    field: `${path.join('.')} = ${JSON.stringify(value).slice(0, 40)}`,
  };
}

function withValue(object: Json, [field, ...rest]: readonly string[], value: Json): Json {
  if (field === undefined) return value;
  if (/^\d+$/.test(field)) {
    const [first, ...others] = Array.isArray(object) ? object : [{}];
    return [withValue(first, rest, value), ...others];
  }
  const parent =
    typeof object === 'object' && object !== null && !Array.isArray(object) ? object : {};
  return { ...parent, [field]: withValue(parent[field], rest, value) };
}

/** Returns the values for a field and for all fields in it. */
function* valuesOf(schema: JsonSchema, path: readonly string[]): Generator<Change> {
  if (path.length > MAX_DEPTH) return;
  const { items, properties, additionalProperties } = schema;
  if (items) {
    const isText = items.type === 'string';
    for (const value of [[], [null], ...(isText ? [[''], ['-'], ['a', 'a']] : [[{}]])]) {
      yield [path, value];
    }
    for (const [name, field] of Object.entries(items.properties ?? {})) {
      yield* valuesOf(field, [...path, '0', name]);
    }
  } else if (properties) {
    yield [path, {}];
    for (const [name, field] of Object.entries(properties)) {
      if (!path.includes(name) || path.length < 6) yield* valuesOf(field, [...path, name]);
    }
  } else if (typeof additionalProperties === 'object') {
    yield [path, {}];
    for (const value of valuesOfMap(additionalProperties)) {
      for (const key of ['a', 'A b', 'x.y/Z']) yield [path, { [key]: value }];
    }
  } else for (const value of scalarsOf(schema)) yield [path, value];
}

function valuesOfMap({ type, format, properties }: JsonSchema): readonly Json[] {
  if (properties) return [{}];
  if (type === 'array') return [[], ['a']];
  return type === 'string' && format === undefined ? ['b', ''] : ['1', '-1'];
}

const TEXTS = ['', '-', 'a', 'A b', '/x', 'a/b', 'x'.repeat(260)];

function scalarsOf({ type, format, enum: allowed = [] }: JsonSchema): readonly Json[] {
  switch (type) {
    case 'string':
      return format === TIME || format === MICRO_TIME
        ? ['', null, '2020-01-01T00:00:00Z']
        : [...TEXTS, ...allowed];
    case 'integer':
    case 'number':
      return [-1, 0, 1, 70_000, 2_147_483_647];
    case 'boolean':
      return [true, false];
    default:
      // Quantities, and integers that may be texts.
      return ['1', '-1', 1, -1, '', 'a', '50%', {}];
  }
}
