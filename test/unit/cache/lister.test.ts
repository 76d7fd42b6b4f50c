import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf } from '../../../src/api/object-key.ts';
import { parseLabelSelector } from '../../../src/api/label-selector.ts';
import { Indexer, NAMESPACE_INDEX, namespaceIndex } from '../../../src/cache/indexer.ts';
import { IndexLister } from '../../../src/cache/lister.ts';
import type { ListerQuery } from '../../../src/cache/lister.ts';
import { thing } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';

for (const indexed of [true, false]) {
  const indexer = new Indexer<Thing>(indexed ? { [NAMESPACE_INDEX]: namespaceIndex } : {});
  const lister = new IndexLister(indexer);
  for (const [name, labels] of [
    ['x/a', { app: 'web' }],
    ['x/b', { app: 'db' }],
    ['y/c', { app: 'web' }],
    ['y/d', undefined],
  ] as const) {
    const object = thing(name);
    if (labels) object.metadata.labels = labels;
    indexer.set(keyOf(object), object);
  }
  const listed = (query?: ListerQuery) => lister.list(query).map(keyOf).sort();
  const how = indexed ? 'by index' : 'by scan';

  // upstream: 55
  test(`lists all objects or one namespace, ${how}`, () => {
    assert.deepEqual(listed(), ['x/a', 'x/b', 'y/c', 'y/d']);
    assert.deepEqual(listed({ namespace: 'x' }), ['x/a', 'x/b']);
    assert.deepEqual(listed({ namespace: 'z' }), []);
  });

  // upstream: 55
  test(`filters by a label selector, ${how}`, () => {
    assert.deepEqual(listed({ selector: 'app=web' }), ['x/a', 'y/c']);
    assert.deepEqual(listed({ selector: 'app=web', namespace: 'y' }), ['y/c']);
    assert.deepEqual(listed({ selector: '!app' }), ['y/d']);
    assert.deepEqual(listed({ selector: '' }), ['x/a', 'x/b', 'y/c', 'y/d']);
    assert.deepEqual(listed({ selector: parseLabelSelector('app in (db)') }), ['x/b']);
  });
}

test('throws for a malformed selector', () => {
  assert.throws(() => new IndexLister(new Indexer<Thing>()).list({ selector: '=' }), SyntaxError);
});

test('returns the cached object itself', () => {
  const indexer = new Indexer<Thing>();
  const object = thing('a');
  indexer.set(keyOf(object), object);
  const lister = new IndexLister(indexer);
  assert.equal(lister.get(keyOf(object)), object);
  assert.equal(lister.list()[0], object);
  assert.equal(lister.size, 1);
});
