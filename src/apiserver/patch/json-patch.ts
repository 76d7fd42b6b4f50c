import { equalJson } from '../../api/equal.ts';
import { goTypeOf } from '../go-json.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { isObject, requireShallow, setOwn } from '../schema/json-value.ts';
import { PatchError } from './patch-error.ts';

/** One operation of RFC 6902. */
export type JsonPatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly path: string; readonly from: string };

/** As many operations as a real API server takes. */
export const MAX_OPERATIONS: number = 10_000;

/** Characters of JSON that the copies of one patch may add: copies of copies grow exponentially. */
export const MAX_COPIED: number = 3 * 1024 * 1024;

/**
 * RFC 6902: the operations of `patch` in order, all or none. What does not change is shared with
 * `document`, which stays as it is.
 *
 * @throws {PatchError} `malformed` if `patch` is no list of operations, `invalid` if one of them
 *   does not fit the document or its test fails
 * @throws {NestingError} if the result is nested too deeply
 */
export function jsonPatch(document: unknown, patch: unknown): unknown {
  let result = document;
  let copied = 0;
  for (const operation of parseOperations(patch)) {
    const path = parsePointer(operation.path);
    switch (operation.op) {
      case 'add':
        result = add(result, path, operation.value, operation);
        break;
      case 'remove':
        result = remove(result, path, operation);
        break;
      case 'replace':
        result = replace(result, path, operation.value, operation);
        break;
      case 'test':
        test(result, path, operation.value, operation);
        break;
      case 'move':
        result = move(result, parsePointer(operation.from), path, operation);
        break;
      case 'copy': {
        const value = get(result, parsePointer(operation.from), operation);
        requireShallow(value);
        copied += JSON.stringify(value).length;
        if (copied > MAX_COPIED) {
          throw fault(operation, `the copies of this patch exceed ${MAX_COPIED} bytes`);
        }
        result = add(result, path, value, operation);
        break;
      }
    }
  }
  requireShallow(result);
  return result;
}

function add(
  document: unknown,
  path: readonly string[],
  value: unknown,
  operation: JsonPatchOperation,
): unknown {
  if (path.length === 0) return value;
  return change(document, path, operation, (parent, token) => {
    if (isObject(parent)) return withMember(parent, token, value);
    const index = token === '-' ? parent.length : indexOf(parent, token, operation, true);
    return parent.toSpliced(index, 0, value);
  });
}

function remove(
  document: unknown,
  path: readonly string[],
  operation: JsonPatchOperation,
): unknown {
  if (path.length === 0) throw fault(operation, 'the whole object cannot be removed');
  return change(document, path, operation, (parent, token) => {
    if (!isObject(parent)) return parent.toSpliced(indexOf(parent, token, operation, false), 1);
    if (!Object.hasOwn(parent, token)) throw missing(operation);
    const rest = { ...parent };
    delete rest[token];
    return rest;
  });
}

function replace(
  document: unknown,
  path: readonly string[],
  value: unknown,
  operation: JsonPatchOperation,
): unknown {
  if (path.length === 0) return value;
  return change(document, path, operation, (parent, token) => {
    if (!isObject(parent)) return parent.with(indexOf(parent, token, operation, false), value);
    if (!Object.hasOwn(parent, token)) throw missing(operation);
    return withMember(parent, token, value);
  });
}

/** A member that is absent passes as `null`. */
function test(
  document: unknown,
  path: readonly string[],
  value: unknown,
  operation: JsonPatchOperation,
): void {
  const parent = path.length === 0 ? undefined : get(document, path.slice(0, -1), operation);
  const absent = isObject(parent) && !Object.hasOwn(parent, path.at(-1) ?? '');
  if (!equalJson(absent ? null : get(document, path, operation), value)) {
    throw new PatchError('invalid', `testing value ${operation.path} failed: test failed`);
  }
}

function move(
  document: unknown,
  from: readonly string[],
  path: readonly string[],
  operation: JsonPatchOperation,
): unknown {
  const value = get(document, from, operation);
  if (from.length < path.length && from.every((token, index) => token === path[index])) {
    throw fault(operation, 'a value cannot be moved into itself');
  }
  return add(remove(document, from, operation), path, value, operation);
}

type Container = JsonObject | readonly unknown[];

/** Rebuilds the way down `path`, which is not empty, around what `edit` makes of its end. */
function change(
  document: unknown,
  path: readonly string[],
  operation: JsonPatchOperation,
  edit: (parent: Container, token: string) => Container,
): unknown {
  const steps: { readonly parent: Container; readonly token: string }[] = [];
  let current = document;
  for (const token of path) {
    if (!isContainer(current)) throw missing(operation);
    steps.push({ parent: current, token });
    if (steps.length < path.length) current = member(current, token, operation);
  }
  let result: unknown;
  for (const [above, { parent, token }] of steps.reverse().entries()) {
    if (above === 0) result = edit(parent, token);
    else if (isObject(parent)) result = withMember(parent, token, result);
    else result = parent.with(indexOf(parent, token, operation, false), result);
  }
  return result;
}

function get(document: unknown, path: readonly string[], operation: JsonPatchOperation): unknown {
  let current = document;
  for (const token of path) {
    if (!isContainer(current)) throw missing(operation);
    current = member(current, token, operation);
  }
  return current;
}

function member(container: Container, token: string, operation: JsonPatchOperation): unknown {
  if (!isObject(container)) return container[indexOf(container, token, operation, false)];
  if (!Object.hasOwn(container, token)) throw missing(operation);
  return container[token];
}

function withMember(object: JsonObject, key: string, value: unknown): JsonObject {
  const copy = { ...object };
  setOwn(copy, key, value);
  return copy;
}

function indexOf(
  list: readonly unknown[],
  token: string,
  operation: JsonPatchOperation,
  orEnd: boolean,
): number {
  const index = /^(?:0|[1-9]\d{0,9})$/.test(token) ? Number(token) : Number.NaN;
  if (!(index < list.length || (orEnd && index === list.length))) {
    throw fault(operation, `${JSON.stringify(token)} is no index of the list: invalid index`);
  }
  return index;
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

/** The tokens of a JSON pointer (RFC 6901). */
function parsePointer(pointer: string): string[] {
  if (pointer === '') return [];
  if (!pointer.startsWith('/')) {
    throw new PatchError('malformed', `path ${JSON.stringify(pointer)} does not begin with "/"`);
  }
  return pointer
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function parseOperations(patch: unknown): JsonPatchOperation[] {
  if (!Array.isArray(patch)) {
    throw new PatchError(
      'malformed',
      `error decoding patch: json: cannot unmarshal ${goTypeOf(patch)} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  if (patch.length > MAX_OPERATIONS) {
    throw new PatchError(
      'malformed',
      `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`,
    );
  }
  return patch.map(parseOperation);
}

function parseOperation(operation: unknown, index: number): JsonPatchOperation {
  const malformed = (what: string) =>
    new PatchError('malformed', `operation ${index} of the JSON patch ${what}`);
  if (!isObject(operation)) throw malformed('is not an object');
  const { op, path, from, value } = operation;
  if (typeof path !== 'string') throw malformed('has no "path"');
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      if (value === undefined && op !== 'test') throw malformed('has no "value"');
      return { op, path, value: value ?? null };
    case 'remove':
      return { op, path };
    case 'move':
    case 'copy':
      if (typeof from !== 'string') throw malformed('has no "from"');
      return { op, path, from };
    default:
      throw new PatchError('invalid', `Unexpected kind: ${JSON.stringify(op)}`);
  }
}

function missing(operation: JsonPatchOperation): PatchError {
  const pointer = 'from' in operation ? operation.from : operation.path;
  return fault(operation, `doc is missing path: ${JSON.stringify(pointer)}: missing value`);
}

function fault(operation: JsonPatchOperation, why: string): PatchError {
  return new PatchError('invalid', `${operation.op} operation does not apply: ${why}`);
}
