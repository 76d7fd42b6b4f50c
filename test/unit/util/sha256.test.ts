import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { toHex } from '../../../src/util/bytes.ts';
import { sha256 } from '../../../src/util/sha256.ts';

test('returns the digest of a text of each length around two blocks', () => {
  for (let length = 0; length < 260; length++) {
    const text = 'é'.repeat(length % 3) + 'a'.repeat(length);
    assert.equal(toHex(sha256(text)), createHash('sha256').update(text).digest('hex'));
  }
});
