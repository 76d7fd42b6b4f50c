import type { JsonObject } from '../../util/json-value.ts';
import { requireDepth } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { goJson, goNumber } from '../../util/go-format.ts';
import { goQuote } from '../../util/go-quote.ts';

/** The path from an object to one of its fields. */
export type FieldSetPath = readonly PathElement[];

/**
 * An immutable set of fields, as recorded in `managedFields`: a trie of path elements. An element
 * may be a member, lead to members, or both. Operations share unchanged parts; an operation that
 * removes nothing returns the set itself.
 */
export class FieldSet {
  static readonly EMPTY: FieldSet = new FieldSet(new Set(), new Map());

  readonly #members: ReadonlySet<PathElement>;
  /** Contains no empty set. */
  readonly #children: ReadonlyMap<PathElement, FieldSet>;
  #json: JsonObject | undefined;

  private constructor(
    members: ReadonlySet<PathElement>,
    children: ReadonlyMap<PathElement, FieldSet>,
  ) {
    this.#members = members;
    this.#children = children;
  }

  /** Returns the set with these members and these child sets. */
  static of(
    members: Iterable<PathElement>,
    children: Iterable<readonly [PathElement, FieldSet]> = [],
  ): FieldSet {
    // Most sets have either members or children.
    let below: Map<PathElement, FieldSet> | undefined;
    for (const [element, set] of children) {
      if (!set.isEmpty) (below ??= new Map<PathElement, FieldSet>()).set(element, set);
    }
    const own = new Set(members);
    if (own.size === 0 && !below) return FieldSet.EMPTY;
    return new FieldSet(own, below ?? FieldSet.EMPTY.#children);
  }

  static ofPaths(paths: Iterable<FieldSetPath>): FieldSet {
    const builder = new FieldSetBuilder();
    for (const path of paths) {
      const last = path.at(-1);
      if (last === undefined) continue;
      path
        .slice(0, -1)
        .reduce((at, element) => at.at(element), builder)
        .add(last);
    }
    return builder.build();
  }

  /**
   * Reads `fieldsV1`. Elements of unknown kinds are skipped.
   *
   * @throws {SyntaxError} if it is malformed
   * @throws {NestingError} if it is nested too deeply
   */
  static fromJson(fields: unknown, depth: number = 0): FieldSet {
    requireDepth(depth);
    if (!isRecord(fields)) throw new SyntaxError('fieldsV1 must consist of objects');
    const members: PathElement[] = [];
    const children: [PathElement, FieldSet][] = [];
    for (const [key, value] of Object.entries(fields)) {
      if (key === '.') continue;
      const element = parseElement(key);
      if (element === undefined) continue;
      const child = FieldSet.fromJson(value, depth + 1);
      if (child.isEmpty || Object.hasOwn(value as object, '.')) members.push(element);
      if (!child.isEmpty) children.push([element, child]);
    }
    return FieldSet.of(members, children);
  }

  /** Returns `fieldsV1` with sorted keys. It is the same object for each call, and must not change. */
  toJson(): JsonObject {
    this.#json ??= this.#addTo({});
    return this.#json;
  }

  #addTo(fields: JsonObject): JsonObject {
    for (const element of this.#elements()) {
      const child = this.#children.get(element);
      if (!child) fields[element] = LEAF;
      else if (this.#members.has(element)) fields[element] = child.#addTo({ '.': LEAF });
      else fields[element] = child.toJson();
    }
    return fields;
  }

  /** Approximate length of `fieldsV1` as JSON; not more than that. */
  get length(): number {
    let length = 0;
    for (const element of this.#members) length += element.length + LEAF_LENGTH;
    for (const [element, set] of this.#children) length += element.length + set.length;
    return length;
  }

  get isEmpty(): boolean {
    return this.#members.size === 0 && this.#children.size === 0;
  }

  has(path: FieldSetPath): boolean {
    const [element, ...rest] = path;
    if (element === undefined) return false;
    if (rest.length === 0) return this.#members.has(element);
    return this.#children.get(element)?.has(rest) ?? false;
  }

  hasMember(element: PathElement): boolean {
    return this.#members.has(element);
  }

  get members(): ReadonlySet<PathElement> {
    return this.#members;
  }

  get children(): ReadonlyMap<PathElement, FieldSet> {
    return this.#children;
  }

  union(other: FieldSet): FieldSet {
    if (other.isEmpty || this === other) return this;
    if (this.isEmpty) return other;
    const children = new Map(this.#children);
    for (const [element, set] of other.#children) {
      children.set(element, children.get(element)?.union(set) ?? set);
    }
    return new FieldSet(this.#members.union(other.#members), children);
  }

  intersection(other: FieldSet): FieldSet {
    if (this === other) return this;
    if (this.isEmpty || other.isEmpty) return FieldSet.EMPTY;
    const children: [PathElement, FieldSet][] = [];
    for (const [element, set] of this.#children) {
      const counterpart = other.#children.get(element);
      if (counterpart) children.push([element, set.intersection(counterpart)]);
    }
    return FieldSet.of(this.#members.intersection(other.#members), children);
  }

  /** Returns this set without the fields of `other`, but with the fields below them. */
  difference(other: FieldSet): FieldSet {
    if (this.isEmpty || other.isEmpty) return this;
    return this.#without(other, (set, counterpart) => set.difference(counterpart));
  }

  /** Returns this set without the fields of `other` and all fields below them. */
  recursiveDifference(other: FieldSet): FieldSet {
    if (this.isEmpty || other.isEmpty) return this;
    return this.#without(other, (set, counterpart, isMember) =>
      isMember ? FieldSet.EMPTY : set.recursiveDifference(counterpart),
    );
  }

  equals(other: FieldSet): boolean {
    if (this === other) return true;
    if (this.#members.size !== other.#members.size) return false;
    if (this.#children.size !== other.#children.size) return false;
    if (!this.#members.isSubsetOf(other.#members)) return false;
    for (const [element, set] of this.#children) {
      const counterpart = other.#children.get(element);
      if (!counterpart || !set.equals(counterpart)) return false;
    }
    return true;
  }

  /** Yields every field in order. */
  *paths(prefix: FieldSetPath = []): Generator<FieldSetPath> {
    for (const element of this.#elements()) {
      const path = [...prefix, element];
      if (this.#members.has(element)) yield path;
      const child = this.#children.get(element);
      if (child) yield* child.paths(path);
    }
  }

  #without(
    other: FieldSet,
    below: (set: FieldSet, counterpart: FieldSet, isMember: boolean) => FieldSet,
  ): FieldSet {
    let changed = false;
    const children: [PathElement, FieldSet][] = [];
    for (const [element, set] of this.#children) {
      const counterpart = other.#children.get(element) ?? FieldSet.EMPTY;
      const left = below(set, counterpart, other.#members.has(element));
      changed ||= left !== set;
      children.push([element, left]);
    }
    if (!changed && this.#members.isDisjointFrom(other.#members)) return this;
    return FieldSet.of(this.#members.difference(other.#members), children);
  }

  #elements(): PathElement[] {
    const all = [...new Set([...this.#members, ...this.#children.keys()])];
    const texts = all.filter((element) => element.startsWith('f:')).sort();
    const items = all.filter((element) => !element.startsWith('f:'));
    if (haveOrderOfTexts(items)) return [...texts, ...items.sort()];
    const others = items
      .map((element) => ({ element, value: JSON.parse(element.slice(2)) as unknown }))
      .sort(compareElements)
      .map(({ element }) => element);
    return [...texts, ...others];
  }
}

/** A key or value with one text, all of whose characters are after the quote that ends it. */
const ONE_TEXT = /^(?:v:|k:\{"[^"\\]*":)"[\w./:-]*"\}?$/;

/** Whether the elements of a list have the order of their texts, without being parsed. */
function haveOrderOfTexts(elements: readonly PathElement[]): boolean {
  const prefix = (element: PathElement) => element.slice(0, element.indexOf(':', 2) + 1);
  const first = elements[0] && prefix(elements[0]);
  return elements.every((element) => ONE_TEXT.test(element) && prefix(element) === first);
}

/** Length of the quotes, the colon and the value of a member. */
const LEAF_LENGTH = '"":{}'.length;

/** A field without fields in `fieldsV1`. */
const LEAF: JsonObject = {};

/** Formats a path for messages: `.spec.containers[name="web"].image`. */
export function displayPath(path: FieldSetPath): string {
  return path.map(displayElement).join('');
}

export class FieldSetBuilder {
  #members: Set<PathElement> | undefined;
  #children: Map<PathElement, FieldSetBuilder> | undefined;

  add(element: PathElement): void {
    (this.#members ??= new Set<PathElement>()).add(element);
  }

  at(element: PathElement): FieldSetBuilder {
    this.#children ??= new Map<PathElement, FieldSetBuilder>();
    let child = this.#children.get(element);
    if (!child) {
      child = new FieldSetBuilder();
      this.#children.set(element, child);
    }
    return child;
  }

  build(): FieldSet {
    const children: [PathElement, FieldSet][] = [];
    for (const [element, builder] of this.#children ?? []) {
      children.push([element, builder.build()]);
    }
    return FieldSet.of(this.#members ?? [], children);
  }
}

/**
 * One element of a field path, in the form of a `fieldsV1` key. The form is canonical: two elements
 * are equal exactly if their texts are.
 *
 * | form                        | selects                                        |
 * | --------------------------- | ---------------------------------------------- |
 * | `f:replicas`                | a member of an object                          |
 * | `k:{"name":"web"}`          | the item with these keys, in a list-type `map` |
 * | `v:"kubernetes.io/cleanup"` | a value in a list-type `set`                   |
 * | `i:0`                       | an index                                       |
 */
export type PathElement = `${'f' | 'k' | 'v' | 'i'}:${string}`;

export function fieldElement(name: string): PathElement {
  return `f:${name}`;
}

/** Returns the element of an item with one key, the most frequent one. */
export function singleKeyElement(name: string, value: unknown): PathElement {
  return `k:{${goJson(name)}:${goJson(value)}}`;
}

export function keyElement(key: Readonly<Record<string, unknown>>): PathElement {
  return `k:${goJson(key)}`;
}

export function valueElement(value: unknown): PathElement {
  return `v:${goJson(value)}`;
}

/** Returns the name in an `f:` element, or undefined for other elements. */
export function fieldName(element: PathElement): string | undefined {
  return element.startsWith('f:') ? element.slice(2) : undefined;
}

/**
 * Converts a key of `fieldsV1` to canonical form. Returns undefined for an unknown kind of key.
 *
 * @throws {SyntaxError} if it is malformed
 */
function parseElement(text: string): PathElement | undefined {
  if (text[1] !== ':') throw new SyntaxError(`missing colon: ${text}`);
  const rest = text.slice(2);
  switch (text[0]) {
    case 'f':
      return `f:${rest}`;
    case 'v':
      return valueElement(JSON.parse(rest));
    case 'k': {
      const key: unknown = JSON.parse(rest);
      if (!isRecord(key)) throw new SyntaxError(`key is not an object: ${text}`);
      return keyElement(key);
    }
    case 'i':
      if (!/^-?\d{1,15}$/.test(rest)) throw new SyntaxError(`index is not a number: ${text}`);
      return `i:${Number(rest)}`;
    default:
      return undefined;
  }
}

/** Formats an element for messages: `.spec`, `[name="web"]`, `[="x"]`, `[0]`. */
export function displayElement(element: PathElement): string {
  const rest = element.slice(2);
  switch (element[0]) {
    case 'f':
      return `.${rest}`;
    case 'k': {
      const key = JSON.parse(rest) as Record<string, unknown>;
      const parts = Object.entries(key).map(([name, value]) => `${name}=${displayValue(value)}`);
      return `[${parts.join(',')}]`;
    }
    case 'v':
      return `[=${displayValue(JSON.parse(rest))}]`;
    default:
      return `[${rest}]`;
  }
}

interface ParsedElement {
  readonly element: PathElement;
  readonly value: unknown;
}

/** Orders keys, then values, indices; numbers by value. */
function compareElements(a: ParsedElement, b: ParsedElement): number {
  const kind = KIND_ORDER.indexOf(a.element.charAt(0)) - KIND_ORDER.indexOf(b.element.charAt(0));
  return kind === 0 ? compareJson(a.value, b.value) : kind;
}

const KIND_ORDER = 'kvi';

function displayValue(value: unknown): string {
  if (typeof value === 'string') return goQuote(value);
  if (typeof value === 'number') return goNumber(value);
  if (Array.isArray(value)) return `[${value.map(displayValue).join(',')}]`;
  if (!isRecord(value)) return goJson(value);
  // As upstream, without a separator.
  return Object.entries(value)
    .map(([name, member]) => `${name}=${displayValue(member)}`)
    .join('');
}

function compareJson(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (isRecord(a) && isRecord(b)) {
    const [left, right] = [Object.entries(a), Object.entries(b)];
    for (const [index, [name, value]] of left.entries()) {
      const other = right[index];
      if (!other) return 1;
      if (name !== other[0]) return name < other[0] ? -1 : 1;
      const order = compareJson(value, other[1]);
      if (order !== 0) return order;
    }
    return left.length - right.length;
  }
  const [left, right] = [goJson(a), goJson(b)];
  return left === right ? 0 : left < right ? -1 : 1;
}
