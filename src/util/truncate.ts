import { utf8Length } from './bytes.ts';

/**
 * Returns at most `length` characters of `text`, counted as UTF-16 code units, with an ellipsis if it was cut. Cuts no
 * code point. A lone surrogate becomes U+FFFD, as which an API server stores it.
 */
export function truncate(text: string, length: number): string {
  const kept = text.length <= length ? text : `${withoutHalf(text.slice(0, length - 1))}…`;
  return kept.toWellFormed();
}

/** Returns at most `bytes` bytes of `text` in UTF-8, as `truncate` does. */
export function truncateBytes(text: string, bytes: number): string {
  const whole = text.toWellFormed();
  if (utf8Length(whole) <= bytes) return whole;
  const { read } = new TextEncoder().encodeInto(whole, new Uint8Array(bytes - ELLIPSIS_BYTES));
  return `${whole.slice(0, read)}…`;
}

const ELLIPSIS_BYTES = 3;

function withoutHalf(text: string): string {
  return text.replace(/[\uD800-\uDBFF]$/, '');
}
