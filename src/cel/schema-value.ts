import { oncePerObject } from '../util/memo.ts';
import type { JsonSchema } from '../api/json-schema.ts';
import { declaredField } from '../api/json-schema.ts';
import type { JsonObject } from '../util/json-value.ts';
import { own } from '../util/json-value.ts';
import { isRecord } from '../util/values.ts';
import { fromBase64 } from '../util/bytes.ts';
import { escapeName, fieldOf, isEmbedded, withTypeAndName } from './schema-type.ts';
import { parseWordyDuration } from '../util/go-duration.ts';
import { parseTimestamp } from './values/time.ts';
import type { Dictionary, ListKind, Result, Value } from './values/value.ts';
import { Duration, EvaluationError, List, Timestamp } from './values/value.ts';

/** Returns the CEL value of JSON. Members are read lazily, without copies. */
export function toValue(json: unknown, schema: JsonSchema): Result {
  if (json === null || json === undefined) {
    return schema.nullable
      ? null
      : new EvaluationError('invalid data, got null for schema with nullable=false');
  }
  if (schema['x-kubernetes-int-or-string']) {
    if (typeof json === 'string') return json;
    return Number.isInteger(json)
      ? BigInt(json as number)
      : invalid('XIntOrString value to be either a string or integer', json);
  }
  switch (schema.type) {
    case 'object':
      return isRecord(json) ? toDictionary(json, schema) : invalid('a map', json);
    case 'array':
      return Array.isArray(json) ? toList(json, schema) : invalid('an array', json);
    case 'string':
      return typeof json === 'string' ? toText(json, schema) : invalid('string', json);
    case 'number':
      return typeof json === 'number' ? json : invalid('float', json);
    case 'integer':
      return Number.isInteger(json) ? BigInt(json as number) : invalid('int', json);
    case 'boolean':
      return typeof json === 'boolean' ? json : invalid('bool', json);
    default:
      return new EvaluationError(
        `invalid type, expected object, array, number, integer, boolean or string`,
      );
  }
}

function invalid(expected: string, json: unknown): EvaluationError {
  return new EvaluationError(`invalid data, expected ${expected}, got ${goTypeOf(json)}`);
}

function goTypeOf(json: unknown): string {
  if (typeof json === 'number') return Number.isInteger(json) ? 'int64' : 'float64';
  if (typeof json === 'object')
    return Array.isArray(json) ? '[]interface {}' : 'map[string]interface {}';
  return typeof json === 'boolean' ? 'bool' : typeof json;
}

function toText(text: string, { format }: JsonSchema): Result {
  switch (format) {
    case 'duration': {
      const nanos = parseWordyDuration(text);
      return nanos === undefined
        ? new EvaluationError(`Invalid duration ${text}`)
        : new Duration(nanos);
    }
    case 'date':
    case 'date-time': {
      const nanos = parseTimestamp(text);
      return nanos === undefined
        ? new EvaluationError(`Invalid ${format} formatted string ${text}`)
        : new Timestamp(nanos);
    }
    case 'byte':
      return fromBase64(text);
    default:
      return text;
  }
}

function toList(items: readonly unknown[], schema: JsonSchema): Result {
  const { items: itemSchema } = schema;
  if (!itemSchema)
    return new EvaluationError('invalid array type, expected Items with a non-empty Schema');
  return new List(items.length, (index) => toValue(items[index], itemSchema), kindOf(schema));
}

function kindOf(schema: JsonSchema): ListKind {
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return 'set';
    case 'map': {
      const keys = schema['x-kubernetes-list-map-keys'] ?? [];
      return { keys: keys.map((key) => escapeName(key) ?? key) };
    }
    default:
      return 'atomic';
  }
}

function toDictionary(object: JsonObject, schema: JsonSchema): Dictionary {
  const { additionalProperties: values } = schema;
  if (isEmbedded(schema)) return new ObjectValue(object, withTypeAndName(schema));
  if (schema.properties === undefined && typeof values === 'object') {
    return new MapValue(object, values);
  }
  return new ObjectValue(object, schema);
}

/** Number of members of an object, cached because counting takes linear time. */
const sizeOfObject = oncePerObject((object: JsonObject) => Object.keys(object).length);

/** A map by its schema, with unescaped keys. */
class MapValue implements Dictionary {
  readonly kind = 'dictionary';
  readonly #object: JsonObject;
  readonly #values: JsonSchema;

  constructor(object: JsonObject, values: JsonSchema) {
    this.#object = object;
    this.#values = values;
  }

  get size(): number {
    return sizeOfObject(this.#object);
  }

  get(key: Value): Result | undefined {
    if (typeof key !== 'string' || !Object.hasOwn(this.#object, key)) return undefined;
    return toValue(own(this.#object, key), this.#values);
  }

  keys(): string[] {
    return Object.keys(this.#object);
  }
}

/** An object by its schema. Its fields have escaped names; undeclared fields are not accessible. */
class ObjectValue implements Dictionary {
  readonly kind = 'dictionary';
  readonly #object: JsonObject;
  readonly #schema: JsonSchema;

  constructor(object: JsonObject, schema: JsonSchema) {
    this.#object = object;
    this.#schema = schema;
  }

  get size(): number {
    return sizeOfObject(this.#object);
  }

  /** A null field counts as absent. */
  get(key: Value): Result | undefined {
    if (typeof key !== 'string') return undefined;
    const name = fieldOf(namesOf(this.#schema), key);
    if (name === undefined) return undefined;
    const json = own(this.#object, name);
    const field = declaredField(this.#schema, name);
    if (json === undefined || json === null || !field) return undefined;
    return toValue(json, field);
  }

  keys(): string[] {
    return [...namesOf(this.#schema)]
      .filter(([, name]) => Object.hasOwn(this.#object, name))
      .map(([escaped]) => escaped);
  }

  unseen(): JsonObject {
    const seen = new Set(namesOf(this.#schema).values());
    return Object.fromEntries(Object.entries(this.#object).filter(([name]) => !seen.has(name)));
  }
}

/** Property names by escaped name. */
const namesOf = oncePerObject((schema: JsonSchema): ReadonlyMap<string, string> => {
  return new Map(
    Object.keys(schema.properties ?? {}).flatMap((name) => {
      const escaped = escapeName(name);
      return escaped === undefined ? [] : [[escaped, name] as const];
    }),
  );
});
