import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { ELEMENTS, MAX_DEPTH, parseJson, scanJson } from '../../../src/client/json.ts';
import { isRecord } from '../../../src/util/values.ts';
import type { JsonPath } from '../../../src/client/json.ts';

const IN_EVENT: JsonPath = ['object', 'metadata', 'managedFields'];
const IN_LIST: JsonPath = ['items', ELEMENTS, 'metadata', 'managedFields'];

function parsed(text: string, leaveOut: JsonPath): unknown {
  return parseJson(Buffer.from(text), 'A text', leaveOut);
}

/** The expected result: parse everything, then remove the value at the path. */
function without(value: unknown, path: JsonPath): unknown {
  const [step, ...rest] = path;
  if (step === ELEMENTS) {
    if (Array.isArray(value)) for (const element of value as unknown[]) without(element, rest);
  } else if (isRecord(value) && typeof step === 'string' && Object.hasOwn(value, step)) {
    if (rest.length > 0) without(value[step], rest);
    else if (Array.isArray(value[step])) delete value[step];
  }
  return value;
}

/** JSON with names that occur in the paths, and strings that look like JSON. */
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 7 },
    fc.constantFrom<unknown>(
      null,
      true,
      -1.5,
      '',
      '"',
      '\\',
      '\\"',
      '"managedFields":[',
      '},{',
      'ü[😀',
    ),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom(
        'object',
        'items',
        'metadata',
        'managedFields',
        'spec',
        'x"managedFields',
        '',
      ),
      tie('value'),
      { maxKeys: 4 },
    ),
  ),
})).value;

for (const [name, path] of [
  ['an event', IN_EVENT],
  ['a list', IN_LIST],
] as const) {
  test(`removes exactly the value at the end of the path of ${name}`, () => {
    fc.assert(
      fc.property(json, json, json, (value, inner, other) => {
        const metadata = { a: other, managedFields: [inner], b: value };
        const object = { spec: { metadata }, metadata };
        for (const root of [value, { object }, { items: [object, value, object], object }]) {
          const text = JSON.stringify(root);
          assert.deepEqual(parsed(text, path), without(JSON.parse(text), path));
        }
      }),
      { numRuns: 300 },
    );
  });
}

test('removes the value at any position in its object', () => {
  for (const members of ['M', 'M,"a":1', '"a":1,M', '"a":1,M,"b":2', 'M,M']) {
    const text = `{"object":{"metadata":{${members.replaceAll('M', '"managedFields":[{"f":[]}]')}}}}`;
    const scan = scanJson(Buffer.from(text), IN_EVENT);
    assert.equal(scan.cuts.length, members.includes('M,M') ? 4 : 2, text);
    assert.deepEqual(parsed(text, IN_EVENT), without(JSON.parse(text), IN_EVENT));
  }
});

test('removes only arrays, and parses JSON with whitespace unchanged', () => {
  for (const text of [
    '{"object":{"metadata":{"managedFields":{"a":[1]}}}}',
    '{"object":{"metadata":{"managedFields":null}}}',
    '{"object": {"metadata": {"managedFields": [1]}}}',
    '{"metadata":{"managedFields":[1]}}',
    '{"object":{"spec":{"managedFields":[1]}}}',
    '{"object":{"metadata":{"annotations":{"managedFields":[1]}}}}',
  ]) {
    assert.deepEqual(parsed(text, IN_EVENT), JSON.parse(text));
  }
});

test('rejects JSON that ends within the removed value', () => {
  const text = '{"object":{"metadata":{"managedFields":[{"a":"]}"},{"b":["\\""]}]}}}';
  for (let length = 0; length < text.length; length++) {
    assert.throws(() => parsed(text.slice(0, length), IN_EVENT), { kind: 'malformed' });
  }
});

test('checks the depth with and without a path', () => {
  for (const path of [IN_EVENT, IN_LIST]) {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    parsed(nested(MAX_DEPTH), path);
    assert.throws(() => parsed(nested(MAX_DEPTH + 1), path), /deeper than 100 levels/);
    assert.throws(() => parsed(`{"items":${nested(MAX_DEPTH)}}`, path), /deeper than 100 levels/);
    assert.throws(() => parsed(`{"object":${nested(MAX_DEPTH)}}`, path), /deeper than 100 levels/);
    parsed(JSON.stringify({ items: '{"['.repeat(MAX_DEPTH) }), path);
  }
});
