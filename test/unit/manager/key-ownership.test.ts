import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { KeyOwnership, serveShards } from '../../../src/manager/key-ownership.ts';
import type { ShardHandler } from '../../../src/sharding/shards.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';

const key = objectKey('default', 'x');

function ownership(): KeyOwnership {
  return new KeyOwnership((key) => (key.endsWith('x') ? 1 : 0));
}

test('a key is owned while its shard is open', async () => {
  const keys = ownership();
  assert.equal(keys.owns(key), false);
  assert.equal(keys.enter(key), undefined);
  keys.open(0);
  assert.equal(keys.owns(key), false);
  keys.open(1);
  assert.equal(keys.owns(key), true);
  await keys.close(1);
  assert.equal(keys.owns(key), false);
  assert.equal(keys.owns(objectKey('default', 'y')), true);
});

test('closing a shard waits for its last sync and starts no new sync', async () => {
  const keys = ownership();
  keys.open(1);
  const leaves = [keys.enter(key), keys.enter(key)];
  let isClosed = false;
  const closing = keys.close(1).then(() => (isClosed = true));
  leaves[0]?.();
  await settle();
  assert.equal(isClosed, false);
  assert.equal(keys.enter(key), undefined);
  leaves[1]?.();
  await closing;
});

test('a shard can be opened again', async () => {
  const keys = ownership();
  keys.open(1);
  await keys.close(1);
  keys.open(1);
  assert.ok(keys.enter(key));
});

test('closing a shard that is not open resolves immediately', () => ownership().close(7));

/** A shard that this process acquires before its caches have synced. */
function acquired() {
  const clock = new FakeClock();
  const { handler } = new ApiServer({ clock });
  const client = new HttpClient({ handler, server: 'https://test', clock });
  const informers = new InformerSet(client, { clock });
  const pods = informers.for(PODS);
  const keys = ownership();
  const requeued: number[] = [];
  let serve: ShardHandler = () => Promise.resolve();
  serveShards(
    { shardOf: () => 1, holds: () => true, onShard: (handler) => (serve = handler) },
    keys,
    { informers: () => [pods], requeue: (shard) => void requeued.push(shard) },
    { clock, log: silentLogger, random: () => 0 },
  );
  const shard = new AbortController();
  return { clock, informers, keys, requeued, shard, served: serve(1, shard.signal) };
}

test('opens an acquired shard and enqueues its keys when the caches have synced', async () => {
  const { clock, informers, keys, requeued, shard, served } = acquired();
  await clock.advance(5000);
  assert.deepEqual([keys.owns(key), requeued], [false, []]);
  const stop = new AbortController();
  const running = informers.run(stop.signal);
  await clock.advance(5000);
  assert.deepEqual([keys.owns(key), requeued], [true, [1]]);
  const leave = keys.enter(key);
  shard.abort();
  await settle();
  assert.equal(keys.owns(key), false);
  leave?.();
  await served;
  stop.abort();
  await clock.advance(1000);
  await running;
});

test('does not open a shard that is released before the caches have synced', async () => {
  const { clock, informers, keys, requeued, shard, served } = acquired();
  shard.abort();
  await clock.advance(5000);
  await served;
  const stop = new AbortController();
  const running = informers.run(stop.signal);
  await clock.advance(5000);
  assert.deepEqual([keys.owns(key), requeued], [false, []]);
  stop.abort();
  await clock.advance(1000);
  await running;
});
