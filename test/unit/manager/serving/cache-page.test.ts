import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keyOf } from '../../../../src/api/object-key.ts';
import { Indexer } from '../../../../src/cache/indexer.ts';
import { IndexLister } from '../../../../src/cache/lister.ts';
import { cachePage } from '../../../../src/manager/serving/cache-page.ts';
import { thing } from '../../../support/fake-source.ts';
import type { Thing } from '../../../support/fake-source.ts';

describe('the page of what is cached', () => {
  const cacheOf = (...names: readonly string[]) => {
    const cache = new Indexer<Thing>();
    for (const name of names) {
      const object = thing(name);
      object.metadata.annotations = { secret: 'canary' };
      cache.set(keyOf(object), object);
    }
    return cache;
  };
  const ask = (query: string, cache: Indexer<Thing> = cacheOf('y/c', 'x/b', 'x/a')) => {
    const page = cachePage(() => [{ name: 'things', lister: new IndexLister(cache) }]);
    const answer = page.get('/debug/cache')?.(new URLSearchParams(query)) ?? assert.fail();
    assert.doesNotMatch(answer.body, /canary/);
    const shown = JSON.parse(answer.body) as { keys?: readonly { key: string }[] };
    return { status: answer.status, ...shown, keys: shown.keys?.map(({ key }) => key) };
  };

  it('tells which resources there are, and how many objects of each', () => {
    assert.deepEqual(ask(''), {
      status: 200,
      resources: [{ resource: 'things', objects: 3 }],
      keys: undefined,
    });
  });

  it('names the objects of a resource, or of it in a namespace, and tells nothing else of them', () => {
    assert.deepEqual(ask('resource=things').keys, ['x/a', 'x/b', 'y/c']);
    assert.deepEqual(ask('resource=things&namespace=x').keys, ['x/a', 'x/b']);
    assert.deepEqual(ask('resource=things&namespace=z').keys, []);
    assert.equal(ask('resource=others').status, 404);
  });

  it('names a thousand of many', () => {
    const names = Array.from({ length: 1500 }, (_, index) => `x/${String(index).padStart(4, '0')}`);
    const shown = ask('resource=things', cacheOf(...names));
    assert.deepEqual(shown.keys, names.slice(0, 1000));
    assert.equal((shown as { objects?: number }).objects, 1500);
  });
});
