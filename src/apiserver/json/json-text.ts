import { escapeHtml } from '../../util/go-format.ts';

let last: { readonly value: object; readonly text: string } | undefined;

/**
 * Encodes `value` as JSON. Caches the last text, because a write is sent to its client and to all
 * watchers in succession. `value` must not change afterwards.
 */
export function jsonText(value: object): string {
  if (last?.value !== value) last = { value, text: encodeExactJson(value) };
  return last.text;
}

const { rawJSON } = JSON as typeof JSON & { rawJSON: (this: void, text: string) => object };

/** The numbers to which the limits of int64 are rounded; other programs cannot decode their texts as int64. */
const INT64_LIMITS: ReadonlyMap<unknown, object> = new Map([
  [2 ** 63, rawJSON('9223372036854775807')],
  [-(2 ** 63), rawJSON('-9223372036854775808')],
]);
const ROUNDED_LIMIT = String(2 ** 63);

/** Encodes `value` as JSON like Go: with exact limits of int64, and with the characters escaped that HTML treats specially. */
export function encodeExactJson(value: object): string {
  const text = JSON.stringify(value);
  if (!text.includes(ROUNDED_LIMIT)) return escapeHtml(text);
  return escapeHtml(JSON.stringify(value, (_key, part: unknown) => INT64_LIMITS.get(part) ?? part));
}
