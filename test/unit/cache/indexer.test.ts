import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { keyOf } from '../../../src/api/object-key.ts';
import type { DeepReadonly, ObjectMeta } from '../../../src/api/object.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import { Indexer, NAMESPACE_INDEX, namespaceIndex } from '../../../src/cache/indexer.ts';
import type { IndexFunctions } from '../../../src/cache/indexer.ts';
import { thing } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';

/** Index values of a thing: the bits that are set in its number. */
const byBit: IndexFunctions<Thing> = {
  bit: ({ spec }) => ['one', 'two', 'four'].filter((_, at) => spec.value & (1 << at)),
};

function put(indexer: Indexer<Thing>, key: string, value = 0): void {
  const object = thing(key, value);
  indexer.set(keyOf(object), object);
}

function key(name: string): ObjectKey {
  return keyOf(thing(name));
}

function withMetadata(object: Thing, metadata: Partial<ObjectMeta>): Thing {
  return { ...object, metadata: { ...object.metadata, ...metadata } };
}

function names(objects: readonly { metadata: { name: string } }[]): string[] {
  return objects.map(({ metadata }) => metadata.name).sort();
}

test('finds objects by key', () => {
  const indexer = new Indexer<Thing>();
  put(indexer, 'a', 1);
  put(indexer, 'a', 2);
  assert.equal(indexer.get(key('a'))?.spec.value, 2);
  assert.equal(indexer.get(key('b')), undefined);
  assert.equal(indexer.size, 1);
  assert.equal(indexer.delete(key('a'))?.spec.value, 2);
  assert.equal(indexer.delete(key('a')), undefined);
  assert.equal(indexer.size, 0);
});

for (let from = 0; from < 8; from++) {
  for (let to = 0; to < 8; to++) {
    // upstream: 50
    test(`finds an object that changes from values ${from} to ${to} only under the new ones`, () => {
      const indexer = new Indexer<Thing>(byBit);
      put(indexer, 'a', from);
      put(indexer, 'a', to);
      const expected = ['one', 'two', 'four'].filter((_, at) => to & (1 << at));
      assert.deepEqual(indexer.indexValues('bit').sort(), expected.sort());
      for (const value of expected) assert.deepEqual(names(indexer.byIndex('bit', value)), ['a']);
    });
  }
}

// upstream: 49
test('removes a value without objects and keeps the others', () => {
  const indexer = new Indexer<Thing>(byBit);
  put(indexer, 'a', 1);
  put(indexer, 'b', 3);
  indexer.delete(key('b'));
  assert.deepEqual(indexer.indexValues('bit'), ['one']);
  indexer.delete(key('a'));
  assert.deepEqual(indexer.indexValues('bit'), []);
});

// upstream: 52
test('returns the keys of a value sorted', () => {
  const indexer = new Indexer<Thing>({ [NAMESPACE_INDEX]: namespaceIndex });
  for (const name of ['x/c', 'x/a', 'y/d', 'x/b']) put(indexer, name);
  assert.deepEqual(indexer.indexKeys(NAMESPACE_INDEX, 'x'), ['x/a', 'x/b', 'x/c']);
  assert.deepEqual(indexer.indexKeys(NAMESPACE_INDEX, 'z'), []);
});

// upstream: 52
test('returns objects that share values with another one once each', () => {
  const indexer = new Indexer<Thing>(byBit);
  put(indexer, 'a', 3);
  put(indexer, 'b', 3);
  put(indexer, 'c', 4);
  assert.deepEqual(names(indexer.sharing('bit', thing('probe', 3))), ['a', 'b']);
});

// upstream: 52
test('throws for an index that does not exist', () => {
  const indexer = new Indexer<Thing>();
  assert.throws(() => indexer.byIndex('nope', 'x'), /Index with name nope does not exist/);
  assert.throws(() => indexer.indexKeys('nope', 'x'), /nope/);
  assert.throws(() => indexer.indexValues('nope'), /nope/);
});

test('fills an index that is added later', () => {
  const indexer = new Indexer<Thing>();
  put(indexer, 'a', 1);
  indexer.addIndexers(byBit);
  put(indexer, 'b', 1);
  assert.deepEqual(names(indexer.byIndex('bit', 'one')), ['a', 'b']);
});

// upstream: 63
test('adds no index if one of the names exists', () => {
  const indexer = new Indexer<Thing>(byBit);
  assert.throws(() => indexer.addIndexers({ other: () => [], ...byBit }), /already exist: bit$/);
  assert.equal(indexer.hasIndex('other'), false);
});

test('accepts names and values like __proto__', () => {
  const indexer = new Indexer<Thing>({
    ['constructor']: ({ metadata }: DeepReadonly<Thing>) => [metadata.name],
  });
  put(indexer, '__proto__', 1);
  put(indexer, 'toString', 2);
  assert.deepEqual(names(indexer.byIndex('constructor', '__proto__')), ['__proto__']);
  assert.deepEqual(indexer.byIndex('constructor', 'hasOwnProperty'), []);
  assert.throws(() => indexer.byIndex('toString', 'x'), /does not exist/);
});

test('updates the indexes on replace and returns the differences', () => {
  const indexer = new Indexer<Thing>(byBit);
  put(indexer, 'a', 1);
  put(indexer, 'b', 2);
  const { changed, removed } = indexer.replace(new Map([[key('c'), thing('c', 4)]]), '20');
  assert.deepEqual(names(removed), ['a', 'b']);
  assert.deepEqual(names(changed.map(({ object }) => object)), ['c']);
  assert.deepEqual(indexer.indexValues('bit'), ['four']);
  assert.deepEqual([...indexer.keys()], [key('c')]);
  assert.equal(indexer.lastStoreSyncResourceVersion, '20');
});

test('keeps objects of the same uid and resourceVersion on replace', () => {
  const indexed: string[] = [];
  const indexer = new Indexer<Thing>({
    seen: ({ metadata }) => {
      indexed.push(metadata.name);
      return ['all'];
    },
  });
  const [same, changed, recreated] = ['same', 'changed', 'recreated'].map((name) => thing(name, 1));
  for (const object of [same!, changed!, recreated!]) indexer.set(keyOf(object), object);
  indexed.length = 0;
  const next = [
    structuredClone(same!),
    withMetadata(changed!, { resourceVersion: '77' }),
    withMetadata(recreated!, { uid: 'another' }),
  ];
  const objects = new Map(next.map((object) => [keyOf(object), object]));
  indexer.replace(objects, '80');
  assert.deepEqual(indexed, ['changed', 'recreated']);
  assert.equal(indexer.get(key('same')), same);
  assert.equal(indexer.get(key('changed')), next[1]);
  assert.equal(indexer.get(key('recreated')), next[2]);

  indexer.replace(objects, '80', false);
  assert.equal(indexer.get(key('same')), next[0]);
  assert.deepEqual(indexed.slice(2), ['same', 'changed', 'recreated']);
});

// upstream: 51
test('sets its resourceVersion, also to an older one', () => {
  const indexer = new Indexer<Thing>();
  assert.equal(indexer.lastStoreSyncResourceVersion, '');
  assert.equal(indexer.hasReached('1'), false);
  indexer.reached('9');
  assert.equal(indexer.hasReached('10'), false);
  indexer.reached('10');
  assert.equal(indexer.hasReached('9'), true);
  assert.equal(indexer.hasReached('10'), true);
  assert.equal(indexer.hasReached('100'), false);
  indexer.replace(new Map(), '5');
  assert.equal(indexer.hasReached('9'), false);
});

test('has reached a malformed resourceVersion only if it is equal', () => {
  const indexer = new Indexer<Thing>();
  indexer.reached('abc');
  assert.equal(indexer.hasReached('abc'), true);
  assert.equal(indexer.hasReached('abb'), false);
  assert.equal(indexer.hasReached('1'), false);
  indexer.reached('10');
  assert.equal(indexer.hasReached('010'), false);
});

// upstream: 53
test('fails the write without a change if an index function throws', () => {
  const indexer = new Indexer<Thing>({
    ...byBit,
    throwing: ({ spec }) => {
      if (spec.value === 7) throw new Error('unexpected value 7');
      return ['ok'];
    },
  });
  put(indexer, 'a', 1);
  assert.throws(() => put(indexer, 'a', 7), /unexpected value 7/);
  assert.equal(indexer.get(key('a'))?.spec.value, 1);
  assert.deepEqual(indexer.indexValues('bit'), ['one']);
  const next = new Map([[key('a'), thing('a', 7, '2')]]);
  assert.throws(() => indexer.replace(next, '2'), /unexpected value 7/);
  assert.equal(indexer.get(key('a'))?.spec.value, 1);
});

// upstream: 53
test('stores the object without that index if there is an error handler', () => {
  const errors: string[] = [];
  const indexer = new Indexer<Thing>(
    {
      ...byBit,
      throwing: () => {
        throw new Error('no');
      },
    },
    (error, index, at) => errors.push(`${index} ${at} ${String(error)}`),
  );
  put(indexer, 'a', 1);
  assert.deepEqual(names(indexer.byIndex('bit', 'one')), ['a']);
  assert.deepEqual(indexer.indexValues('throwing'), []);
  assert.deepEqual(errors, ['throwing default/a Error: no']);
});

test('rejects an index function that is async or returns a promise or a number, by name', () => {
  const indexer = new Indexer<Thing>();
  const asynchronous = (async () => ['x']) as unknown as () => string[];
  const promising = (() => Promise.reject(new Error('late'))) as unknown as () => string[];
  const numeric = (() => [7]) as unknown as () => string[];
  assert.throws(
    () => indexer.addIndexers({ eager: asynchronous }),
    /TypeError: Index function eager/,
  );
  put(indexer, 'a');
  assert.throws(() => indexer.addIndexers({ late: promising }), /late returned a promise/);
  assert.throws(() => indexer.addIndexers({ odd: numeric }), /odd returned an array with other/);
  assert.equal(indexer.hasIndex('late'), false);
});

test('agrees with a scan after any sequence of writes', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'x/a');
  const operation = fc.oneof(
    fc.record({ type: fc.constant('set' as const), name, value: fc.nat(7) }),
    fc.record({ type: fc.constant('delete' as const), name }),
    fc.record({
      type: fc.constant('replace' as const),
      objects: fc.array(fc.tuple(name, fc.nat(7))),
    }),
    fc.record({ type: fc.constant('addIndex' as const) }),
  );
  fc.assert(
    fc.property(fc.array(operation), (operations) => {
      const indexer = new Indexer<Thing>({ [NAMESPACE_INDEX]: namespaceIndex });
      let model = new Map<ObjectKey, Thing>();
      for (const step of operations) {
        switch (step.type) {
          case 'set':
            put(indexer, step.name, step.value);
            model.set(key(step.name), thing(step.name, step.value));
            break;
          case 'delete':
            indexer.delete(key(step.name));
            model.delete(key(step.name));
            break;
          case 'replace': {
            const objects = step.objects.map(([at, value]) => thing(at, value, `${value + 2}`));
            model = new Map(objects.map((object) => [keyOf(object), object]));
            indexer.replace(new Map(model), '1');
            break;
          }
          case 'addIndex':
            if (!indexer.hasIndex('bit')) indexer.addIndexers(byBit);
        }
        assert.deepEqual(new Map([...indexer.keys()].map((at) => [at, indexer.get(at)])), model);
        assertAgrees(indexer, model, NAMESPACE_INDEX, namespaceIndex);
        if (indexer.hasIndex('bit')) assertAgrees(indexer, model, 'bit', byBit['bit']!);
      }
    }),
  );
});

function assertAgrees(
  indexer: Indexer<Thing>,
  model: ReadonlyMap<ObjectKey, Thing>,
  index: string,
  valuesOf: (object: Thing) => readonly string[],
): void {
  const expected = new Map<string, ObjectKey[]>();
  for (const [at, object] of model) {
    for (const value of valuesOf(object)) {
      expected.set(value, [...(expected.get(value) ?? []), at].sort());
    }
  }
  assert.deepEqual(indexer.indexValues(index).sort(), [...expected.keys()].sort());
  for (const [value, keys] of expected) assert.deepEqual(indexer.indexKeys(index, value), keys);
}
