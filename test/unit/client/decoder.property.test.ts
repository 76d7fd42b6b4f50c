import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import type { KubernetesObject } from '../../../src/api/object.ts';
import { Decoder } from '../../../src/client/decoder.ts';
import { countLazyFields } from '../../../src/client/lazy-object.ts';
import { isRecord } from '../../../src/util/values.ts';
import { jsonTree, style, writeJson } from '../../support/json-text.ts';
import type { JsonTree, Members } from '../../support/json-text.ts';

const FOOS = { group: 'example.com', version: 'v1', plural: 'foos', kind: 'Foo', namespaced: true };
const expected = { resource: FOOS };

/** The members of an object in any order. Some are unusual, repeated, absent or not what they should be. */
const members: fc.Arbitrary<Members> = fc
  .record({
    metadata: fc.array(fc.tuple(fc.constantFrom('managedFields', 'labels', 'x'), jsonTree), {
      maxLength: 4,
    }),
    eager: fc.subarray(['apiVersion', 'kind', 'name'] as const, { minLength: 2 }),
    others: fc.array(
      fc.tuple(
        fc.constantFrom('spec', 'status', 'data', '__proto__', 'toString', '7', 'sp"ec', 'ü', ''),
        jsonTree,
      ),
      { maxLength: 5 },
    ),
    order: fc.infiniteStream(fc.nat(7)),
  })
  .map(({ metadata, eager, others, order }) => {
    const name: Members = eager.includes('name') ? [['name', 'a']] : [];
    const all: (readonly [string, JsonTree])[] = [
      ...eager.filter((field) => field !== 'name').map((field) => [field, `${field}/v1`] as const),
      ['metadata', { members: [...metadata, ...name, ['resourceVersion', '7']] }],
      ...others,
    ];
    return all
      .map((member) => ({ member, place: order.next().value ?? 0 }))
      .toSorted((a, b) => a.place - b.place)
      .map(({ member }) => member);
  });

/** What parsing everything returns, without managedFields and with the kind of list items. */
function complete(text: string): unknown {
  const object = JSON.parse(text) as Record<string, unknown>;
  if (isRecord(object['metadata'])) delete object['metadata']['managedFields'];
  if (typeof object['kind'] !== 'string' || object['kind'] === '') {
    Object.assign(object, { apiVersion: 'example.com/v1', kind: 'Foo' });
  }
  return object;
}

function eventOf(text: string): KubernetesObject {
  const line = Buffer.from(`x${text}x`);
  const event = new Decoder().event(line, 1, line.length - 1, 'An event', expected);
  assert.equal(event.type, 'modified');
  return event.object;
}

function responseOf(text: string, decoder = new Decoder()): KubernetesObject {
  return decoder.response(Buffer.from(text), 'A response', expected);
}

function assertSame(actual: object, wanted: unknown): void {
  assert.deepStrictEqual(actual, wanted);
  assert.ok(isDeepStrictEqual(wanted, actual));
  assert.deepStrictEqual({ ...actual }, { ...(wanted as object) });
  assert.deepStrictEqual(JSON.parse(JSON.stringify(actual)), JSON.parse(JSON.stringify(wanted)));
}

test('decodes responses, events and lists to the objects that JSON.parse returns', () => {
  fc.assert(
    fc.property(fc.array(members, { minLength: 1, maxLength: 3 }), style, (objects, how) => {
      const texts = objects.map((object) => writeJson({ members: object }, how));
      for (const text of texts) {
        assertSame(responseOf(text), complete(text));
        assertSame(responseOf(` ${text} `), complete(text));
        assertSame(eventOf(`{"type":"MODIFIED","object":${text}}`), complete(text));
        assertSame(eventOf(` { "object" : ${text} , "type":"MODIFIED"} `), complete(text));
      }
      const list = `{"kind":"FooList","items":[${texts.join(' , ')}],"metadata":{"resourceVersion":"9","continue":"c"}}`;
      const { items, resourceVersion, continueToken } = new Decoder().list(
        Buffer.from(list),
        'A list',
        expected,
      );
      assert.deepEqual(
        { resourceVersion, continueToken },
        { resourceVersion: '9', continueToken: 'c' },
      );
      assert.equal(items.length, texts.length);
      for (const [at, text] of texts.entries()) assertSame(items[at]!, complete(text));
    }),
    { numRuns: 300 },
  );
});

test('decodes large, wide and deep objects', () => {
  const wide = Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`key${at}`, `ü${at}`]));
  const deep = JSON.parse(`${'{"a":['.repeat(40)}1${']}'.repeat(40)}`) as object;
  const object = {
    apiVersion: 'example.com/v1',
    kind: 'Foo',
    metadata: { name: 'a', annotations: wide, managedFields: [{ fieldsV1: wide }] },
    spec: { wide, deep, text: '\\"},"status":{'.repeat(8000) },
    status: { deep },
  };
  const text = JSON.stringify(object);
  assert.ok(text.length > 100_000);
  assertSame(eventOf(`{"type":"MODIFIED","object":${text}}`), complete(text));
  assertSame(responseOf(text), complete(text));
});

test('does not parse the fields of events and list items before they are read', () => {
  const text = '{"kind":"Foo","apiVersion":"v1","metadata":{"name":"a"},"spec":{},"status":{}}';
  assert.equal(countLazyFields(eventOf(`{"type":"MODIFIED","object":${text}}`)), 2);
  const item = '{"metadata":{"managedFields":[],"name":"b"},"spec":{}}';
  const list = Buffer.from(`{"metadata":{},"items":[${text},${item}]}`);
  const { items } = new Decoder().list<KubernetesObject>(list, 'A list', expected);
  assert.deepEqual(items.map(countLazyFields), [2, 1]);
  assert.deepEqual(items[1]?.metadata, { name: 'b' });
});

test('reads a list without a resourceVersion and without further pages', () => {
  const text = Buffer.from('{"metadata":{"continue":""},"items":[]}');
  const list = new Decoder().list(text, 'A list', expected);
  assert.deepEqual(list, { items: [], resourceVersion: '' });
});

test('keeps the order of the fields', () => {
  for (const names of ['apiVersion,kind,metadata,spec', 'kind,apiVersion,metadata,spec']) {
    for (const order of [names.split(','), names.split(',').toReversed()]) {
      const fields = order.map((name) => `"${name}":${name === 'metadata' ? '{}' : '"v1"'}`);
      const object = eventOf(`{"type":"MODIFIED","object":{${fields.join()}}}`);
      assert.deepEqual(Object.keys(object), order);
    }
  }
});

test('keeps managedFields if the option is set', () => {
  const decoder = new Decoder({ keepManagedFields: true });
  const text = '{"kind":"Foo","apiVersion":"v1","metadata":{"managedFields":[{"a":1}]},"spec":{}}';
  const line = Buffer.from(`{"type":"ADDED","object":${text}}`);
  assertSame(decoder.event(line, 0, line.length, 'An event', expected).object, JSON.parse(text));
  assertSame(responseOf(text, decoder), JSON.parse(text));
});

test('does not parse the managedFields of a response', () => {
  const text =
    '{"kind":"Foo","apiVersion":"v1","metadata":{"name":"a","managedFields":[x],"uid":"u"},"spec":{"b":1}}';
  assertSame(responseOf(text), {
    kind: 'Foo',
    apiVersion: 'v1',
    metadata: { name: 'a', uid: 'u' },
    spec: { b: 1 },
  });
});

test('reports a malformed response, also if it is too deep', () => {
  const text =
    '{"kind":"Foo","apiVersion":"v1","metadata":{"name":"a","managedFields":[]},"spec":{}}';
  const deep = `${'['.repeat(101)}${']'.repeat(101)}`;
  for (const [broken, problem] of [
    [
      text.replace('"spec":{}', '"spec":{x}'),
      /^A response is incomplete or malformed JSON \(\d+ bytes\)$/,
    ],
    [text.slice(0, -1), /^A response is incomplete or malformed JSON/],
    [text.replace('"spec":{}', `"spec":${deep}`), /^A response is nested deeper than 100 levels$/],
    [
      text.replace('"metadata":', '"meta":'),
      /^Expected an object of kind Foo, got something else$/,
    ],
    ['[]', /^Expected an object of kind Foo/],
  ] as const) {
    assert.throws(() => responseOf(broken), { kind: 'malformed', message: problem });
  }
});

test('reports a line of which any part outside of the lazy fields is malformed', () => {
  const valid =
    '{"type":"ADDED","object":{"kind":"Foo","metadata":{"name":"a"},"apiVersion":"v1"}}';
  const decoder = new Decoder();
  const decode = (text: string) => {
    const line = Buffer.from(text);
    return decoder.event(line, 0, line.length, 'An event', expected);
  };
  assert.equal(decode(valid).type, 'added');
  for (let at = 0; at <= valid.length; at++) {
    for (const insert of ['x', '{', ',', '\\', '"']) {
      const text = valid.slice(0, at) + insert + valid.slice(at);
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      if (!isJson) assert.throws(() => decode(text), { kind: 'malformed' }, text);
    }
    if (at === valid.length) break;
    assert.throws(() => decode(valid.slice(0, at)), { kind: 'malformed' });
  }
});

test('reports the length of a line without an object', () => {
  const line = Buffer.from('xx{"type":"ADDED"}');
  const decode = () => new Decoder().event(line, 2, line.length, 'An event', expected);
  assert.throws(decode, { kind: 'malformed', message: /\(16 bytes\)/ });
});
