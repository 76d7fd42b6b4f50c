/**
 * Characters that can control a terminal, change the direction of text or hide: control, format, private and unassigned
 * characters, line separators, and those without width.
 */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const UNPRINTABLE_EXCEPT_LINES = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Matches text that needs no escaping. */
const PLAIN = /^[ -~\n]*$/;

const CONTROL = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}]/gu;

/** Escapes control characters in JSON as klog does, and keeps other characters without width. */
export function withoutControls(json: string): string {
  return PLAIN.test(json) ? json : json.replaceAll(CONTROL, escapeCharacter);
}

/** Returns one line in which characters that are not printable are JSON escapes, such as `\u009b`. */
export function printableLine(text: string): string {
  return text.replaceAll(UNPRINTABLE, escapeCharacter);
}

/** Like `printableLine`, and keeps line breaks and tabs. JSON stays valid, with the same value. */
export function printableText(text: string): string {
  return PLAIN.test(text) ? text : text.replaceAll(UNPRINTABLE_EXCEPT_LINES, escapeCharacter);
}

/** Like `printableText`, and keeps the escape sequences of colours and styles. */
export function printableStyledText(text: string): string {
  const parts = text.split(STYLE);
  return parts.map((part, index) => (index % 2 === 1 ? part : printableText(part))).join('');
}

// oxlint-disable-next-line no-control-regex -- escape sequences start with a control character
const STYLE = /(\u001b\[[\d;]{0,20}m)/;

function escapeCharacter(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('');
}
