import type { JsonObject } from '../json-value.ts';
import { own } from '../json-value.ts';
import { isRecord } from '../../../util/values.ts';
import type { Dictionary, Result, Value } from './value.ts';
import { List } from './value.ts';

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
