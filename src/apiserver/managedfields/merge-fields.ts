import { itemSchema, memberSchema } from '../../api/json-schema.ts';
import { equalJson } from '../../api/equal.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { CopyOnWrite, requireDepth } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { PathElement } from './field-set.ts';
import type { Shape } from './typed-value.ts';
import { fieldElement, fieldName, FieldSet, FieldSetBuilder } from './field-set.ts';
import { isDeclared, itemElement, shapeOf } from './typed-value.ts';

/**
 * Merges `applied` into `live` without removing any field. Lists keep the order of `live` unless
 * `applied` sets another order. Returns `live` itself if nothing changes, and shares unchanged parts
 * with it.
 *
 * @throws {NestingError} if `applied` is nested too deeply
 */
export function mergeFields(live: JsonObject, applied: JsonObject, schema: JsonSchema): JsonObject {
  return mergeMembers(live, applied, schema, 0);
}

/**
 * Returns `object` without the items and members of `fields`. As upstream since 1.37, a container whose members
 * are all removed becomes null.
 */
export function removeFields(object: JsonObject, fields: FieldSet, schema: JsonSchema): JsonObject {
  if (fields.isEmpty) return object;
  const draft = new CopyOnWrite(object);
  for (const [name, value] of Object.entries(object)) {
    const element = fieldElement(name);
    if (fields.hasMember(element)) {
      draft.delete(name);
      continue;
    }
    const below = fields.children.get(element);
    if (below) draft.set(name, removeFrom(value, below, memberSchema(schema, name)));
  }
  return draft.value;
}

function removeFrom(value: unknown, fields: FieldSet, schema: JsonSchema): unknown {
  const shape = shapeOf(value, schema);
  if (shape.kind === 'map') {
    if (!isRecord(value)) return value;
    const left = removeFields(value, fields, schema);
    return Object.keys(left).length > 0 ? left : null;
  }
  if (shape.kind === 'leaf' || !Array.isArray(value)) return value;
  let changed = false;
  const items: unknown[] = [];
  for (const item of value as unknown[]) {
    const element = itemElement(item, schema, shape);
    if (element !== undefined && fields.hasMember(element)) {
      changed = true;
      continue;
    }
    const below = element === undefined ? undefined : fields.children.get(element);
    const next = below ? removeFrom(item, below, itemSchema(schema)) : item;
    changed ||= next !== item;
    items.push(next);
  }
  if (items.length === 0) return null;
  return changed ? items : value;
}

/** Merges two values; undefined means absent. */
function merge(live: unknown, applied: unknown, schema: JsonSchema, depth: number): unknown {
  if (applied === undefined) return live;
  if (live === undefined) return applied;
  requireDepth(depth);
  const shape = shapeOf(applied === null ? live : applied, schema);
  if (shape.kind === 'map' && isRecord(live)) {
    if (isRecord(applied)) return mergeMembers(live, applied, schema, depth);
    if (applied === null && Object.keys(live).length > 0) return live;
  } else if ((shape.kind === 'set' || shape.kind === 'keyed') && Array.isArray(live)) {
    if (Array.isArray(applied)) return mergeItems(live, applied, schema, shape, depth);
    if (applied === null && live.length > 0) return live;
  }
  return equalJson(live, applied) ? live : applied;
}

function mergeMembers(
  live: JsonObject,
  applied: JsonObject,
  schema: JsonSchema,
  depth: number,
): JsonObject {
  const draft = new CopyOnWrite(live);
  for (const [name, value] of Object.entries(applied)) {
    const current = Object.hasOwn(live, name) ? live[name] : undefined;
    draft.set(name, merge(current, value, memberSchema(schema, name), depth + 1));
  }
  return draft.value;
}

/**
 * Merges two lists of items. The items of `applied` keep their relative order. Each item that only
 * `live` has keeps its place after its predecessor.
 */
function mergeItems(
  live: readonly unknown[],
  applied: readonly unknown[],
  schema: JsonSchema,
  shape: Shape,
  depth: number,
): readonly unknown[] {
  const left = new Items(live, schema, shape);
  const right = new Items(applied, schema, shape);
  const item = (element: PathElement | undefined, own: unknown): unknown => {
    if (element === undefined) return own;
    return merge(left.only(element), right.only(element), itemSchema(schema), depth + 1);
  };
  const shared = right.elements.filter((element) => element !== undefined && left.has(element));
  const merged: unknown[] = [];
  const taken = new Set<PathElement>();
  let next = 0;
  let leftIndex = 0;
  let rightIndex = 0;
  while (leftIndex < live.length || rightIndex < applied.length) {
    const inLeft = leftIndex < live.length;
    const inRight = rightIndex < applied.length;
    const mine = left.elements[leftIndex];
    const theirs = right.elements[rightIndex];
    if (inLeft && (mine === undefined || !right.has(mine))) {
      // Only the live list has this item. Items without a key remain unchanged.
      merged.push(live[leftIndex++]);
      continue;
    }
    const together = inLeft && inRight && mine === theirs;
    if (inLeft && inRight && !together && next < shared.length && shared[next] !== mine) {
      // Both lists have this item; its position in the applied list is earlier or later.
      leftIndex++;
      continue;
    }
    if (inLeft && (together || (mine !== undefined && taken.has(mine)))) leftIndex++;
    if (inRight) {
      merged.push(item(theirs, applied[rightIndex++]));
      if (theirs !== undefined) taken.add(theirs);
      if (together || (theirs !== undefined && shared[next] === theirs)) next++;
    }
  }
  const same = merged.length === live.length && merged.every((value, at) => value === live[at]);
  return same ? live : merged;
}

/** The items of a list by path element. */
class Items {
  readonly elements: readonly (PathElement | undefined)[];
  readonly #items = new Map<PathElement, unknown>();

  constructor(list: readonly unknown[], schema: JsonSchema, shape: Shape) {
    this.elements = list.map((item) => itemElement(item, schema, shape));
    for (const [index, element] of this.elements.entries()) {
      if (element === undefined) continue;
      // Items with the same key are not merged.
      this.#items.set(element, this.#items.has(element) ? undefined : list[index]);
    }
  }

  has(element: PathElement): boolean {
    return this.#items.has(element);
  }

  only(element: PathElement): unknown {
    return this.#items.get(element);
  }
}

/**
 * Returns the field set of `object`: its leaves, the items of its lists, and the members of maps with
 * undeclared names. A non-empty declared field is not in the set: the manager of `spec.replicas` does
 * not own `spec`.
 *
 * @throws {NestingError} if the object is nested too deeply
 */
export function fieldsOf(object: JsonObject, schema: JsonSchema): FieldSet {
  const builder = new FieldSetBuilder();
  collectMembers(object, schema, builder, 0);
  return builder.build();
}

function collectMembers(
  object: JsonObject,
  schema: JsonSchema,
  into: FieldSetBuilder,
  depth: number,
): void {
  requireDepth(depth);
  for (const [name, value] of Object.entries(object)) {
    const element = fieldElement(name);
    if (isEmptyValue(value) || !isDeclared(schema, name)) into.add(element);
    collect(value, memberSchema(schema, name), into, element, depth);
  }
}

function collect(
  value: unknown,
  schema: JsonSchema,
  into: FieldSetBuilder,
  element: PathElement,
  depth: number,
): void {
  const shape = shapeOf(value, schema);
  if (shape.kind === 'leaf') {
    into.add(element);
  } else if (shape.kind === 'map') {
    if (isRecord(value)) collectMembers(value, schema, into.at(element), depth + 1);
    else into.add(element);
  } else if (Array.isArray(value)) {
    collectItems(value, schema, shape, into.at(element), depth + 1);
  } else {
    into.add(element);
  }
}

function collectItems(
  list: readonly unknown[],
  schema: JsonSchema,
  shape: Shape,
  into: FieldSetBuilder,
  depth: number,
): void {
  requireDepth(depth);
  const elements = list.map((item) => itemElement(item, schema, shape));
  const seen = new Set<PathElement>();
  const twice = new Set<PathElement>();
  for (const element of elements) {
    if (element === undefined) continue;
    if (seen.has(element)) twice.add(element);
    seen.add(element);
  }
  for (const [index, element] of elements.entries()) {
    if (element === undefined) continue;
    into.add(element);
    // Items with the same key are owned as a whole.
    if (!twice.has(element)) collect(list[index], itemSchema(schema), into, element, depth);
  }
}

function isEmptyValue(value: unknown): boolean {
  return value === null || (isRecord(value) && Object.keys(value).length === 0);
}

/** Returns `set` with all declared parents of its members as members. */
export function withDeclaredParents(set: FieldSet, schema: JsonSchema): FieldSet {
  const members = new Set(set.members);
  const children: [PathElement, FieldSet][] = [];
  for (const [element, child] of set.children) {
    const name = fieldName(element);
    if (name !== undefined && isDeclared(schema, name)) members.add(element);
    children.push([element, withDeclaredParents(child, schemaAt(schema, element))]);
  }
  return FieldSet.of(members, children);
}

/**
 * Adapts `set` to the current schema: a field that has become atomic is owned as a whole. Upstream:
 * `ReconcileFieldSetWithSchema`.
 */
export function reconciled(set: FieldSet, schema: JsonSchema): FieldSet {
  let changed = false;
  const members = new Set(set.members);
  const children: [PathElement, FieldSet][] = [];
  for (const [element, child] of set.children) {
    const below = schemaAt(schema, element);
    if (below.type && shapeOf(undefined, below).kind === 'leaf' && isContainerType(below.type)) {
      members.add(element);
      changed = true;
      continue;
    }
    const next = reconciled(child, below);
    changed ||= next !== child;
    children.push([element, next]);
  }
  return changed ? FieldSet.of(members, children) : set;
}

function schemaAt(schema: JsonSchema, element: PathElement): JsonSchema {
  const name = fieldName(element);
  return name === undefined ? itemSchema(schema) : memberSchema(schema, name);
}

function isContainerType(type: string): boolean {
  return type === 'object' || type === 'array';
}
