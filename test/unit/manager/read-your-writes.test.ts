import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import type { Client } from '../../../src/client/client.ts';
import { observedClient } from '../../../src/client/observed-client.ts';
import { PendingWrites } from '../../../src/manager/read-your-writes.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { aCount, aPodOf } from '../../support/objects.ts';

const key = objectKey('default', 'test-count');

/** Cache whose resourceVersion the test sets. */
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

describe('PendingWrites', () => {
  const pod = aPodOf(aCount(), 0);
  const child = objectKey('default', pod.metadata.name);
  let cache: CacheOf;
  let writes: PendingWrites;
  let client: Client;
  let clock: FakeClock;

  const areVisible = (at: ObjectKey) => writes.check(at) === undefined;

  /** Client whose calls are recorded for the key. */
  const entering = (client: Client) =>
    observedClient(client, clock, (call) => writes.called(key, call));

  beforeEach(() => {
    cache = new CacheOf();
    clock = new FakeClock();
    writes = new PendingWrites(clock, { stale: () => undefined });
    writes.watched(cache);
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

  it('are visible for a key without writes', () => {
    assert.equal(areVisible(key), true);
  });

  it('ignore dry runs', async () => {
    await client.create(PODS, pod, { dryRun: true });
    await client.delete(PODS, pod.metadata, { uid: pod.metadata.uid, dryRun: true });
    assert.equal(areVisible(key), true);
    const dry: Partial<Client> = { isDryRun: true, create: () => Promise.resolve(pod as never) };
    await entering(dry as Client).create(PODS, pod);
    assert.equal(areVisible(key), true);
  });

  it('are visible when the cache has reached the last write', async () => {
    await client.create(PODS, pod);
    await client.patch(PODS, pod.metadata, { type: 'merge', body: {} });
    cache.reached = 10;
    assert.equal(areVisible(key), false);
    cache.reached = 12;
    assert.equal(areVisible(key), true);
  });

  it('affect only the key that wrote', async () => {
    await client.update(PODS, pod);
    assert.equal(areVisible(key), false);
    assert.equal(areVisible(objectKey('default', 'other')), true);
  });

  it('forget a write once it was visible', async () => {
    await client.create(PODS, pod);
    cache.reached = 10;
    assert.equal(areVisible(key), true);
    cache.reached = 0;
    assert.equal(areVisible(key), true);
  });

  it('are visible when a deleted object is removed from the cache', async () => {
    cache.objects.set(child, pod);
    await client.delete(PODS, pod.metadata, { uid: pod.metadata.uid });
    assert.equal(areVisible(key), false);
    cache.objects.delete(child);
    assert.equal(areVisible(key), true);
  });

  it('treat a terminating or replaced object as deleted', async () => {
    cache.objects.set(child, pod);
    await client.delete(PODS, pod.metadata);
    const { metadata } = pod;
    cache.objects.set(child, { ...pod, metadata: { ...metadata, deletionTimestamp: 'now' } });
    assert.equal(areVisible(key), true);
    cache.objects.set(child, pod);
    await client.delete(PODS, pod.metadata);
    cache.objects.set(child, { ...pod, metadata: { ...metadata, uid: 'successor' } });
    assert.equal(areVisible(key), true);
  });

  it('ignore writes that the server lost, after a later quorum read', async () => {
    cache.objects.set(child, pod);
    await client.create(PODS, pod);
    await client.delete(PODS, pod.metadata, { uid: pod.metadata.uid });
    cache.reached = 9;
    assert.equal(areVisible(key), false);
    await clock.advance(1);
    cache.quorumReadMs = clock.monotonic();
    assert.equal(areVisible(key), true);
  });

  it('request a quorum read if a write is not visible after 5 min, at most every 5 min', async () => {
    cache.objects.set(child, pod);
    await client.delete(PODS, pod.metadata, { uid: pod.metadata.uid });
    for (const [ms, relists] of [
      [299_999, 0],
      [1, 1],
      [299_999, 1],
      [1, 2],
    ] as const) {
      await clock.advance(ms);
      assert.equal(areVisible(key), false);
      assert.equal(cache.relists, relists);
    }
    cache.quorumReadMs = clock.monotonic();
    assert.equal(areVisible(key), true);
  });

  it('wait for a write whose response arrived during a quorum read', async () => {
    cache.quorumReadMs = clock.monotonic();
    await clock.advance(1);
    await client.create(PODS, pod);
    assert.equal(areVisible(key), false);
  });

  it('ignore reads and resources without a cache', async () => {
    await client.create(COUNTS, aCount());
    await client.get(PODS, pod.metadata);
    assert.equal(areVisible(key), true);
  });

  it('ignore failed writes', async () => {
    const failing = { create: () => Promise.reject(new Error('refused')) } as unknown as Client;
    await assert.rejects(entering(failing).create(PODS, pod), /refused/);
    assert.equal(areVisible(key), true);
  });
});
