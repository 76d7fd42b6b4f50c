import { equalJson } from '../../api/equal.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { Draft, requireDepth } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { FieldSet } from './field-set.ts';
import type { PathElement } from './path-element.ts';
import { fieldElement } from './path-element.ts';
import type { Shape } from './typed-value.ts';
import { itemElement, itemSchema, memberSchema, shapeOf } from './typed-value.ts';

/**
 * `live` with everything that `applied` says; nothing is removed. Lists keep the order of `live`
 * where `applied` says nothing else. Returns `live` itself if nothing changes; what does not change
 * is shared with it.
 *
 * @throws {NestingError} if `applied` is nested too deeply
 */
export function mergeFields(live: JsonObject, applied: JsonObject, schema: JsonSchema): JsonObject {
  return mergeMembers(live, applied, schema, 0);
}

/** `object` without the items and members of `fields`; containers stay, even if empty. */
export function removeFields(object: JsonObject, fields: FieldSet, schema: JsonSchema): JsonObject {
  if (fields.isEmpty) return object;
  const draft = new Draft(object);
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
  if (shape.kind === 'map') return isRecord(value) ? removeFields(value, fields, schema) : value;
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
  return changed ? items : value;
}

/** Undefined is absent. */
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
  const draft = new Draft(live);
  for (const [name, value] of Object.entries(applied)) {
    const current = Object.hasOwn(live, name) ? live[name] : undefined;
    draft.set(name, merge(current, value, memberSchema(schema, name), depth + 1));
  }
  return draft.value;
}

/**
 * Merges two lists of items. The items of `applied` keep their order among themselves, those that
 * only `live` has stay behind the neighbours they had.
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
      // Only the live list has it; of items that cannot be told apart, each stays as it is.
      merged.push(live[leftIndex++]);
      continue;
    }
    const together = inLeft && inRight && mine === theirs;
    if (inLeft && inRight && !together && next < shared.length && shared[next] !== mine) {
      // Shared, but its turn among the applied items comes later, or has been.
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

class Items {
  readonly elements: readonly (PathElement | undefined)[];
  readonly #items = new Map<PathElement, unknown>();

  constructor(list: readonly unknown[], schema: JsonSchema, shape: Shape) {
    this.elements = list.map((item) => itemElement(item, schema, shape));
    for (const [index, element] of this.elements.entries()) {
      if (element === undefined) continue;
      // Of several items that cannot be told apart, none is merged.
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
