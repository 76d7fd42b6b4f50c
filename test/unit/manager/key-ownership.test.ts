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
import { done } from '../../../src/workqueue/outcome.ts';

const key = objectKey('default', 'x');

const shardOf = (key: string) => (key.endsWith('x') ? 1 : 0);

function ownership(): KeyOwnership {
  return new KeyOwnership(shardOf);
}

test('a key is owned while its shard is open', async () => {
  const keys = ownership();
  assert.equal(keys.owns(key), false);
  assert.deepEqual(keys.check(key), done());
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
  const other = objectKey('default', 'also-x');
  for (const entering of [key, other]) assert.equal(keys.check(entering), undefined);
  let isClosed = false;
  const closing = keys.close(1).then(() => (isClosed = true));
  keys.ended({ key });
  await settle();
  assert.equal(isClosed, false);
  assert.deepEqual(keys.check(objectKey('default', 'third-x')), done());
  keys.ended({ key: other });
  await closing;
});

test('closing a shard waits for a sync, also if the shard was idle before', async () => {
  const keys = ownership();
  keys.open(1);
  keys.check(key);
  keys.ended({ key });
  keys.check(key);
  let isClosed = false;
  const closing = keys.close(1).then(() => (isClosed = true));
  await settle();
  assert.equal(isClosed, false);
  keys.ended({ key });
  await closing;
});

test('a shard can be opened again', async () => {
  const keys = ownership();
  keys.open(1);
  await keys.close(1);
  keys.open(1);
  assert.equal(keys.check(key), undefined);
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
  const requeued: boolean[][] = [];
  let serve: ShardHandler = () => Promise.resolve();
  serveShards(
    { shardOf, holds: () => true, onShard: (handler) => (serve = handler) },
    keys,
    {
      informers: [pods],
      requeue: (isWanted) => void requeued.push([key, objectKey('default', 'y')].map(isWanted)),
    },
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
  assert.deepEqual([keys.owns(key), requeued], [true, [[true, false]]]);
  assert.equal(keys.check(key), undefined);
  shard.abort();
  await settle();
  assert.equal(keys.owns(key), false);
  keys.ended({ key });
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
