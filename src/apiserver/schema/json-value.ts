import { isRecord } from '../../util/values.ts';

/** A JSON object whose members are somebody else's data. */
export type JsonObject = Record<string, unknown>;

/**
 * How deeply objects and lists may be nested in anything these functions are given. Kubernetes
 * objects stay below 30; the recursive walks of this folder and of `patch/` stay far from the end
 * of the stack at this depth.
 */
export const MAX_DEPTH: number = 400;

/** A value is nested more deeply than `MAX_DEPTH`; a server answers it with 400. */
export class NestingError extends Error {
  override readonly name = 'NestingError';

  constructor() {
    super(`exceeded max depth: objects and lists may be nested at most ${MAX_DEPTH} levels deep`);
  }
}

/** @throws {NestingError} if a walk has gone deeper than `MAX_DEPTH` */
export function requireDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw new NestingError();
}

/**
 * Looks at a whole value without recursion: the check for what arrives from outside.
 *
 * @throws {NestingError} if `value` is nested more deeply than `MAX_DEPTH`
 */
export function requireShallow(value: unknown): void {
  const pending: { readonly value: object; readonly depth: number }[] = [];
  if (isContainer(value)) pending.push({ value, depth: 1 });
  for (let next = pending.pop(); next; next = pending.pop()) {
    const { depth } = next;
    requireDepth(depth);
    for (const member of Object.values(next.value)) {
      if (isContainer(member)) pending.push({ value: member, depth: depth + 1 });
    }
  }
}

/** `object[key]` if it is the object's own: `constructor` and `__proto__` are names like others. */
export function own(object: Readonly<JsonObject>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Sets an own member, also one called `__proto__`. */
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
 * A copy of what may come to be changed: an object is copied when its first member changes, so what
 * stays the same stays shared, frozen or not.
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

  /** The original as long as nothing has changed. */
  get value(): JsonObject {
    return this.#copy ?? this.#original;
  }

  #writable(): JsonObject {
    this.#copy ??= { ...this.#original };
    return this.#copy;
  }
}

/** `list` with every item mapped; `list` itself if no item changed. */
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

/*
 * Members of an object that nobody has checked yet: what is not of the right type is not there.
 */

export function objectAt(object: Readonly<JsonObject>, name: string): JsonObject {
  const value = own(object, name);
  return isRecord(value) ? value : {};
}

export function objectsAt(object: Readonly<JsonObject>, name: string): JsonObject[] {
  const value = own(object, name);
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

export function textAt(object: Readonly<JsonObject>, name: string): string {
  const value = own(object, name);
  return typeof value === 'string' ? value : '';
}

export function textsAt(object: Readonly<JsonObject>, name: string): string[] {
  const value = own(object, name);
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
