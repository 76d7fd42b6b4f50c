/** What Go's `strconv.IsPrint` lets through: letters, marks, numbers, punctuation, symbols, space. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Strings made of these alone are the common case and need no look at each character. */
const PLAIN = /^[ !#-[\]-~]*$/;
const SPECIAL = /[^ !#-[\]-~]/gu;

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
]);

/** `text` as Go's `strconv.Quote` gives it: a double-quoted literal on one line. */
export function goQuote(text: string): string {
  const quoted = PLAIN.test(text)
    ? text
    : text.replaceAll(SPECIAL, (each) => ESCAPES.get(each) ?? escapeUnprintable(each));
  return `"${quoted}"`;
}

/** `character` itself if it can be printed, else its `\x`, `\u` or `\U` escape. */
export function escapeUnprintable(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20 || code === 0x7f) return `\\x${hex(code, 2)}`;
  // A surrogate without its partner is no character; Go shows such a rune as U+FFFD, escaped.
  if (code >= 0xd800 && code <= 0xdfff) return '\\ufffd';
  if (PRINTABLE.test(character)) return character;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}
