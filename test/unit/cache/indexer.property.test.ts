import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { keyOf } from '../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import { Indexer } from '../../../src/cache/indexer.ts';
import type { IndexFunction } from '../../../src/cache/indexer.ts';
import { thing } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';

/** Index values by the value of a thing: none, several, duplicates, and names of JavaScript properties. */
const INDEX_VALUES = [
  [],
  ['a'],
  ['b'],
  ['a', 'b'],
  ['__proto__'],
  ['constructor', 'a'],
  ['a', 'a'],
  [''],
];

const byValue: IndexFunction<Thing> = ({ spec }) => INDEX_VALUES[spec.value] ?? [];

/** Throws for 7, as index functions do for unexpected objects. */
const throwing: IndexFunction<Thing> = ({ spec }) => {
  if (spec.value === 7) throw new Error('unexpected value 7');
  return [spec.value % 2 === 0 ? 'even' : 'odd'];
};

const name = fc.constantFrom('a', 'b', 'c', 'x/a', 'x/__proto__');
const value = fc.nat(7);

const operation = fc.oneof(
  fc.record({ do: fc.constant('set' as const), name, value }),
  fc.record({ do: fc.constant('delete' as const), name }),
  fc.record({
    do: fc.constant('replace' as const),
    objects: fc.array(fc.tuple(name, value), { maxLength: 4 }),
  }),
  fc.record({ do: fc.constant('reached' as const), resourceVersion: fc.integer({ min: 1 }) }),
);

/** Reference implementation by linear search. */
class Model {
  objects: [ObjectKey, Thing][] = [];
  resourceVersion = '';

  set(key: ObjectKey, object: Thing): void {
    const at = this.objects.findIndex(([known]) => known === key);
    if (at >= 0) this.objects[at] = [key, object];
    else this.objects.push([key, object]);
  }

  delete(key: ObjectKey): Thing | undefined {
    const gone = this.objects.find(([known]) => known === key);
    this.objects = this.objects.filter(([known]) => known !== key);
    return gone?.[1];
  }

  under(valuesOf: IndexFunction<Thing>, word: string): [ObjectKey, Thing][] {
    return this.objects.filter(([, object]) => valuesOf(object).includes(word));
  }
}

function assertSame(actual: Iterable<unknown>, expected: Iterable<unknown>): void {
  assert.deepEqual(new Set(actual), new Set(expected));
  assert.equal([...actual].length, [...expected].length, 'each once');
}

// upstream: 52
test('agrees with a linear search for every query', () => {
  const forgiving: IndexFunction<Thing> = (object) => {
    try {
      return throwing(object);
    } catch {
      return [];
    }
  };
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
      const failed: string[] = [];
      const indexer = new Indexer<Thing>({ word: byValue, throwing }, (_, index, key) => {
        failed.push(`${index} ${key}`);
      });
      const model = new Model();
      for (const step of operations) {
        switch (step.do) {
          case 'set': {
            const object = thing(step.name, step.value);
            indexer.set(keyOf(object), object);
            model.set(keyOf(object), object);
            const expected = step.value === 7 ? [`throwing ${keyOf(object)}`] : [];
            assert.deepEqual(failed.splice(0), expected);
            break;
          }
          case 'delete': {
            const key = keyOf(thing(step.name));
            assert.equal(indexer.delete(key), model.delete(key));
            break;
          }
          case 'replace': {
            const before = model.objects;
            const next = new Map<ObjectKey, Thing>();
            for (const [at, word] of step.objects) next.set(keyOf(thing(at)), thing(at, word));
            model.objects = [...next];
            model.resourceVersion = '5';
            const { changed, removed } = indexer.replace(next, '5', false);
            assert.deepEqual(
              changed.map(({ old, object }) => ({ old, object })),
              [...next].map(([key, object]) => ({
                old: before.find(([known]) => known === key)?.[1],
                object,
              })),
            );
            assertSame(
              removed,
              before.filter(([key]) => !next.has(key)).map(([, object]) => object),
            );
            failed.length = 0;
            break;
          }
          case 'reached':
            model.resourceVersion = String(step.resourceVersion);
            indexer.reached(model.resourceVersion);
        }
        assert.equal(indexer.size, model.objects.length);
        assert.equal(indexer.lastStoreSyncResourceVersion, model.resourceVersion);
        assertSame(
          [...indexer.keys()],
          model.objects.map(([key]) => key),
        );
        assertSame(
          [...indexer.values()],
          model.objects.map(([, object]) => object),
        );
        for (const [key, object] of model.objects) assert.equal(indexer.get(key), object);
        for (const [index, valuesOf] of [
          ['word', byValue],
          ['throwing', forgiving],
        ] as const) {
          const used = new Set(model.objects.flatMap(([, object]) => valuesOf(object)));
          assertSame(indexer.indexValues(index), used);
          for (const word of [...used, 'valueOf', 'never']) {
            const found = model.under(valuesOf, word);
            assertSame(
              indexer.byIndex(index, word),
              found.map(([, object]) => object),
            );
            assert.deepEqual(indexer.indexKeys(index, word), found.map(([key]) => key).toSorted());
          }
        }
        for (const at of [1, 3, 5]) {
          const probe = thing('probe', at);
          const found = model.objects.filter(([, object]) =>
            byValue(object).some((word) => byValue(probe).includes(word)),
          );
          assertSame(
            indexer.sharing('word', probe),
            found.map(([, object]) => object),
          );
        }
      }
    }),
    { numRuns: 60 },
  );
});
