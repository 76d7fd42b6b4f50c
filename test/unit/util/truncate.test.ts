import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { truncate, truncateBytes } from '../../../src/util/truncate.ts';

/** Texts of characters with one to four bytes, and lone surrogates. */
const texts = fc
  .array(fc.constantFrom('x', 'é', '字', '😀', '\ud800', '\udc00'), { maxLength: 40 })
  .map((parts) => parts.join(''));

for (const [cut, sizeOf] of [
  [truncate, (text: string) => text.length],
  [truncateBytes, (text: string) => Buffer.byteLength(text)],
] as const) {
  test(`${cut.name} keeps whole code points within the limit, and replaces lone surrogates`, () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 4, max: 40 }), (text, limit) => {
        const whole = text.toWellFormed();
        const kept = cut(text, limit);
        assert.ok(kept.isWellFormed());
        if (sizeOf(whole) <= limit) return assert.equal(kept, whole);
        assert.ok(kept.endsWith('…') && whole.startsWith(kept.slice(0, -1)), kept);
        assert.ok(sizeOf(kept) <= limit && sizeOf(kept) > limit - 4, kept);
      }),
    );
  });
}
