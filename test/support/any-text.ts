import assert from 'node:assert/strict';
import * as fc from 'fast-check';

/** Surrogates are between the two. */
const SURROGATES = 0xd800;
const AFTER_SURROGATES = 0xe000;
const HALVES = AFTER_SURROGATES - SURROGATES;

/** Maps numbers to code points. */
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

/** Generates texts of any characters, like `fc.string({ unit: 'binary' })` but without its large table. */
export function anyText(): fc.Arbitrary<string> {
  return fc.string({ unit: character });
}
