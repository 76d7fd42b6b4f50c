import { PatchError } from '../patch/json-patch.ts';
import { itemSchema, memberSchema } from '../../api/json-schema.ts';
import { equalJson } from '../../api/equal.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { own, requireDepth } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { fieldElement, FieldSet, FieldSetBuilder } from './field-set.ts';
import type { PathElement } from './field-set.ts';
import type { Shape } from './typed-value.ts';
import { itemElement, shapeOf, unidentified } from './typed-value.ts';

/** The changed fields between two objects. The sets are disjoint. Each is built when it is first read. */
export interface Comparison {
  readonly removed: FieldSet;
  readonly modified: FieldSet;
  readonly added: FieldSet;
}

/**
 * Compares two versions of an object. Skips parts that are the same JavaScript object.
 *
 * @throws {NestingError} if either is nested too deeply
 */
export function compareFields(
  before: JsonObject,
  after: JsonObject,
  schema: JsonSchema,
): Comparison {
  const changes = new Changes();
  compareMembers(before, after, schema, changes, 0);
  return {
    get removed() {
      return changes.removed.build();
    },
    get modified() {
      return changes.modified.build();
    },
    get added() {
      return changes.added.build();
    },
  };
}

/** Collects fields at a path and below it. Allocates a set only if a field is added. */
class Fields {
  readonly #place: { readonly above: Fields; readonly element: PathElement } | undefined;
  #builder: FieldSetBuilder | undefined;
  #built: FieldSet | undefined;

  constructor(above?: Fields, element?: PathElement) {
    this.#place = above && element !== undefined ? { above, element } : undefined;
  }

  add(element: PathElement): void {
    this.#set().add(element);
  }

  build(): FieldSet {
    this.#built ??= this.#builder?.build() ?? FieldSet.EMPTY;
    return this.#built;
  }

  #set(): FieldSetBuilder {
    const place = this.#place;
    this.#builder ??= place ? place.above.#set().at(place.element) : new FieldSetBuilder();
    return this.#builder;
  }
}

/** The fields at a path and below it by their change, each made when it is needed: most items have one change. */
class Changes {
  readonly #above: Changes | undefined;
  readonly #element: PathElement | undefined;
  #removed: Fields | undefined;
  #modified: Fields | undefined;
  #added: Fields | undefined;

  constructor(above?: Changes, element?: PathElement) {
    this.#above = above;
    this.#element = element;
  }

  get removed(): Fields {
    this.#removed ??= new Fields(this.#above?.removed, this.#element);
    return this.#removed;
  }

  get modified(): Fields {
    this.#modified ??= new Fields(this.#above?.modified, this.#element);
    return this.#modified;
  }

  get added(): Fields {
    this.#added ??= new Fields(this.#above?.added, this.#element);
    return this.#added;
  }

  /** Adds a field as a whole; undefined means absent. */
  add(before: unknown, after: unknown, element: PathElement): void {
    if (before === undefined) this.added.add(element);
    else if (after === undefined) this.removed.add(element);
    else if (!equalJson(before, after)) this.modified.add(element);
  }
}

function compareMembers(
  before: JsonObject,
  after: JsonObject,
  schema: JsonSchema,
  changes: Changes,
  depth: number,
): void {
  requireDepth(depth);
  const compareMember = (name: string) => {
    const at = fieldElement(name);
    compare(own(before, name), own(after, name), memberSchema(schema, name), changes, at, depth);
  };
  for (const name of Object.keys(before)) compareMember(name);
  for (const name of Object.keys(after)) {
    if (!Object.hasOwn(before, name)) compareMember(name);
  }
}

function compare(
  before: unknown,
  after: unknown,
  schema: JsonSchema,
  changes: Changes,
  element: PathElement,
  depth: number,
): void {
  if (before === after) return;
  // Null is an empty value of any shape.
  const shape = shapeOf(after ?? before, schema);
  if ((before ?? null) !== null && (after ?? null) !== null) {
    const former = shapeOf(before, schema);
    if (former.kind !== shape.kind) {
      compareAs(former, before, after, schema, changes, element, depth);
    }
  }
  compareAs(shape, before, after, schema, changes, element, depth);
}

function compareAs(
  shape: Shape,
  before: unknown,
  after: unknown,
  schema: JsonSchema,
  changes: Changes,
  element: PathElement,
  depth: number,
): void {
  if (shape.kind === 'leaf' || (isEmptyOf(shape, before) && isEmptyOf(shape, after))) {
    changes.add(before, after, element);
    return;
  }
  const below = new Changes(changes, element);
  if (shape.kind === 'map') {
    const [left, right] = [isRecord(before) ? before : {}, isRecord(after) ? after : {}];
    compareMembers(left, right, schema, below, depth + 1);
  } else {
    const left = Array.isArray(before) ? (before as unknown[]) : [];
    const right = Array.isArray(after) ? (after as unknown[]) : [];
    compareItems(left, right, schema, shape, below, depth + 1);
  }
  if (before === undefined || after === undefined) changes.add(before, after, element);
}

/** Whether a value has no members or items of a shape. */
export function isEmptyOf(shape: Shape, value: unknown): boolean {
  return shape.kind === 'map'
    ? !isRecord(value) || Object.keys(value).length === 0
    : !Array.isArray(value) || value.length === 0;
}

function compareItems(
  before: readonly unknown[],
  after: readonly unknown[],
  schema: JsonSchema,
  shape: Shape,
  changes: Changes,
  depth: number,
): void {
  requireDepth(depth);
  if (before.length === 0 && shape.kind === 'set') {
    // Every value is new. There can be a hundred thousand.
    for (const item of after) {
      const element = itemElement(item, schema, shape);
      if (element !== undefined) changes.added.add(element);
    }
    return;
  }
  const left = byElement(before, schema, shape);
  const right = byElement(after, schema, shape);
  for (const element of left.keys()) if (!right.has(element)) right.set(element, []);
  for (const [element, now] of right) {
    const then = left.get(element) ?? [];
    if (then.length <= 1 && now.length <= 1) {
      compare(then[0], now[0], itemSchema(schema), changes, element, depth);
    } else if (then.length >= 2 && now.length >= 2) {
      if (!equalJson(then, now)) changes.modified.add(element);
    } else if (then.length >= 2) {
      // Items with the same key were owned as a whole; a single remaining item is new.
      if (now.length === 1) compare(undefined, now[0], itemSchema(schema), changes, element, depth);
      changes.removed.add(element);
    } else {
      if (then.length === 1) {
        compare(then[0], undefined, itemSchema(schema), changes, element, depth);
      }
      changes.added.add(element);
    }
  }
}

function byElement(
  list: readonly unknown[],
  schema: JsonSchema,
  shape: Shape,
): Map<PathElement, unknown[]> {
  const items = new Map<PathElement, unknown[]>();
  for (const item of list) {
    const element = itemElement(item, schema, shape);
    if (element === undefined) {
      if (shape.kind === 'keyed') {
        throw new PatchError('untyped', `element ${items.size}: ${unidentified(item, shape)}`);
      }
      continue;
    }
    const others = items.get(element);
    if (others) others.push(item);
    else items.set(element, [item]);
  }
  return items;
}
