/** Characters that Go's `strconv.IsPrint` accepts: letters, marks, numbers, punctuation, symbols, space. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Characters without escapes. Most strings consist of these only. */
const PLAIN = /^[ !#-[\]-~]*$/;
const SPECIAL = /[^ !#-[\]-~]/gu;

/** Escapes of Go's string literals by character. */
export const ESCAPES: ReadonlyMap<string, string> = new Map([
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

/** Quotes `text` as Go's `strconv.Quote` does: a double-quoted literal on one line. */
export function goQuote(text: string): string {
  const quoted = PLAIN.test(text)
    ? text
    : text.replaceAll(SPECIAL, (each) => ESCAPES.get(each) ?? escapeUnprintable(each));
  return `"${quoted}"`;
}

/** Returns `character` if it is printable, otherwise its `\x`, `\u` or `\U` escape. */
export function escapeUnprintable(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20 || code === 0x7f) return `\\x${hex(code, 2)}`;
  // Go shows an unpaired surrogate as the replacement character U+FFFD.
  if (code >= 0xd800 && code <= 0xdfff) return '\\ufffd';
  if (PRINTABLE.test(character)) return character;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}
