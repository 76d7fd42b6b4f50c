import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { formatShardRange } from '../../src/api/shard-range.ts';
import { InformerSet } from '../../src/cache/informer-set.ts';
import type { SharedInformer } from '../../src/cache/shared-informer.ts';
import { CONFIG_MAPS } from '../support/config-maps.ts';
import type { ConfigMap } from '../support/config-maps.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { since } from '../support/since.ts';
import { WireWorld } from '../support/wire-world.ts';

const SHARDS = 3;
const OBJECTS = 60;

/** The embedded server knows no shards, as servers without the alpha gate do; a real one is told to. */
const knowsShards = process.env['CONTROL_PLANE'] === 'real' && !since(36).skip;
const FLAGS = { apiServerFlags: ['--feature-gates=ShardedListAndWatch=true'] };

describe('given objects that stand alone, and three programs that share them out', () => {
  let plane: ControlPlane;
  let world: WireWorld;
  const stop = new AbortController();
  const ends: Promise<void>[] = [];
  const shards: SharedInformer<ConfigMap>[] = [];

  before(async () => {
    plane = await startControlPlane(knowsShards ? FLAGS : {});
    world = await WireWorld.create(plane);
    const { namespace } = world;
    for (let i = 0; i < OBJECTS; i++) {
      await world.client.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name: `c-${i}` },
        data: { revision: '1' },
      });
    }
    for (let index = 0; index < SHARDS; index++) {
      const set = new InformerSet(world.client);
      shards.push(set.for(CONFIG_MAPS, { namespace, shard: { index, count: SHARDS } }));
      ends.push(set.run(stop.signal));
    }
    await Promise.all(shards.map(({ synced }) => synced));
  });
  after(async () => {
    stop.abort();
    await Promise.all(ends);
    await world.end();
    await plane.close();
  });

  /** Names of the shards' objects that have come to `revision`. */
  const names = (revision?: string): string[] =>
    shards.flatMap(({ lister }) =>
      lister
        .list()
        .filter(({ data }) => data !== undefined && 'revision' in data)
        .filter(({ data }) => revision === undefined || data?.revision === revision)
        .map(({ metadata }) => metadata.name),
    );

  it('each object is in one shard, and every shard has some', () => {
    assert.equal(names().length, OBJECTS);
    assert.equal(new Set(names()).size, OBJECTS);
    for (const { lister } of shards) assert.ok(lister.size > OBJECTS / 10, `${lister.size}`);
  });

  it('what changes, comes and goes is heard of by the shard it is in, and by no other', async () => {
    const { client, namespace } = world;
    const at = (i: number) => ({ namespace, name: `c-${i}` });
    for (let i = 0; i < 20; i++) {
      await client.patch(CONFIG_MAPS, at(i), { type: 'merge', body: { data: { revision: '2' } } });
    }
    for (let i = 20; i < 30; i++) await client.delete(CONFIG_MAPS, at(i));
    await world.until('all is heard of', async () => {
      return names('2').length === 20 && names().length === OBJECTS - 10;
    });
    assert.equal(new Set(names()).size, OBJECTS - 10);
  });

  it('a server that knows shards sends nothing else', { skip: !knowsShards }, async () => {
    const shardSelector = formatShardRange({ index: 1, count: SHARDS });
    const { items } = await world.client.list(CONFIG_MAPS, {
      namespace: world.namespace,
      shardSelector,
    });
    const found = items.map(({ metadata }) => metadata.name).toSorted();
    const kept = (shards[1]?.lister.list() ?? []).map(({ metadata }) => metadata.name).toSorted();
    assert.ok(found.length > 0);
    assert.deepEqual(found, kept);
  });
});
