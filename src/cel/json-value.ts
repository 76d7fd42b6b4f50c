import type { JsonObject } from '../util/json-value.ts';
import { own, setOwn } from '../util/json-value.ts';
import { isRecord } from '../util/values.ts';
import { toBase64 } from '../util/bytes.ts';
import { formatCelDuration, formatTimestamp } from './values/time.ts';
import type { Dictionary, Result, Value } from './values/value.ts';
import {
  Duration,
  EvaluationError,
  List,
  Timestamp,
  Uint,
  isDictionary,
  typeNameOf,
} from './values/value.ts';

/** Returns the CEL value of JSON without a schema, which has the type `dyn`. Members are read lazily. */
export function jsonValue(json: unknown): Value {
  if (json === undefined || json === null) return null;
  if (Array.isArray(json)) return new List(json.length, (index) => jsonValue(json[index]));
  if (isRecord(json)) return new JsonMap(json);
  switch (typeof json) {
    case 'number':
      return Number.isSafeInteger(json) ? BigInt(json) : json;
    case 'boolean':
    case 'string':
      return json;
    default:
      throw new TypeError(`${typeof json} is not a type of JSON`);
  }
}

/**
 * Returns a CEL value as JSON.
 *
 * @throws {TypeError} if it contains a value that JSON does not have, or a map with keys that are not strings
 */
export function jsonOf(value: Result): unknown {
  if (value instanceof EvaluationError) throw new TypeError(value.message);
  if (value instanceof List) return Array.from(value, jsonOf);
  if (value instanceof Uint) return Number(value.value);
  if (value instanceof Uint8Array) return toBase64(value);
  if (value instanceof Timestamp) return formatTimestamp(value.nanos);
  if (value instanceof Duration) return formatCelDuration(value.nanos);
  if (isDictionary(value)) {
    const object: JsonObject = {};
    for (const key of value.keys()) {
      if (typeof key !== 'string') throw new TypeError('a key of a map is not a string');
      setOwn(object, key, jsonOf(value.get(key) ?? null));
    }
    return object;
  }
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value;
  throw new TypeError(`${typeNameOf(value)} is not a type of JSON`);
}

class JsonMap implements Dictionary {
  readonly kind = 'dictionary';
  readonly #object: JsonObject;

  constructor(object: JsonObject) {
    this.#object = object;
  }

  get size(): number {
    return Object.keys(this.#object).length;
  }

  get(key: Value): Result | undefined {
    if (typeof key !== 'string') return undefined;
    const member = own(this.#object, key);
    return member === undefined ? undefined : jsonValue(member);
  }

  keys(): string[] {
    return Object.keys(this.#object);
  }
}
