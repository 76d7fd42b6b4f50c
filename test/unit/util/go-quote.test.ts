import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goQuote } from '../../../src/util/go-quote.ts';

const quoted: readonly (readonly [what: string, text: string, literal: string])[] = [
  ['an empty text', '', '""'],
  ['plain text', 'Started workers', '"Started workers"'],
  ['quotes and backslashes', 'a "b" \\c', String.raw`"a \"b\" \\c"`],
  ['the escapes that have a letter', '\u0007\b\f\n\r\t\v', String.raw`"\a\b\f\n\r\t\v"`],
  ['other control characters', '\0\x1b[31m\x7f', String.raw`"\x00\x1b[31m\x7f"`],
  ['C1 control characters', '\u0080\u009f', String.raw`"\u0080\u009f"`],
  ['letters and symbols of any script', 'héllo 世界 🚀 €', '"héllo 世界 🚀 €"'],
  ['single quotes and markup', `it's <b>&</b>`, `"it's <b>&</b>"`],
  ['spaces that are not U+0020', '\u00a0\u2028\u3000', String.raw`"\u00a0\u2028\u3000"`],
  ['format characters', '\u200b\u202e\ufeff', String.raw`"\u200b\u202e\ufeff"`],
  ['unprintable characters beyond 16 bits', '\u{e0001}', String.raw`"\U000e0001"`],
  ['halves of surrogate pairs', 'a\ud800b\udc00', String.raw`"a\ufffdb\ufffd"`],
  ['the replacement character itself', '\ufffd', '"\ufffd"'],
];

for (const [what, text, literal] of quoted) {
  test(`${what}: as strconv.Quote has it`, () => assert.equal(goQuote(text), literal));
}
