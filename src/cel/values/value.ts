import type { CelType } from './type.ts';
import { formatType } from './type.ts';

/**
 * A CEL value. `int` is a bigint, `double` a number; other types are classes of this file. Functions
 * do not throw: an error is a `Failure`, which `||` and `&&` may ignore.
 */
export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | Uint
  | Timestamp
  | Duration
  | List
  | Dictionary
  | Optional
  | TypeValue
  | Opaque;

export type Result = Value | EvaluationError;

/** An evaluation error with upstream's text. */
export class EvaluationError {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

export const NO_OVERLOAD: EvaluationError = new EvaluationError('no such overload');

export class Uint {
  readonly value: bigint;

  constructor(value: bigint) {
    this.value = value;
  }
}

export class Timestamp {
  /** Nanoseconds since the Unix epoch. */
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class Duration {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class Optional {
  static readonly none: Optional = new Optional(undefined);
  readonly value: Value | undefined;

  constructor(value: Value | undefined) {
    this.value = value;
  }
}

export class TypeValue {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** A value of an extension type: an IP address, a URL, a quantity. */
export abstract class Opaque {
  abstract readonly type: CelType;
  /** Equal values have equal texts. */
  abstract readonly identity: string;
  /** Size for the cost of comparisons. */
  readonly size: number = 1;
}

/** The list type of a schema: items are compared by position, as a set, or by keys. */
export type ListKind = 'atomic' | 'set' | { readonly keys: readonly string[] };

/** A list with lazily created items. */
export class List {
  readonly size: number;
  readonly kind: ListKind;
  readonly #read: (index: number) => Result;

  constructor(size: number, read: (index: number) => Result, kind: ListKind = 'atomic') {
    this.size = size;
    this.kind = kind;
    this.#read = read;
  }

  static of(items: readonly Result[], kind: ListKind = 'atomic'): List {
    return new List(items.length, (index) => items[index] ?? null, kind);
  }

  /** `index` must be within the list. */
  at(index: number): Result {
    return this.#read(index);
  }

  *[Symbol.iterator](): Generator<Result> {
    for (let index = 0; index < this.size; index++) yield this.#read(index);
  }
}

/** A map, or an object with declared fields. */
export interface Dictionary {
  readonly kind: 'dictionary';
  readonly size: number;
  /** Returns undefined if the key is absent. */
  get(key: Value): Result | undefined;
  keys(): Iterable<Value>;
  /** Fields that expressions cannot access; they count in comparisons of the object. */
  unseen?(): Readonly<Record<string, unknown>>;
}

export function isDictionary(value: Result | undefined): value is Dictionary {
  return (
    typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'dictionary'
  );
}

/** A map created by an expression. Equal numbers of different types are one key. */
export class LiteralMap implements Dictionary {
  readonly kind = 'dictionary';
  readonly #members = new Map<string, readonly [key: Value, value: Value]>();

  get size(): number {
    return this.#members.size;
  }

  /** Returns false if the key is present. */
  add(key: Value, value: Value): boolean {
    const id = keyId(key);
    if (this.#members.has(id)) return false;
    this.#members.set(id, [key, value]);
    return true;
  }

  get(key: Value): Result | undefined {
    return this.#members.get(keyId(key))?.[1];
  }

  *keys(): Generator<Value> {
    for (const [key] of this.#members.values()) yield key;
  }
}

/** An object that an expression constructs: `Object.spec{replicas: 1}`. */
export class Constructed extends LiteralMap {
  /** `Object.spec` */
  readonly typeName: string;

  constructor(typeName: string) {
    super();
    this.typeName = typeName;
  }
}

function keyId(key: Value): string {
  if (typeof key === 'string') return `s${key}`;
  if (key instanceof Uint) return `n${key.value}`;
  return typeof key === 'bigint' || typeof key === 'number' ? `n${key}` : JSON.stringify(key);
}

/** Number of code points, which is the size of a string in CEL. */
export function textSize(text: string): number {
  if (text.length < LONG) return countPoints(text);
  if (text !== lastText) [lastText, lastSize] = [text, countPoints(text)];
  return lastSize;
}

/** Length from which the size of the last text is cached. */
const LONG = 1000;
let lastText = '';
let lastSize = 0;

function countPoints(text: string): number {
  let size = text.length;
  for (let index = 0; index < text.length - 1; index++) {
    if ((text.charCodeAt(index) & 0xfc00) === 0xd800) {
      if ((text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) size--;
    }
  }
  return size;
}

/** Size of a value for the cost of traversing it. */
export function sizeOf(value: Value): number {
  if (typeof value === 'string') return textSize(value);
  if (value instanceof Uint8Array) return value.length;
  if (value instanceof List || value instanceof Opaque || isDictionary(value)) return value.size;
  if (value instanceof Optional && value.value !== undefined) return sizeOf(value.value);
  return 1;
}

/** Returns the name of `type(value)`. */
export function typeNameOf(value: Value): string {
  switch (typeof value) {
    case 'boolean':
      return 'bool';
    case 'bigint':
      return 'int';
    case 'number':
      return 'double';
    case 'string':
      return 'string';
    default:
  }
  if (value === null) return 'null_type';
  if (value instanceof Uint) return 'uint';
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof List) return 'list';
  if (value instanceof Timestamp) return 'google.protobuf.Timestamp';
  if (value instanceof Duration) return 'google.protobuf.Duration';
  if (value instanceof Optional) return 'optional_type';
  if (value instanceof TypeValue) return 'type';
  if (value instanceof Constructed) return value.typeName;
  return value instanceof Opaque ? formatType(value.type) : 'map';
}
