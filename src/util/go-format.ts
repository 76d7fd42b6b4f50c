import type { JsonObject } from './json-value.ts';
import { setOwn } from './json-value.ts';
import { NumberText } from './number-text.ts';
import { isRecord } from './values.ts';

/** Formats a number like Go's `%v`. */
export function goNumber(value: number): string {
  const size = Math.abs(value);
  if (Number.isSafeInteger(value) || (size >= 1e-4 && size < 1e21)) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

/** Encodes a value like Go's `json.Marshal`: sorted keys, `<`, `>` and `&` escaped. */
export function goJson(value: unknown): string {
  if (typeof value === 'string') return goText(value);
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`;
  if (!isRecord(value) || value instanceof NumberText) {
    return escapeHtml(JSON.stringify(value) ?? 'null');
  }
  const keys = Object.keys(value);
  // Keys of list items have one member, and an object can have a hundred thousand of them.
  if (keys.length > 1) keys.sort();
  return `{${keys.map((key) => `${goText(key)}:${goJson(value[key])}`).join(',')}}`;
}

const ESCAPED = /[<>&\u2028\u2029]/;

/** Returns a JSON value with sorted keys, as if Go had encoded and decoded it. */
export function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (value instanceof NumberText) return value;
  if (!isRecord(value)) {
    const isEncoded = typeof value !== 'number' || Number.isFinite(value);
    return isEncoded ? (value ?? null) : null;
  }
  const sorted: JsonObject = {};
  for (const key of Object.keys(value).sort()) setOwn(sorted, key, withSortedKeys(value[key]));
  return sorted;
}

/** Formats a JSON value like Go's `%v`: `map[a:1 b:[x y]]`. */
export function goValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goValue).join(' ')}]`;
  if (isRecord(value)) {
    const members = Object.keys(value).sort();
    return `map[${members.map((key) => `${key}:${goValue(value[key])}`).join(' ')}]`;
  }
  if (typeof value === 'string') return value;
  if (value === null) return '<nil>';
  return typeof value === 'number' ? goNumber(value) : JSON.stringify(value);
}

function goText(text: string): string {
  return escapeHtml(JSON.stringify(text));
}

/** Escapes characters in JSON that HTML treats specially, as Go's encoder does. */
export function escapeHtml(json: string): string {
  if (!ESCAPED.test(json)) return json;
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Maximum number of characters of the errors in one response. */
const MAX_CHARACTERS = 1024 * 1024;

/** The errors that a response lists, and the number of omitted ones. */
interface Listed<T> {
  readonly items: readonly T[];
  readonly texts: readonly string[];
  readonly omitted: number;
}

/**
 * Selects the first errors, at least one, up to 1 Mi characters in total. A body of 3 MiB can have
 * 100,000 errors, each with a path of 1 MiB.
 */
export function listed<T>(errors: readonly T[], textOf: (error: T) => string): Listed<T> {
  const texts: string[] = [];
  let characters = 0;
  for (const error of errors) {
    const text = textOf(error);
    characters += text.length;
    if (characters > MAX_CHARACTERS && texts.length > 0) break;
    texts.push(text);
  }
  const items = texts.length < errors.length ? errors.slice(0, texts.length) : errors;
  return { items, texts, omitted: errors.length - texts.length };
}

/** The last entry of a list with `omitted` omitted entries; none if that is 0. */
export function andMore(omitted: number): readonly string[] {
  return omitted > 0 ? [`and ${omitted} more`] : [];
}
