import { isRecord } from '../../util/values.ts';

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

/** A value has too many objects and lists. The server answers with 413. */
export class WidthError extends Error {
  override readonly name = 'WidthError';

  constructor(max: number) {
    super(`limit is ${max} objects and lists`);
  }
}

/** @throws {NestingError} if `depth` exceeds `MAX_DEPTH` */
export function requireDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw new NestingError();
}

/**
 * Checks the depth of a value that a client sends, and its number of objects and lists.
 *
 * @throws {NestingError} if `value` is nested more deeply than `MAX_DEPTH`
 * @throws {WidthError} if it has more than `maxContainers` objects and lists
 */
export function requireShallow(value: unknown, maxContainers: number = Infinity): void {
  let left = maxContainers;
  const check = (container: object, depth: number) => {
    requireDepth(depth);
    if (--left < 0) throw new WidthError(maxContainers);
    const members = Array.isArray(container) ? (container as unknown[]) : Object.values(container);
    for (const member of members) if (isContainer(member)) check(member, depth + 1);
  };
  if (isContainer(value)) check(value, 1);
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
export class Draft {
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

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Returns the member `name` of an unvalidated object, or `{}` if it has another type. */
export function objectAt(object: Readonly<JsonObject>, name: string): JsonObject {
  const value = own(object, name);
  return isRecord(value) ? value : {};
}

/** Returns the objects in the list `name` of an unvalidated object. */
export function objectsAt(object: Readonly<JsonObject>, name: string): JsonObject[] {
  const value = own(object, name);
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** Returns the member `name` of an unvalidated object, or `''` if it has another type. */
export function textAt(object: Readonly<JsonObject>, name: string): string {
  const value = own(object, name);
  return typeof value === 'string' ? value : '';
}

/** Returns the strings in the list `name` of an unvalidated object. */
export function textsAt(object: Readonly<JsonObject>, name: string): string[] {
  const value = own(object, name);
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
