import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { keyOf } from '../../../src/api/object-key.ts';
import type { DeepReadonly } from '../../../src/api/object.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import { Indexer, NAMESPACE_INDEX, namespaceIndex } from '../../../src/cache/indexer.ts';
import type { IndexFunctions } from '../../../src/cache/indexer.ts';
import { thing } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';

/** Values of a thing are the set bits of its number. */
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

function names(objects: readonly { metadata: { name: string } }[]): string[] {
  return objects.map(({ metadata }) => metadata.name).sort();
}

test('objects are found by key', () => {
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
    test(`an object that goes from values ${from} to ${to} is found under the new ones alone`, () => {
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
test('a value that no object has left is forgotten, its neighbours are not', () => {
  const indexer = new Indexer<Thing>(byBit);
  put(indexer, 'a', 1);
  put(indexer, 'b', 3);
  indexer.delete(key('b'));
  assert.deepEqual(indexer.indexValues('bit'), ['one']);
  indexer.delete(key('a'));
  assert.deepEqual(indexer.indexValues('bit'), []);
});

// upstream: 52
test('the keys under a value come sorted', () => {
  const indexer = new Indexer<Thing>({ [NAMESPACE_INDEX]: namespaceIndex });
  for (const name of ['x/c', 'x/a', 'y/d', 'x/b']) put(indexer, name);
  assert.deepEqual(indexer.indexKeys(NAMESPACE_INDEX, 'x'), ['x/a', 'x/b', 'x/c']);
  assert.deepEqual(indexer.indexKeys(NAMESPACE_INDEX, 'z'), []);
});

// upstream: 52
test('objects that share values with another are each found once', () => {
  const indexer = new Indexer<Thing>(byBit);
  put(indexer, 'a', 3);
  put(indexer, 'b', 3);
  put(indexer, 'c', 4);
  assert.deepEqual(names(indexer.sharing('bit', thing('probe', 3))), ['a', 'b']);
});

// upstream: 52
test('an index that does not exist is an error', () => {
  const indexer = new Indexer<Thing>();
  assert.throws(() => indexer.byIndex('nope', 'x'), /Index with name nope does not exist/);
  assert.throws(() => indexer.indexKeys('nope', 'x'), /nope/);
  assert.throws(() => indexer.indexValues('nope'), /nope/);
});

test('an index added later files what is there', () => {
  const indexer = new Indexer<Thing>();
  put(indexer, 'a', 1);
  indexer.addIndexers(byBit);
  put(indexer, 'b', 1);
  assert.deepEqual(names(indexer.byIndex('bit', 'one')), ['a', 'b']);
});

// upstream: 63
test('of indexes with a taken name none is added', () => {
  const indexer = new Indexer<Thing>(byBit);
  assert.throws(() => indexer.addIndexers({ other: () => [], ...byBit }), /already exist: bit$/);
  assert.equal(indexer.hasIndex('other'), false);
});

test('names and values like __proto__ are names and values', () => {
  const indexer = new Indexer<Thing>({
    ['constructor']: ({ metadata }: DeepReadonly<Thing>) => [metadata.name],
  });
  put(indexer, '__proto__', 1);
  put(indexer, 'toString', 2);
  assert.deepEqual(names(indexer.byIndex('constructor', '__proto__')), ['__proto__']);
  assert.deepEqual(indexer.byIndex('constructor', 'hasOwnProperty'), []);
  assert.throws(() => indexer.byIndex('toString', 'x'), /does not exist/);
});

test('replacing everything rebuilds the indexes and hands back what was there', () => {
  const indexer = new Indexer<Thing>(byBit);
  put(indexer, 'a', 1);
  put(indexer, 'b', 2);
  const previous = indexer.replace(new Map([[key('c'), thing('c', 4)]]), '20');
  assert.deepEqual([...previous.keys()], [key('a'), key('b')]);
  assert.deepEqual(indexer.indexValues('bit'), ['four']);
  assert.deepEqual([...indexer.keys()], [key('c')]);
  assert.equal(indexer.lastStoreSyncResourceVersion, '20');
});

// upstream: 51
test('how far the store has come follows what it is told, back and forth', () => {
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

test('malformed resourceVersions are reached only when equal', () => {
  const indexer = new Indexer<Thing>();
  indexer.reached('abc');
  assert.equal(indexer.hasReached('abc'), true);
  assert.equal(indexer.hasReached('abb'), false);
  assert.equal(indexer.hasReached('1'), false);
  indexer.reached('10');
  assert.equal(indexer.hasReached('010'), false);
});

// upstream: 53
test('an index function that throws fails the write before it changes anything', () => {
  const indexer = new Indexer<Thing>({
    ...byBit,
    picky: ({ spec }) => {
      if (spec.value === 7) throw new Error('I do not like 7');
      return ['ok'];
    },
  });
  put(indexer, 'a', 1);
  assert.throws(() => put(indexer, 'a', 7), /I do not like 7/);
  assert.equal(indexer.get(key('a'))?.spec.value, 1);
  assert.deepEqual(indexer.indexValues('bit'), ['one']);
  const next = new Map([[key('a'), thing('a', 7)]]);
  assert.throws(() => indexer.replace(next, '2'), /I do not like 7/);
  assert.equal(indexer.get(key('a'))?.spec.value, 1);
});

// upstream: 53
test('with a handler for it, the object is stored and merely missing from that index', () => {
  const errors: string[] = [];
  const indexer = new Indexer<Thing>(
    {
      ...byBit,
      picky: () => {
        throw new Error('no');
      },
    },
    (error, index, at) => errors.push(`${index} ${at} ${String(error)}`),
  );
  put(indexer, 'a', 1);
  assert.deepEqual(names(indexer.byIndex('bit', 'one')), ['a']);
  assert.deepEqual(indexer.indexValues('picky'), []);
  assert.deepEqual(errors, ['picky default/a Error: no']);
});

test('an index function that is async, or answers with a promise or a number, is refused by name', () => {
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

test('an index agrees with a scan after any sequence of writes', () => {
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
            const objects = step.objects.map(([at, value]) => thing(at, value));
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
