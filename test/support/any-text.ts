import assert from 'node:assert/strict';
import * as fc from 'fast-check';

/** Between the two, halves of characters. */
const SURROGATES = 0xd800;
const AFTER_SURROGATES = 0xe000;
const HALVES = AFTER_SURROGATES - SURROGATES;

/** Numbers are the characters in the order of Unicode. */
const character = fc.integer({ min: 0, max: 0x10ffff - HALVES }).map(
  (at) => String.fromCodePoint(at < SURROGATES ? at : at + HALVES),
  (text) => {
    assert.ok(typeof text === 'string');
    const code = text.codePointAt(0) ?? 0;
    assert.ok(
      text === String.fromCodePoint(code) && (code < SURROGATES || code >= AFTER_SURROGATES),
    );
    return code < SURROGATES ? code : code - HALVES;
  },
);

/**
 * Texts of any characters: `fc.string({ unit: 'binary' })` without its table of all million of them,
 * which takes a second to fill.
 */
export function anyText(): fc.Arbitrary<string> {
  return fc.string({ unit: character });
}
