import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printableLine, printableStyledText, printableText } from '../../../src/util/printable.ts';

/** Escape and control sequences, bidirectional overrides and isolates, and characters without width. */
const HOSTILE = [
  0x00, 0x07, 0x08, 0x0d, 0x1b, 0x7f, 0x80, 0x90, 0x9b, 0x9d, 0xad, 0x061c, 0x115f, 0x180e, 0x200b,
  0x200d, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0x3164, 0xd800, 0xfeff,
  0xfff9, 0xe000, 0xe0041,
].map((code) => String.fromCodePoint(code));

test('escapes characters that control a terminal, turn text or hide, and keeps the value of JSON', () => {
  for (const character of HOSTILE) {
    const text = `a${character}b`;
    assert.match(printableLine(text), /^a(\\u[0-9a-f]{4}){1,2}b$/);
    const json = printableText(JSON.stringify({ text }, undefined, 2));
    assert.match(json, /^[ -~\n]*$/);
    assert.deepEqual(JSON.parse(json), { text });
  }
});

test('keeps text in each language, and styles where they are wanted', () => {
  const text = 'Größe 深い مرحبا 🎉\n\tzwei';
  assert.equal(printableText(text), text);
  assert.equal(printableLine('a\nb\tc'), 'a\\u000ab\\u0009c');
  const styled = '\u001b[1;31mred\u001b[0m';
  assert.equal(printableStyledText(`${styled}\u001b[2J`), `${styled}\\u001b[2J`);
  assert.equal(printableText(styled), '\\u001b[1;31mred\\u001b[0m');
});
