import { formatDuration } from '../../util/duration.ts';

/**
 * Text of unknown origin, such as object names and error messages, in the columns of a terminal. A
 * character has one column, or two if it is wide.
 */

/** Letters of Latin, Greek and Cyrillic, and the signs that the views use: one column in each terminal. */
const NARROW =
  '\\x20-\\x7e\\u00a1-\\u00ac\\u00ae-\\u024f\\u0370-\\u03ff\\u0400-\\u052f\\u2026\\u25b2\\u25bc';

/** Chinese, Japanese and Korean: two columns in each terminal. */
const WIDE =
  '\\u3001-\\u3029\\u3041-\\u3096\\u30a1-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uac00-\\ud7a3\\uff01-\\uff60';

const wideCharacter = new RegExp(`[${WIDE}]`, 'g');
const otherCharacter = new RegExp(`[^${NARROW}${WIDE}]`, 'gu');

/**
 * Replaces every character that could control a terminal, change the direction of the text, or have
 * another width than expected, such as combining characters and emoji.
 */
export function printable(text: string): string {
  return text.normalize('NFC').replaceAll(otherCharacter, '?');
}

/** Returns the number of columns of a printable text. */
export function widthOf(text: string): number {
  return text.length + (text.match(wideCharacter)?.length ?? 0);
}

/** Cuts a printable text to at most `room` columns. */
export function cut(text: string, room: number): string {
  if (widthOf(text) <= room) return text;
  return room < 1 ? '' : `${start(text, room - 1)}…`;
}

/** Fills a printable text with spaces to `room` columns. */
export function pad(text: string, room: number, alignment: 'left' | 'right'): string {
  const spaces = ' '.repeat(Math.max(0, room - widthOf(text)));
  return alignment === 'left' ? text + spaces : spaces + text;
}

/** Breaks a printable text into lines of at most `room` columns, at spaces if possible. */
export function wrap(text: string, room: number): string[] {
  const lines: string[] = [];
  let rest = text.trimEnd();
  while (widthOf(rest) > Math.max(2, room)) {
    const most = start(rest, Math.max(2, room));
    const space = rest[most.length] === ' ' ? most.length : most.lastIndexOf(' ');
    const end = space > 0 ? space : most.length;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}

/** Returns the longest start of a text that has at most `room` columns. */
function start(text: string, room: number): string {
  let left = room;
  let length = 0;
  for (const character of text) {
    left -= widthOf(character);
    if (left < 0) break;
    length += character.length;
  }
  return text.slice(0, length);
}

export function rateCell(perSecond: number | undefined): string {
  if (perSecond === undefined) return '-';
  return perSecond === 0 || perSecond >= 100 ? String(Math.round(perSecond)) : perSecond.toFixed(2);
}

/** Two digits are enough to compare. */
export function durationCell(ms: number | undefined): string {
  if (ms === undefined) return '-';
  return formatDuration(ms < 1000 ? Number(ms.toPrecision(2)) : 100 * Math.round(ms / 100));
}

/** Formats a time by its two largest units. */
export function roughly(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ] as const;
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first === -1) return '0s';
  return units
    .slice(first, first + 2)
    .map(([unit, size], at) => {
      const above = at === 0 ? Infinity : (units[first]?.[1] ?? 1);
      return [Math.floor((seconds % above) / size), unit] as const;
    })
    .filter(([amount], at) => at === 0 || amount > 0)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join('');
}

export function mebibytesCell(bytes: number | undefined): string {
  return bytes === undefined ? '-' : `${Math.round(bytes / 2 ** 20)}MiB`;
}
