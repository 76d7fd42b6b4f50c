import { goTypeOf } from '../json/go-json.ts';
import { goJson, goValue } from '../../util/go-format.ts';
import { fieldSchema, UNDECLARED, itemSchema } from '../../api/json-schema.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import {
  CopyOnWrite,
  isContainer,
  mapItems,
  own,
  requireDepth,
  requireShallow,
} from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { PatchError } from './json-patch.ts';

/**
 * Applies a strategic merge patch. It differs from a JSON merge patch in lists with
 * `x-kubernetes-patch-strategy: merge`: objects are merged by `x-kubernetes-patch-merge-key`, scalars
 * by value. Directives in the patch:
 *
 * | directive                        | meaning                                                     |
 * | -------------------------------- | ----------------------------------------------------------- |
 * | `$patch: replace`                | replaces the object, or the list that has this item         |
 * | `$patch: delete`                 | empties the object, or removes the item from its list       |
 * | `$deleteFromPrimitiveList/field` | values to remove from a list of scalars                     |
 * | `$setElementOrder/field`         | the order of a merged list                                  |
 * | `$retainKeys`                    | removes all other members of the object                     |
 *
 * Returns `target` itself if nothing changes, and shares unchanged parts with it.
 *
 * @throws {PatchError} if the patch is malformed or does not fit
 * @throws {NestingError} if the patch is nested too deeply
 */
export function strategicMergePatch(
  target: JsonObject,
  patch: unknown,
  schema: JsonSchema,
): JsonObject {
  if (patch === null) return target;
  if (!isRecord(patch)) {
    throw new PatchError(
      'malformed',
      `json: cannot unmarshal ${goTypeOf(patch)} into Go value of type map[string]interface {}`,
    );
  }
  return mergeObject(target, patch, schema, 0);
}

const PATCH = '$patch';
const RETAIN_KEYS = '$retainKeys';
const DELETE_FROM_LIST = '$deleteFromPrimitiveList';
const SET_ORDER = '$setElementOrder';

function mergeObject(
  original: JsonObject,
  patch: JsonObject,
  schema: JsonSchema,
  depth: number,
): JsonObject {
  requireDepth(depth);
  const directive = own(patch, PATCH);
  if (directive !== undefined) {
    if (directive === 'delete') return {};
    if (directive !== 'replace') throw unknownDirective(directive, patch);
    const { [PATCH]: _, ...content } = patch;
    return content;
  }
  const draft = new CopyOnWrite(original);
  retainKeys(draft, patch);
  const orders = ordersOf(original, patch);
  const fieldOf = (key: string) => fieldSchema(schema, key) ?? UNDECLARED;
  const mergeMember = (key: string, value: unknown) => {
    const current = own(draft.value, key);
    const next =
      value === null
        ? undefined
        : mergeValue(current, value, orders.get(key), fieldOf(key), depth + 1);
    if (next === undefined) draft.delete(key);
    else draft.set(key, next);
  };
  for (const [key, order] of orders) {
    if (!fieldSchema(schema, key)) {
      throw new PatchError(
        'untyped',
        `unable to find api field for the json field ${JSON.stringify(key)}`,
      );
    }
    const list = own(original, key);
    if (Object.hasOwn(patch, key)) mergeMember(key, patch[key]);
    else if (Array.isArray(list)) {
      draft.set(key, sameItems(list, orderItems(list, order, list, mergeKeyOf(fieldOf(key)))));
    }
  }
  for (const [key, values] of Object.entries(patch)) {
    if (key.startsWith(DELETE_FROM_LIST)) {
      if (key[DELETE_FROM_LIST.length] !== '/') {
        throw new PatchError('malformed', 'invalid patch format of primitive list');
      }
      deleteFromList(draft, key.slice(DELETE_FROM_LIST.length + 1), values);
    }
  }
  for (const [key, value] of Object.entries(patch)) {
    if (!isDirective(key) && !orders.has(key)) mergeMember(key, value);
  }
  return draft.value;
}

/** Returns the merged value of a member, or undefined if it is removed. */
function mergeValue(
  current: unknown,
  value: unknown,
  order: readonly unknown[] | undefined,
  schema: JsonSchema,
  depth: number,
): unknown {
  if (isRecord(value) && isRecord(current)) {
    if (strategyOf(schema) === 'replace') return value;
    return mergeObject(current, value, schema, depth);
  }
  if (Array.isArray(value) && Array.isArray(current)) {
    if (strategyOf(schema) !== 'merge') return order ? orderReplaced(value, order, schema) : value;
    return mergeList(current, value, order, schema, depth);
  }
  const added = withoutDirectives(value, depth);
  return order && Array.isArray(value) && Array.isArray(added)
    ? orderReplaced(value, order, schema, added)
    : added;
}

function mergeList(
  original: readonly unknown[],
  patch: readonly unknown[],
  order: readonly unknown[] | undefined,
  schema: JsonSchema,
  depth: number,
): readonly unknown[] {
  if (original.length === 0 && patch.length === 0) return original;
  const mergeKey = mergeKeyOf(schema);
  if (order) requireOrder(patch, order, mergeKey);
  requireOneType(original, patch);
  if (![...original, ...patch].some(isRecord)) {
    const merged = [...new Set([...original, ...patch])];
    return sameItems(original, orderItems(merged, order ?? patch, original, undefined));
  }
  if (mergeKey === undefined) {
    throw new PatchError('untyped', 'cannot merge lists without merge key');
  }
  const { base, items } = specialItems(original, patch, mergeKey);
  const merged = [...base];
  /** Index of the first item of each key. */
  const places = new Map<unknown, number>();
  const enter = (item: unknown, index: number) => {
    const key = isRecord(item) ? own(item, mergeKey) : undefined;
    if (key !== undefined && !places.has(key)) places.set(key, index);
  };
  merged.forEach(enter);
  for (const item of items) {
    const index = places.get(requireKey(item, mergeKey)) ?? merged.length;
    const present = merged[index];
    if (isRecord(present)) merged[index] = mergeObject(present, item, itemSchema(schema), depth);
    else {
      // As upstream, with null and directives.
      requireShallow(item);
      merged.push(item);
      enter(item, index);
    }
  }
  return sameItems(original, orderItems(merged, order ?? items, base, mergeKey));
}

/** Applies the items that are directives. Returns the items to merge, and the list to merge them into. */
function specialItems(
  original: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string,
): { readonly base: readonly unknown[]; readonly items: readonly JsonObject[] } {
  const items: JsonObject[] = [];
  const deleted = new Set<unknown>();
  let replace = false;
  for (const item of patch) {
    if (!isRecord(item)) continue;
    const directive = own(item, PATCH);
    if (directive === undefined) items.push(item);
    else if (directive === 'delete') deleted.add(requireKey(item, mergeKey));
    else if (directive === 'replace') replace = true;
    else {
      const detail = `unknown patch type: ${goValue(directive)} in map: ${goValue(item)}`;
      throw new PatchError('untyped', detail);
    }
  }
  if (replace) return { base: items, items: [] };
  const base = original.filter((item) => !isRecord(item) || !deleted.has(own(item, mergeKey)));
  return { base, items };
}

/** As upstream, a merged list has items of one type, and no lists. */
function requireOneType(original: readonly unknown[], patch: readonly unknown[]): void {
  const types = new Set(
    [...original, ...patch].map((item) => (isRecord(item) ? 'map' : goTypeOf(item))),
  );
  if (types.size > 1) {
    const lists = goValue([original, patch]);
    throw new PatchError('untyped', `list element types are not identical: ${lists}`);
  }
  if (types.has('array')) throw new PatchError('untyped', 'lists of lists are not supported');
}

function retainKeys(draft: CopyOnWrite, patch: JsonObject): void {
  const retained = own(patch, RETAIN_KEYS);
  if (retained === undefined) return;
  const malformed = new PatchError('malformed', 'invalid patch format of retainKeys');
  if (!Array.isArray(retained) || retained.some(isContainer)) throw malformed;
  const names = new Set<unknown>(retained);
  for (const [key, value] of Object.entries(patch)) {
    if (value !== null && !isDirective(key) && !names.has(key)) throw malformed;
  }
  for (const key of Object.keys(draft.value)) if (!names.has(key)) draft.delete(key);
}

function deleteFromList(draft: CopyOnWrite, key: string, values: unknown): void {
  const current = own(draft.value, key);
  if (!Array.isArray(current)) return;
  // As upstream, another value has no effect, and null removes the list.
  if (values === null) draft.delete(key);
  if (!Array.isArray(values)) return;
  const gone = new Set<unknown>(values);
  if (current.length > 0 || values.length > 0) requireOneType(current, values);
  const left = current.filter((value) => !gone.has(value));
  if (left.length < current.length) draft.set(key, left);
}

function malformedOrder(): PatchError {
  return new PatchError('malformed', 'invalid patch format of setElementOrder list');
}

function ordersOf(
  original: JsonObject,
  patch: JsonObject,
): ReadonlyMap<string, readonly unknown[]> {
  const orders = new Map<string, readonly unknown[]>();
  for (const [key, order] of Object.entries(patch)) {
    if (!key.startsWith(SET_ORDER)) continue;
    const list = key.slice(SET_ORDER.length + 1);
    if (key[SET_ORDER.length] !== '/') throw malformedOrder();
    for (const value of [order, own(original, list), own(patch, list)]) {
      if (Array.isArray(value) || value === undefined) continue;
      const kind = isRecord(value) ? 'map' : goTypeOf(value);
      throw new PatchError('untyped', `expected a []interface {}, but received a ${kind}`);
    }
    if (!Array.isArray(order)) throw malformedOrder();
    orders.set(list, order);
  }
  return orders;
}

/** Checks that the items of the patch have the order that the patch sets. */
function requireOrder(
  patch: readonly unknown[],
  order: readonly unknown[],
  mergeKey: string | undefined,
): void {
  const identity = (item: unknown) =>
    mergeKey !== undefined && isRecord(item) ? own(item, mergeKey) : item;
  const ordered = order.map(identity);
  let from = 0;
  for (const item of patch) {
    if (isRecord(item) && Object.hasOwn(item, PATCH)) continue;
    const place = ordered.indexOf(identity(item), from);
    if (place < 0) {
      const detail = `The order in patch list:\n${goValue(patch)}\n doesn't match $setElementOrder list:\n${goValue(order)}\n`;
      throw new PatchError('untyped', detail);
    }
    from = place + 1;
  }
}

function orderReplaced(
  list: readonly unknown[],
  order: readonly unknown[],
  schema: JsonSchema,
  added: readonly unknown[] = list,
): readonly unknown[] {
  const mergeKey = mergeKeyOf(schema);
  requireOrder(list, order, mergeKey);
  return orderItems(added, order, list, mergeKey);
}

/** Returns a new value without `$patch` and null, or undefined if a directive removes it. As upstream, it keeps the other directives. */
function withoutDirectives(value: unknown, depth: number): unknown {
  requireDepth(depth);
  if (Array.isArray(value)) {
    return mapItems(value, (item) => withoutDirectives(item, depth + 1)).filter(
      (item) => item !== undefined,
    );
  }
  if (!isRecord(value)) return value;
  if ((own(value, PATCH) ?? null) !== null) return undefined;
  const draft = new CopyOnWrite(value);
  for (const [key, member] of Object.entries(value)) {
    const kept = member === null ? undefined : withoutDirectives(member, depth + 1);
    if (kept === undefined) draft.delete(key);
    else draft.set(key, kept);
  }
  return draft.value;
}

function isDirective(key: string): boolean {
  return key === RETAIN_KEYS || key.startsWith(SET_ORDER) || key.startsWith(DELETE_FROM_LIST);
}

/** The strategy other than `retainKeys`, which does not affect merging. */
function strategyOf(schema: JsonSchema): string | undefined {
  const strategies = schema['x-kubernetes-patch-strategy']?.split(',') ?? [];
  return strategies.find((strategy) => strategy !== 'retainKeys');
}

function mergeKeyOf(schema: JsonSchema): string | undefined {
  return schema['x-kubernetes-patch-merge-key'];
}

function requireKey(item: JsonObject, mergeKey: string): unknown {
  const key = own(item, mergeKey);
  if (key === undefined) {
    const detail = `map: ${goValue(item)} does not contain declared merge key: ${mergeKey}`;
    throw new PatchError('untyped', detail);
  }
  if (isContainer(key)) {
    throw new PatchError('untyped', `${goValue(key)} cannot be compared`);
  }
  return key;
}

function sameItems(original: readonly unknown[], next: readonly unknown[]): readonly unknown[] {
  const same =
    original.length === next.length && next.every((item, index) => item === original[index]);
  return same ? original : next;
}

function unknownDirective(directive: unknown, where: JsonObject): PatchError {
  return new PatchError(
    'malformed',
    `unknown patch type: ${goJson(directive)} in map: ${goJson(where)}`,
  );
}

/**
 * Orders a merged list. Items in `order` have that order. The other items keep the order of `live`;
 * each precedes the first ordered item that it preceded there.
 *
 * @param mergeKey the member that identifies objects; undefined in a list of scalars
 */
function orderItems(
  items: readonly unknown[],
  order: readonly unknown[],
  live: readonly unknown[],
  mergeKey: string | undefined,
): readonly unknown[] {
  const identity = (item: unknown) =>
    mergeKey !== undefined && isRecord(item) ? own(item, mergeKey) : item;
  if (mergeKey !== undefined) {
    for (const item of [...items, ...order]) {
      if (!isRecord(item))
        throw new PatchError(
          'untyped',
          `expected a map[string]interface {}, but received a ${goTypeOf(item)}`,
        );
      if (own(item, mergeKey) === undefined) requireKey(item, mergeKey);
    }
  }
  const wanted = placesOf(order.map(identity));
  const before = placesOf(live.map(identity));
  const place = (places: ReadonlyMap<unknown, number>, item: unknown) =>
    places.get(identity(item)) ?? Number.MAX_SAFE_INTEGER;
  const inOrder = (places: ReadonlyMap<unknown, number>) => (a: unknown, b: unknown) =>
    place(places, a) - place(places, b);

  const ordered = items.filter((item) => wanted.has(identity(item))).sort(inOrder(wanted));
  const others = items.filter((item) => !wanted.has(identity(item))).sort(inOrder(before));
  const result: unknown[] = [];
  let next = 0;
  for (const item of others) {
    while (next < ordered.length && !precedes(before, identity(item), identity(ordered[next]))) {
      result.push(ordered[next++]);
    }
    result.push(item);
  }
  return [...result, ...ordered.slice(next)];
}

/** Whether both were in the live list, `a` before `b`. */
function precedes(before: ReadonlyMap<unknown, number>, a: unknown, b: unknown): boolean {
  const [left, right] = [before.get(a), before.get(b)];
  return left !== undefined && right !== undefined && left < right;
}

function placesOf(identities: readonly unknown[]): ReadonlyMap<unknown, number> {
  const places = new Map<unknown, number>();
  for (const [index, identity] of identities.entries()) {
    if (!places.has(identity)) places.set(identity, index);
  }
  return places;
}
