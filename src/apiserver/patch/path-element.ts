import { goJson, goNumber } from '../schema/go-format.ts';
import { goQuote } from '../../util/go-quote.ts';
import { isRecord } from '../../util/values.ts';

/**
 * One step of a field's path, in the form that `fieldsV1` uses as key. The form is canonical: two
 * steps are the same exactly if their texts are.
 *
 * | form                        | step to                                        |
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

export function keyElement(key: Readonly<Record<string, unknown>>): PathElement {
  return `k:${goJson(key)}`;
}

export function valueElement(value: unknown): PathElement {
  return `v:${goJson(value)}`;
}

/** The name of an `f:` element. */
export function fieldName(element: PathElement): string | undefined {
  return element.startsWith('f:') ? element.slice(2) : undefined;
}

/**
 * A key of `fieldsV1` in canonical form; undefined if it is of a kind that is not known (yet).
 *
 * @throws {SyntaxError} if it is malformed
 */
export function parseElement(text: string): PathElement | undefined {
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

/** As messages show it: `.spec`, `[name="web"]`, `[="x"]`, `[0]`. */
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

/** Fields first, then keys, values, indices; numbers by size. */
export function compareElements(a: PathElement, b: PathElement): number {
  if (a === b) return 0;
  const kind = KIND_ORDER.indexOf(a.charAt(0)) - KIND_ORDER.indexOf(b.charAt(0));
  if (kind !== 0) return kind;
  if (a.startsWith('f:')) return a < b ? -1 : 1;
  return compareJson(JSON.parse(a.slice(2)), JSON.parse(b.slice(2)));
}

const KIND_ORDER = 'fkvi';

function displayValue(value: unknown): string {
  if (typeof value === 'string') return goQuote(value);
  return typeof value === 'number' ? goNumber(value) : goJson(value);
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
