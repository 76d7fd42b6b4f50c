import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { deepFreeze } from '../../../src/cache/delta-queue.ts';
import { Decoder } from '../../../src/client/decoder.ts';
import { countLazyFields, parseLazyFields, shareFields } from '../../../src/client/lazy-object.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

interface Foo extends KubernetesObject {
  spec: { replicas: number; list: string[] };
  status?: { ready: boolean };
}

const FOOS = { group: 'example.com', version: 'v1', plural: 'foos', kind: 'Foo', namespaced: true };
const FIELDS = '"spec":{"replicas":3,"list":["a"]},"status":{"ready":true}';
const decoder = new Decoder();

function foo(fields = FIELDS): Foo {
  const line = Buffer.from(
    `{"type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"namespace":"ns","name":"a"},${fields}}}`,
  );
  return decoder.event<Foo>(line, 0, line.length, 'An event', { resource: FOOS }).object as Foo;
}

const PLAIN = {
  apiVersion: 'example.com/v1',
  kind: 'Foo',
  metadata: { namespace: 'ns', name: 'a' },
  spec: { replicas: 3, list: ['a'] },
  status: { ready: true },
};

test('behaves as a plain object', () => {
  assert.equal(countLazyFields(foo()), 2);
  assert.deepStrictEqual(foo(), PLAIN);
  assert.deepStrictEqual(structuredClone(foo()), PLAIN);
  assert.deepStrictEqual({ ...foo() }, PLAIN);
  assert.deepStrictEqual(Object.assign({}, foo()), PLAIN);
  assert.deepStrictEqual(Object.entries(foo()), Object.entries(PLAIN));
  assert.equal(JSON.stringify(foo()), JSON.stringify(PLAIN));
  assert.equal(inspect(foo()), inspect(PLAIN));
  assert.equal(Object.getPrototypeOf(foo()), Object.prototype);
  assert.ok('status' in foo() && Object.hasOwn(foo(), 'spec') && !('other' in foo()));
  const { spec, ...rest } = foo();
  assert.deepStrictEqual(
    [spec, Object.keys(rest)],
    [PLAIN.spec, ['apiVersion', 'kind', 'metadata', 'status']],
  );
  assert.throws(() => assert.deepStrictEqual(foo(), { ...PLAIN, status: { ready: false } }));
  assert.deepStrictEqual((Object.create(foo()) as Foo).spec, PLAIN.spec);
});

test('keeps changes of an object that is not shared', () => {
  const object = foo();
  object.spec.replicas = 5;
  object.status = { ready: true };
  object.status = { ready: false };
  collectGarbage();
  assert.equal(object.spec.replicas, 5);
  assert.deepEqual(object.status, { ready: false });
  delete object.status;
  assert.deepEqual(Object.keys(object), ['apiVersion', 'kind', 'metadata', 'spec']);
});

test('reads a frozen object, and freezes what it returns', () => {
  const object = foo();
  deepFreeze(object);
  shareFields(object);
  assert.ok(Object.isFrozen(object.spec.list));
  assert.equal(object.spec, object.spec);
  assert.throws(() => (object.spec = { replicas: 1, list: [] }), TypeError);
  assert.deepEqual(Object.freeze(foo()).spec, PLAIN.spec);
});

test('releases the values of a shared object after the first read, and keeps them after the second', async () => {
  const object = foo();
  shareFields(object);
  const read = () => new WeakRef(object.spec);
  const pause = () => new Promise((resolve) => setImmediate(resolve));
  const first = read();
  assert.equal(object.spec, first.deref(), 'the same value while it exists');
  await pause();
  collectGarbage();
  assert.equal(first.deref(), undefined);
  const second = read();
  await pause();
  collectGarbage();
  assert.equal(object.spec, second.deref());
  assert.deepEqual(object, PLAIN);
});

test('replaces lazy fields by values when one of them was dropped', () => {
  const object = foo();
  delete object.status;
  parseLazyFields(object);
  assert.equal(countLazyFields(object), 0);
  const { status: _, ...rest } = PLAIN;
  assert.deepStrictEqual(object, rest);
});

test('throws an error with the name of the object when malformed content is read', () => {
  for (const fields of [
    '"spec":{"replicas":canary}',
    '"spec":{"list":[1}]',
    '"spec":1,"status":"\\x"',
  ]) {
    const object = foo(fields);
    shareFields(object);
    assert.equal(object.metadata.name, 'a');
    for (const read of ['first', 'second']) {
      assert.throws(
        () => object.spec,
        (error: Error & { kind?: string }) =>
          error.kind === 'malformed' &&
          error.message.includes('Foo ns/a') &&
          !error.message.includes('canary'),
        `${read} read of ${fields}`,
      );
    }
  }
});

test('throws an error with the name of the object when content that is nested too deeply is read', () => {
  const object = foo(`"spec":${'['.repeat(101)}${']'.repeat(101)}`);
  assert.throws(() => object.spec, { kind: 'malformed', message: /Foo ns\/a .*deeper than 100/ });
  assert.deepEqual(foo(`"spec":{"text":"${'['.repeat(200)}"}`).spec, { text: '['.repeat(200) });
});
