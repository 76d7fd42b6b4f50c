import { equalJson } from '../../api/equal.ts';
import { goTypeOf } from '../json/go-json.ts';
import type { CheckSteps } from '../objects/check-steps.ts';
import { inOneStep, PART_WEIGHT } from '../objects/check-steps.ts';
import type { JsonObject } from '../../util/json-value.ts';
import {
  CopyOnWrite,
  isContainer,
  mapItems,
  own,
  requireDepth,
  requireShallow,
  setOwn,
} from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';

/** One operation of RFC 6902. */
export type JsonOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly path: string; readonly from: string };

/** Maximum number of operations, as upstream. */
export const MAX_OPERATIONS: number = 10_000;

/** Characters of JSON that the `copy` operations of one patch may add: they can grow exponentially. */
const MAX_COPIED: number = 3 * 1024 * 1024;

/**
 * Applies the operations of `patch` in order (RFC 6902), all or none. The result shares unchanged
 * parts with `document`, which is not modified.
 *
 * @throws {PatchError} `malformed` if `patch` is not a list of operations, `tooLarge` if it has too
 *   many, `invalid` if an operation does not fit the document or its test fails
 * @throws {NestingError} if the result is nested too deeply
 */
export function jsonPatch(document: unknown, patch: unknown): unknown {
  return inOneStep(jsonPatchInSteps(document, patch));
}

/** Does the same in steps, because a short patch can copy megabytes. */
export function* jsonPatchInSteps(document: unknown, patch: unknown): CheckSteps<unknown> {
  const patched = new PatchedDocument(document);
  for (const operation of parseOperations(patch)) {
    const before = patched.copiedCharacters;
    patched.apply(operation);
    yield PART_WEIGHT + patched.copiedCharacters - before;
  }
  requireShallow(patched.root);
  yield patched.copiedCharacters;
  return patched.encoded;
}

type Container = JsonObject | unknown[];

/**
 * A document during a patch. The first operation that changes a container copies it; later
 * operations change the copy in place, at a cost independent of the size of the object.
 */
export class PatchedDocument {
  #root: unknown;
  /** Copies made by this patch. Each is reachable by exactly one path. */
  readonly #own = new WeakSet<object>();
  #copies = 0;
  #copiedCharacters = 0;

  constructor(document: unknown) {
    this.#root = document;
  }

  /** The result so far. */
  get root(): unknown {
    return this.#root;
  }

  /** The result with sorted keys in the objects that were changed, as upstream encodes it. */
  get encoded(): unknown {
    return this.#sorted(this.#root);
  }

  #sorted(value: unknown): unknown {
    if (!isContainer(value) || !this.#own.has(value)) return value;
    if (Array.isArray(value)) return value.map((item) => this.#sorted(item));
    const keys = Object.keys(value).sort();
    return Object.fromEntries(keys.map((key) => [key, this.#sorted(value[key])]));
  }

  /** Characters of JSON that `copy` operations have added. */
  get copiedCharacters(): number {
    return this.#copiedCharacters;
  }

  /** Number of copied containers. */
  get copies(): number {
    return this.#copies;
  }

  /** @throws {PatchError} if the operation does not fit the document or its test fails */
  apply(operation: JsonOperation): void {
    const path = parsePointer(operation.path);
    switch (operation.op) {
      case 'add':
        return this.#add(path, operation.value, operation);
      case 'remove':
        return this.#remove(path, operation);
      case 'replace':
        return this.#replace(path, operation.value, operation);
      case 'test':
        return this.#test(path, operation.value, operation);
      case 'move':
        return this.#move(parsePointer(operation.from), path, operation);
      case 'copy':
        return this.#copy(parsePointer(operation.from), path, operation);
    }
  }

  #add(path: readonly string[], value: unknown, operation: JsonOperation): void {
    const token = path.at(-1);
    if (token === undefined) throw missing(operation);
    const parent = this.#writableParent(path, operation);
    if (isRecord(parent)) setOwn(parent, token, value);
    else {
      const index = token === '-' ? parent.length : indexOf(parent, token, operation, true);
      parent.splice(index, 0, value);
    }
  }

  #remove(path: readonly string[], operation: JsonOperation): void {
    const token = path.at(-1);
    if (token === undefined) throw missing(operation);
    const parent = this.#writableParent(path, operation);
    if (!isRecord(parent)) parent.splice(indexOf(parent, token, operation, false), 1);
    else if (!Object.hasOwn(parent, token)) throw missing(operation);
    else delete parent[token];
  }

  #replace(path: readonly string[], value: unknown, operation: JsonOperation): void {
    if (operation.path === '') {
      if (!isContainer(value)) throw invalid(operation, 'value must be object or array');
      this.#root = value;
      return;
    }
    const token = path.at(-1);
    if (token === undefined) throw missing(operation);
    // As upstream, which also replaces an absent member.
    setMember(this.#writableParent(path, operation), token, value, operation);
  }

  /** Compares an absent member as `null`. */
  #test(path: readonly string[], value: unknown, operation: JsonOperation): void {
    if (path.length === 0 && operation.path !== '') throw missing(operation);
    const parent = path.length === 0 ? undefined : this.#get(path.slice(0, -1), operation);
    const absent = isRecord(parent) && !Object.hasOwn(parent, path.at(-1) ?? '');
    if (!equalJson(absent ? null : this.#get(path, operation), value)) {
      throw new PatchError('invalid', `testing value ${operation.path} failed: test failed`);
    }
  }

  #move(from: readonly string[], path: readonly string[], operation: JsonOperation): void {
    const value = this.#get(from, operation);
    if (from.length < path.length && from.every((token, index) => token === path[index])) {
      throw invalid(operation, 'a value cannot be moved into itself');
    }
    this.#remove(from, operation);
    this.#add(path, value, operation);
  }

  #copy(from: readonly string[], path: readonly string[], operation: JsonOperation): void {
    // As upstream, the whole object cannot be copied.
    if (from.length === 0) throw missing(operation);
    const parent = this.#get(from.slice(0, -1), operation);
    // As upstream, an absent member is copied as null.
    const isAbsent = isRecord(parent) && !Object.hasOwn(parent, from.at(-1) ?? '');
    const value = isAbsent ? null : this.#get(from, operation);
    if (isContainer(value)) requireShallow(value);
    const text = JSON.stringify(value);
    this.#copiedCharacters += text.length;
    if (this.#copiedCharacters > MAX_COPIED) {
      throw invalid(operation, `the copies of this patch exceed ${MAX_COPIED} bytes`);
    }
    // A deep copy, because later operations change one of the two in place.
    this.#add(path, JSON.parse(text) as unknown, operation);
  }

  #get(path: readonly string[], operation: JsonOperation): unknown {
    let current = this.#root;
    for (const token of path) {
      if (!isContainer(current)) throw missing(operation);
      current = member(current, token, operation);
    }
    return current;
  }

  /** Returns the container of the last token of `path`, copied if necessary. */
  #writableParent(path: readonly string[], operation: JsonOperation): Container {
    if (!isContainer(this.#root)) throw missing(operation);
    let parent = this.#writable(this.#root);
    this.#root = parent;
    for (const token of path.slice(0, -1)) {
      const child = member(parent, token, operation);
      if (!isContainer(child)) throw missing(operation);
      const writable = this.#writable(child);
      if (writable !== child) setMember(parent, token, writable, operation);
      parent = writable;
    }
    return parent;
  }

  #writable(container: Container): Container {
    if (this.#own.has(container)) return container;
    const copy = isRecord(container) ? { ...container } : [...container];
    this.#own.add(copy);
    this.#copies++;
    return copy;
  }
}

function member(container: Container, token: string, operation: JsonOperation): unknown {
  if (!isRecord(container)) return container[indexOf(container, token, operation, false)];
  if (!Object.hasOwn(container, token)) throw missing(operation);
  return container[token];
}

function setMember(
  container: Container,
  token: string,
  value: unknown,
  operation: JsonOperation,
): void {
  if (isRecord(container)) setOwn(container, token, value);
  else container[indexOf(container, token, operation, false)] = value;
}

function indexOf(
  list: readonly unknown[],
  token: string,
  operation: JsonOperation,
  orEnd: boolean,
): number {
  const index = /^[+-]?\d{1,15}$/.test(token) ? Number(token) : Number.NaN;
  const length = orEnd ? list.length + 1 : list.length;
  // As upstream, a negative index counts from the end.
  const place = index < 0 ? index + length : index;
  if (!(place >= 0 && place < length)) {
    throw invalid(operation, `${JSON.stringify(token)} is not an index of the list: invalid index`);
  }
  return place;
}

/** Returns the tokens of a JSON pointer (RFC 6901). As upstream, the text before the first slash is ignored. */
function parsePointer(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function parseOperations(patch: unknown): JsonOperation[] {
  // As Go decodes it: no operations.
  if (patch === null) return [];
  if (!Array.isArray(patch)) {
    throw new PatchError(
      'malformed',
      `error decoding patch: json: cannot unmarshal ${goTypeOf(patch)} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  if (patch.length > MAX_OPERATIONS) {
    throw new PatchError(
      'tooLarge',
      `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`,
    );
  }
  return patch.map(parseOperation);
}

function parseOperation(decoded: unknown): JsonOperation {
  // As Go decodes it: an operation without members.
  const operation = decoded ?? {};
  if (!isRecord(operation)) {
    throw new PatchError(
      'malformed',
      `error decoding patch: json: cannot unmarshal ${goTypeOf(operation)} into Go value of type handlers.jsonPatchOp`,
    );
  }
  const { op, path, from, value } = operation;
  const invalidOperation = (what: string) => new PatchError('invalid', `a JSON patch ${what}`);
  if (typeof path !== 'string') throw invalidOperation('operation has no "path"');
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      return { op, path, value: value ?? null };
    case 'remove':
      return { op, path };
    case 'move':
    case 'copy':
      if (typeof from !== 'string') throw invalidOperation(`${op} has no "from"`);
      return { op, path, from };
    default:
      throw new PatchError('invalid', `Unexpected kind: ${JSON.stringify(op)}`);
  }
}

function missing(operation: JsonOperation): PatchError {
  const pointer = 'from' in operation ? operation.from : operation.path;
  return invalid(operation, `doc is missing path: ${JSON.stringify(pointer)}: missing value`);
}

function invalid(operation: JsonOperation, why: string): PatchError {
  return new PatchError('invalid', `${operation.op} operation does not apply: ${why}`);
}

/**
 * Applies a JSON merge patch (RFC 7386): members of `patch` replace those of `target`, objects are
 * merged, `null` removes. Returns `target` itself if nothing changes, and shares unchanged parts with
 * it.
 *
 * @throws {NestingError} if the patch is nested too deeply
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  return isRecord(patch) ? merge(target, patch, 0) : withoutNulls(patch, 0);
}

function merge(target: unknown, patch: unknown, depth: number): unknown {
  if (!isRecord(target)) return withoutNulls(patch, depth);
  if (!isRecord(patch)) return patch;
  requireDepth(depth);
  const draft = new CopyOnWrite(target);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) draft.delete(key);
    else draft.set(key, merge(own(target, key), value, depth + 1));
  }
  return draft.value;
}

/** Removes the members that are null, also those of objects in lists: upstream differs from RFC 7386. */
function withoutNulls(value: unknown, depth: number): unknown {
  if (!isContainer(value)) return value;
  requireDepth(depth);
  if (Array.isArray(value)) return mapItems(value, (item) => withoutNulls(item, depth + 1));
  const draft = new CopyOnWrite(value);
  for (const [key, member] of Object.entries(value)) {
    if (member === null) draft.delete(key);
    else draft.set(key, withoutNulls(member, depth + 1));
  }
  return draft.value;
}

/**
 * A patch that cannot be applied:
 *
 * | kind        | code | cause                                                          |
 * | ----------- | ---- | -------------------------------------------------------------- |
 * | `malformed` | 400  | the body is not a patch of this type                           |
 * | `tooLarge`  | 413  | the patch has too many operations                              |
 * | `invalid`   | 422  | it does not fit the object: a failed test, a missing path      |
 * | `untyped`   | 500  | an applied object does not fit its schema, as upstream answers |
 */
export class PatchError extends Error {
  override readonly name = 'PatchError';
  readonly kind: PatchErrorKind;

  constructor(kind: PatchErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }

  /** HTTP status of the answer. */
  get code(): number {
    return CODES[this.kind];
  }
}

type PatchErrorKind = 'malformed' | 'tooLarge' | 'invalid' | 'untyped';

const CODES: Readonly<Record<PatchErrorKind, number>> = {
  malformed: 400,
  tooLarge: 413,
  invalid: 422,
  untyped: 500,
};
