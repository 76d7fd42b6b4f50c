import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  compareBytes,
  fromBase64,
  toBase64,
  toBase64Url,
  toHex,
  utf8Length,
  utf8Text,
} from '../../../src/util/bytes.ts';

const bytes = fc.uint8Array({ maxLength: 40 });

test('converts bytes as a Buffer', () => {
  fc.assert(
    fc.property(bytes, bytes, (one, other) => {
      const buffer = Buffer.from(one);
      assert.equal(toHex(one), buffer.toString('hex'));
      assert.equal(toBase64(one), buffer.toString('base64'));
      assert.equal(toBase64Url(one), buffer.toString('base64url'));
      assert.equal(utf8Text(one), buffer.toString());
      assert.equal(compareBytes(one, other), Buffer.compare(one, other));
    }),
  );
});

test('counts the bytes of a text, also with halves of surrogate pairs', () => {
  const units = fc.constantFrom('a', 'é', '€', '\ud83d', '\ude00');
  fc.assert(
    fc.property(fc.array(units), (characters) => {
      const text = characters.join('');
      assert.equal(utf8Length(text), Buffer.byteLength(text));
    }),
  );
});

test('reads base64 of both alphabets, without characters that are not base64, up to the padding', () => {
  const characters = fc.constantFrom(...Array.from('AZaz09+/-_= \n%'));
  fc.assert(
    fc.property(fc.array(characters), (text) => {
      const base64 = text.join('');
      assert.equal(toHex(fromBase64(base64)), Buffer.from(base64, 'base64').toString('hex'));
    }),
  );
});
