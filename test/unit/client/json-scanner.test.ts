import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { JsonScanner } from '../../../src/client/json-scanner.ts';
import { jsonTree, style, writeJson } from '../../support/json-text.ts';

const scanner = new JsonScanner();

function scan(text: string, limit: number, before = '') {
  const bytes = Buffer.from(before + text);
  const start = Buffer.byteLength(before);
  const count = scanner.scan(bytes, start, bytes.length, limit);
  if (count < 0) return undefined;
  return Array.from(scanner.tape.subarray(0, count), (offset) => offset - start);
}

/** The same, one character after another. */
function expected(text: string, limit: number) {
  const bytes = Buffer.from(text);
  const found: number[] = [];
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < bytes.length; at++) {
    const sign = String.fromCharCode(bytes[at] ?? 0);
    if (isInString) {
      if (sign === '\\') at++;
      else if (sign === '"') isInString = false;
    } else if (sign === '"') {
      isInString = true;
    } else if ('{['.includes(sign)) {
      if (++depth <= limit) found.push(at);
    } else if ('}]'.includes(sign)) {
      if (depth-- <= limit) found.push(at);
      if (depth < 0) return undefined;
    } else if (',:'.includes(sign) && depth <= limit) {
      found.push(at);
    }
  }
  return depth === 0 && !isInString ? found : undefined;
}

test('finds the structure of any JSON, at any position', () => {
  fc.assert(
    fc.property(jsonTree, style, fc.nat(6), fc.nat(130), (tree, how, limit, offset) => {
      const text = writeJson(tree, how);
      assert.deepEqual(scan(text, limit, '"'.repeat(offset)), expected(text, limit));
    }),
    { numRuns: 500 },
  );
});

test('finds strings that end or continue at the borders of 64 bytes and of blocks', () => {
  const sizes = [
    60, 61, 62, 63, 64, 65, 66, 127, 128, 129, 65_534, 65_535, 65_536, 65_537, 131_100,
  ];
  for (const size of sizes) {
    for (const end of ['\\\\', '\\"', '\\\\\\"', '"', 'x']) {
      const text = `["${'x'.repeat(Math.max(0, size - end.length))}${end}",{"a":[1,"]"]}]`;
      assert.deepEqual(scan(text, 3), expected(text, 3), `${size} ${end}`);
    }
  }
});

test('reports unbalanced brackets and quotes', () => {
  const text = '{"a":[{"b":"}]"},["\\""]]}';
  for (let length = 1; length < text.length; length++) {
    assert.equal(scan(text.slice(0, length), 9), undefined, text.slice(0, length));
  }
  assert.equal(scan(`${text}}`, 9), undefined);
  assert.equal(scan(`${text}}{`, 9), undefined);
  assert.notEqual(scan(text, 9), undefined);
});

test('reports the depth of a text, not of the text before it', () => {
  scan('[[[[]]]]', 1);
  assert.equal(scanner.deepest, 4);
  scan('[{"a":"[[["}]', 1);
  assert.equal(scanner.deepest, 2);
  const large = `[${'[1],'.repeat(50_000)}[[]]]`;
  assert.equal(scan(large, 1)?.length, 50_002);
  assert.equal(scanner.deepest, 3);
});
