import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Collection } from '../../../../src/apiserver/storage/object-store.ts';
import { ObjectStore } from '../../../../src/apiserver/storage/object-store.ts';
import type { ApiObject } from '../../../../src/apiserver/objects/resource-definition.ts';

const PODS = { group: '', plural: 'pods' };
const NODES = { group: '', plural: 'nodes' };

function object(name: string, namespace?: string, value: number = 0): ApiObject {
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      uid: name,
      resourceVersion: '',
      creationTimestamp: '',
    },
    value,
  };
}

function names(collection: Collection, revision?: number): string[] {
  const objects = revision === undefined ? collection.list() : collection.listAt(revision);
  return objects.map(
    ({ metadata, value }) => `${metadata.namespace}/${metadata.name}=${Number(value)}`,
  );
}

describe('ObjectStore', () => {
  test('every write to any resource increases the revision', () => {
    const store = new ObjectStore();
    const first = store.collection(PODS).put(object('a', 'x'));
    const second = store.collection(NODES).put(object('n'));
    const removed = store.collection(PODS).remove(first);
    assert.equal(first.metadata.resourceVersion, '2');
    assert.equal(second.metadata.resourceVersion, '3');
    assert.equal(removed.metadata.resourceVersion, '4');
    assert.equal(store.revision, 4);
    assert.equal(first.metadata.resourceVersion, '2', 'what was stored is not touched');
  });

  test('lists are in the order of etcd’s keys', () => {
    const pods = new ObjectStore().collection(PODS);
    for (const [name, namespace] of [
      ['b', 'a'],
      ['a', 'a'],
      ['z', 'a-b'],
    ] as const) {
      pods.put(object(name, namespace));
    }
    assert.deepEqual(names(pods), ['a-b/z=0', 'a/a=0', 'a/b=0']);
    assert.equal(pods.list('a').length, 2);
    assert.equal(pods.size, 3);
  });

  test('an earlier state can be listed while the history contains it', () => {
    const store = new ObjectStore();
    const pods = store.collection(PODS);
    pods.put(object('a', 'x', 1));
    pods.put(object('b', 'x', 1));
    const then = store.revision;
    pods.put(object('a', 'x', 2));
    const last = pods.get('x', 'b');
    assert.ok(last);
    pods.remove(last);
    pods.put(object('c', 'x', 1));
    assert.deepEqual(names(pods, then), ['x/a=1', 'x/b=1']);
    assert.deepEqual(names(pods), ['x/a=2', 'x/c=1']);
    assert.deepEqual(
      pods.listAt(then, 'other').map(({ metadata }) => metadata.name),
      [],
    );
    store.compact();
    assert.throws(() => pods.listAt(then), /too old/);
    assert.throws(() => pods.listAt(store.revision + 1), /Too large resource version/);
  });

  test('a compaction also applies to resources that are first used after it', () => {
    const store = new ObjectStore();
    store.collection(PODS).put(object('a', 'x'));
    store.compact();
    assert.throws(
      () => store.collection(NODES).history.since(1),
      /too old resource version: 1 \(2\)/,
    );
    assert.deepEqual(store.collection(NODES).history.since(2), []);
  });

  test('waiting for a revision ends when it is reached', () => {
    const store = new ObjectStore();
    const woken: number[] = [];
    store.whenReached(3, () => woken.push(3));
    store.whenReached(4, () => woken.push(4));
    const cancel = store.whenReached(3, () => woken.push(0));
    cancel();
    store.collection(PODS).put(object('a', 'x'));
    assert.deepEqual(woken, []);
    store.collection(PODS).put(object('a', 'x'));
    assert.deepEqual(woken, [3]);
  });
});

describe('WatchHistory', () => {
  test('it keeps at least its capacity of changes, and at most twice as many', () => {
    const store = new ObjectStore({ historySize: 3 });
    const pods = store.collection(PODS);
    for (let value = 1; value <= 20; value++) pods.put(object('a', 'x', value));
    const { compacted } = pods.history;
    assert.ok(store.revision - compacted >= 3 && store.revision - compacted <= 6, `${compacted}`);
    assert.equal(pods.history.since(compacted).length, store.revision - compacted);
    assert.throws(() => pods.history.since(compacted - 1), /too old resource version/);
  });

  test('it returns the changes after a revision in order, with the previous objects', () => {
    const pods = new ObjectStore().collection(PODS);
    const first = pods.put(object('a', 'x', 1));
    const second = pods.put(object('a', 'x', 2));
    pods.remove(second);
    const [change, removal, ...rest] = pods.history.since(2);
    assert.equal(change?.previous, first);
    assert.equal(change?.object, second);
    assert.equal(removal?.removed, true);
    assert.equal(removal?.previous, second);
    assert.deepEqual(rest, []);
  });

  test('the memory of the changes of all resources is bounded', () => {
    const store = new ObjectStore({ historyBytes: 1024 ** 2 });
    const [pods, nodes] = [store.collection(PODS), store.collection(NODES)];
    for (let value = 0; value < 5; value++) nodes.put(object('a', undefined, value));
    for (let value = 0; value < 200; value++) {
      pods.put({ ...object('a', 'x', value), text: String(value).padStart(64 * 1024) });
      assert.ok(store.historyBytes <= 1024 ** 2, `${store.historyBytes}`);
    }
    const { compacted } = pods.history;
    const kept = pods.history.since(compacted).length;
    assert.ok(kept >= 8 && kept <= 16, `${kept} changes of 64 KiB are kept in 1 MiB`);
    assert.throws(() => pods.history.since(compacted - 1), /too old resource version/);
    assert.equal(nodes.history.since(1).length, 5, 'the small history is kept');
    store.compact();
    assert.equal(store.historyBytes, 0);
  });

  test('the memory that versions of an object share counts once', () => {
    const store = new ObjectStore({ historyBytes: 1024 ** 2 });
    const pods = store.collection(PODS);
    const text = 'x'.repeat(64 * 1024);
    for (let value = 0; value < 200; value++) pods.put({ ...object('a', 'x', value), text });
    assert.equal(pods.history.since(1).length, 200);
  });
});
