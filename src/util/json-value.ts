import { isRecord } from './values.ts';

/** A JSON object with members of unknown types. */
export type JsonObject = Record<string, unknown>;

/**
 * Maximum nesting depth of objects and lists. Kubernetes objects stay below 30. At this depth the
 * recursive functions of this folder and of `patch/` use a small part of the stack.
 */
export const MAX_DEPTH: number = 400;

/** A value is nested more deeply than `MAX_DEPTH`. The server answers with 400. */
export class NestingError extends Error {
  override readonly name = 'NestingError';

  constructor() {
    super(`exceeded max depth: objects and lists may be nested at most ${MAX_DEPTH} levels deep`);
  }
}

/** An object or a list has too many values in it. The server answers with 413. */
export class WidthError extends Error {
  override readonly name = 'WidthError';

  constructor(max: number) {
    super(`limit is ${max} values`);
  }
}

/** @throws {NestingError} if `depth` exceeds `MAX_DEPTH` */
export function requireDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw new NestingError();
}

/**
 * Checks the depth of a value that a client sends, and the number of members and items in it.
 *
 * @throws {NestingError} if `value` is nested more deeply than `MAX_DEPTH`
 * @throws {WidthError} if it has more than `maxValues` members and items
 */
export function requireShallow(value: unknown, maxValues: number = Infinity): void {
  let left = maxValues;
  const check = (container: object, depth: number) => {
    requireDepth(depth);
    const members = Array.isArray(container) ? (container as unknown[]) : Object.values(container);
    left -= members.length;
    if (left < 0) throw new WidthError(maxValues);
    for (const member of members) if (isContainer(member)) check(member, depth + 1);
  };
  if (isContainer(value)) check(value, 1);
}

/** Returns the value of a JSON text, or undefined if it is not valid. */
export function jsonIfValid(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the own member `key`, so that `constructor` and `__proto__` are ordinary names. */
export function own(object: Readonly<JsonObject>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Sets an own member, also one named `__proto__`. */
export function setOwn(object: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, {
      value,
      configurable: true,
      enumerable: true,
      writable: true,
    });
  } else {
    object[key] = value;
  }
}

/**
 * A copy-on-write view of an object: the first change copies it. An unchanged object stays shared and
 * may be frozen.
 */
export class CopyOnWrite {
  readonly #original: Readonly<JsonObject>;
  #copy: JsonObject | undefined;

  constructor(original: Readonly<JsonObject>) {
    this.#original = original;
  }

  set(key: string, value: unknown): void {
    if (Object.hasOwn(this.value, key) && this.value[key] === value) return;
    setOwn(this.#writable(), key, value);
  }

  delete(key: string): void {
    if (Object.hasOwn(this.value, key)) delete this.#writable()[key];
  }

  /** The original until the first change, then the copy. */
  get value(): JsonObject {
    return this.#copy ?? this.#original;
  }

  #writable(): JsonObject {
    this.#copy ??= { ...this.#original };
    return this.#copy;
  }
}

/** Maps every item of `list`. Returns `list` itself if no item changes. */
export function mapItems(
  list: readonly unknown[],
  map: (item: unknown, index: number) => unknown,
): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    const mapped = map(item, index);
    if (mapped === item) continue;
    copy ??= [...list];
    copy[index] = mapped;
  }
  return copy ?? list;
}

/** Whether a JSON value is an object or a list. */
export function isContainer(value: unknown): value is JsonObject | unknown[] {
  return typeof value === 'object' && value !== null;
}

/** An object whose fields may have values of any type. */
type Fields = Readonly<JsonObject>;

/** Returns the object in a field; undefined if the field has a value of another type. */
export function objectIn(parent: Fields | undefined, field: string): JsonObject | undefined {
  const value = parent && own(parent, field);
  return isRecord(value) ? value : undefined;
}

/** Returns the items of a list field by their index. An item of another type counts as an empty object. */
export function objectsIn(parent: Fields | undefined, field: string): readonly JsonObject[] {
  return listIn(parent, field).map((item) => (isRecord(item) ? item : {}));
}

/** Returns the list in a field; empty if the field has a value of another type. */
export function listIn(parent: Fields | undefined, field: string): readonly unknown[] {
  const value = parent && own(parent, field);
  return Array.isArray(value) ? value : [];
}

/** Returns the text in a field; empty if the field has a value of another type. */
export function textIn(parent: Fields | undefined, field: string): string {
  const value = parent && own(parent, field);
  return typeof value === 'string' ? value : '';
}

/** Returns the strings in a list field. */
export function textsIn(parent: Fields | undefined, field: string): string[] {
  return listIn(parent, field).filter((each) => typeof each === 'string');
}

/** Returns the number in a field; undefined if the field has a value of another type. */
export function numberIn(parent: Fields | undefined, field: string): number | undefined {
  const value = parent && own(parent, field);
  return typeof value === 'number' ? value : undefined;
}

/** Whether a field has a value other than null. */
export function isSet(parent: Fields | undefined, field: string): boolean {
  const value = parent && own(parent, field);
  return value !== undefined && value !== null;
}

/** Sets a field that has no value. An empty text counts as no value, as in Go. */
export function setDefault(parent: JsonObject, field: string, value: unknown): void {
  if (!isSet(parent, field) || own(parent, field) === '') setOwn(parent, field, value);
}
