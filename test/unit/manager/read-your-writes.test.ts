import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import type { Client } from '../../../src/client/client.ts';
import { observedClient } from '../../../src/manager/observed-client.ts';
import { PendingWrites } from '../../../src/manager/read-your-writes.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { aCount, aPodOf } from '../../support/objects.ts';

const key = objectKey('default', 'test-count');

/** A cache that has come as far as it is told. */
class CacheOf {
  readonly resource = PODS;
  reached = 0;
  quorumReadMs = -Infinity;
  relists = 0;
  readonly objects = new Map<ObjectKey, KubernetesObject>();
  readonly lister = { get: (at: ObjectKey) => this.objects.get(at) };
  hasReached(resourceVersion: string): boolean {
    return this.reached >= Number(resourceVersion);
  }
  relist(): void {
    this.relists++;
  }
  within(namespace?: string): this | undefined {
    return namespace === 'default' ? this : undefined;
  }
}

describe('the ledger of own writes', () => {
  const pod = aPodOf(aCount(), 0);
  const child = objectKey('default', pod.metadata.name);
  let cache: CacheOf;
  let writes: PendingWrites;
  let client: Client;
  let clock: FakeClock;

  /** `client`, whose calls are entered under the key. */
  const entering = (client: Client) =>
    observedClient(client, clock, (call) => writes.record(key, call));

  beforeEach(() => {
    cache = new CacheOf();
    clock = new FakeClock();
    writes = new PendingWrites(clock);
    writes.track(cache);
    const answer = (resourceVersion: string) =>
      Promise.resolve({ ...pod, metadata: { ...pod.metadata, resourceVersion } } as never);
    const server: Partial<Client> = {
      create: () => answer('10'),
      update: () => answer('11'),
      patch: () => answer('12'),
      delete: () => Promise.resolve(),
      get: () => answer('99'),
    };
    client = entering(server as Client);
  });

  it('lets a key run that has written nothing', () => {
    assert.equal(writes.areVisible(key), true);
  });

  it('does not hold a key for what a dry run has written, which no cache will ever show', async () => {
    await client.create(PODS, pod, { dryRun: true });
    await client.delete(PODS, pod.metadata, { uid: pod.metadata.uid, dryRun: true });
    assert.equal(writes.areVisible(key), true);
    const dry: Partial<Client> = { isDryRun: true, create: () => Promise.resolve(pod as never) };
    await entering(dry as Client).create(PODS, pod);
    assert.equal(writes.areVisible(key), true);
  });

  it('holds a key until the cache has reached the last of its writes', async () => {
    await client.create(PODS, pod);
    await client.patch(PODS, pod.metadata, { type: 'merge', body: {} });
    cache.reached = 10;
    assert.equal(writes.areVisible(key), false);
    cache.reached = 12;
    assert.equal(writes.areVisible(key), true);
  });

  it('holds only the key that wrote', async () => {
    await client.update(PODS, pod);
    assert.equal(writes.areVisible(key), false);
    assert.equal(writes.areVisible(objectKey('default', 'other')), true);
  });

  it('forgets a write once it was visible, whatever the cache does later', async () => {
    await client.create(PODS, pod);
    cache.reached = 10;
    assert.equal(writes.areVisible(key), true);
    cache.reached = 0;
    assert.equal(writes.areVisible(key), true);
  });

  it('holds a key until an object that it deleted is gone from the cache', async () => {
    cache.objects.set(child, pod);
    await client.delete(PODS, pod.metadata, { uid: pod.metadata.uid });
    assert.equal(writes.areVisible(key), false);
    cache.objects.delete(child);
    assert.equal(writes.areVisible(key), true);
  });

  it('takes an object that is going away, or a successor of its name, for deleted', async () => {
    cache.objects.set(child, pod);
    await client.delete(PODS, pod.metadata);
    const { metadata } = pod;
    cache.objects.set(child, { ...pod, metadata: { ...metadata, deletionTimestamp: 'now' } });
    assert.equal(writes.areVisible(key), true);
    cache.objects.set(child, pod);
    await client.delete(PODS, pod.metadata);
    cache.objects.set(child, { ...pod, metadata: { ...metadata, uid: 'successor' } });
    assert.equal(writes.areVisible(key), true);
  });

  it('does not wait for writes that the server has lost: a later quorum read does not show them', async () => {
    cache.objects.set(child, pod);
    await client.create(PODS, pod);
    await client.delete(PODS, pod.metadata, { uid: pod.metadata.uid });
    cache.reached = 9;
    assert.equal(writes.areVisible(key), false);
    await clock.advance(1);
    cache.quorumReadMs = clock.monotonic();
    assert.equal(writes.areVisible(key), true);
  });

  it('asks for a quorum read if a write is not visible after five minutes, and not again for as long', async () => {
    cache.objects.set(child, pod);
    await client.delete(PODS, pod.metadata, { uid: pod.metadata.uid });
    for (const [ms, relists] of [
      [299_999, 0],
      [1, 1],
      [299_999, 1],
      [1, 2],
    ] as const) {
      await clock.advance(ms);
      assert.equal(writes.areVisible(key), false);
      assert.equal(cache.relists, relists);
    }
    cache.quorumReadMs = clock.monotonic();
    assert.equal(writes.areVisible(key), true);
  });

  it('waits for a write that was answered while a quorum read was under way', async () => {
    cache.quorumReadMs = clock.monotonic();
    await clock.advance(1);
    await client.create(PODS, pod);
    assert.equal(writes.areVisible(key), false);
  });

  it('does not wait for resources that have no cache, nor for reads', async () => {
    await client.create(COUNTS, aCount());
    await client.get(PODS, pod.metadata);
    assert.equal(writes.areVisible(key), true);
  });

  it('enters nothing for a write that failed', async () => {
    const failing = { create: () => Promise.reject(new Error('refused')) } as unknown as Client;
    await assert.rejects(entering(failing).create(PODS, pod), /refused/);
    assert.equal(writes.areVisible(key), true);
  });
});
