import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { formatShardRange } from '../../src/api/shard-range.ts';
import { InformerSet } from '../../src/cache/informer-set.ts';
import type { SharedInformer } from '../../src/cache/shared-informer.ts';
import { CONFIG_MAPS } from '../../src/api/builtin.ts';
import type { ConfigMap } from '../../src/api/builtin.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { skipBefore } from '../support/skip.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

const SHARDS = 3;
const OBJECTS = 60;

/**
 * Only a real server with the alpha feature gate supports shard selectors; the embedded server does
 * not.
 */
const supportsShards = process.env['CONTROL_PLANE'] === 'real' && !skipBefore(36).skip;
const FLAGS = { apiServerFlags: ['--feature-gates=ShardedListAndWatch=true'] };

describe('Three programs that share objects by shard selectors', () => {
  let plane: ControlPlane;
  let cluster: TlsCluster;
  const stop = new AbortController();
  const ends: Promise<void>[] = [];
  const shards: SharedInformer<ConfigMap>[] = [];

  before(async () => {
    plane = await startControlPlane(supportsShards ? FLAGS : {});
    cluster = await TlsCluster.create(plane);
    const { namespace } = cluster;
    for (let i = 0; i < OBJECTS; i++) {
      await cluster.client.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name: `c-${i}` },
        data: { revision: '1' },
      });
    }
    for (let index = 0; index < SHARDS; index++) {
      const set = new InformerSet(cluster.client);
      shards.push(set.for(CONFIG_MAPS, { namespace, shard: { index, count: SHARDS } }));
      ends.push(set.run(stop.signal));
    }
    await Promise.all(shards.map(({ synced }) => synced));
  });
  after(async () => {
    stop.abort();
    await Promise.all(ends);
    await cluster.end();
    await plane.close();
  });

  /** Returns the names of the objects in each shard, of those at `revision` if set. */
  const names = (revision?: string): string[] =>
    shards.flatMap(({ lister }) =>
      lister
        .list()
        .filter(({ data }) => data !== undefined && 'revision' in data)
        .filter(({ data }) => revision === undefined || data?.revision === revision)
        .map(({ metadata }) => metadata.name),
    );

  it('each object is in one shard, and every shard has objects', () => {
    assert.equal(names().length, OBJECTS);
    assert.equal(new Set(names()).size, OBJECTS);
    for (const { lister } of shards) assert.ok(lister.size > OBJECTS / 10, `${lister.size}`);
  });

  it('creations, updates and deletions are received by the shard of the object only', async () => {
    const { client, namespace } = cluster;
    const at = (i: number) => ({ namespace, name: `c-${i}` });
    for (let i = 0; i < 20; i++) {
      await client.patch(CONFIG_MAPS, at(i), { type: 'merge', body: { data: { revision: '2' } } });
    }
    for (let i = 20; i < 30; i++) await client.delete(CONFIG_MAPS, at(i));
    await cluster.until('all changes are received', async () => {
      return names('2').length === 20 && names().length === OBJECTS - 10;
    });
    assert.equal(new Set(names()).size, OBJECTS - 10);
  });

  it(
    'a server with shard selectors sends no other objects',
    { skip: !supportsShards },
    async () => {
      const shardSelector = formatShardRange({ index: 1, count: SHARDS });
      const { items } = await cluster.client.list(CONFIG_MAPS, {
        namespace: cluster.namespace,
        shardSelector,
      });
      const found = items.map(({ metadata }) => metadata.name).toSorted();
      const kept = (shards[1]?.lister.list() ?? []).map(({ metadata }) => metadata.name).toSorted();
      assert.ok(found.length > 0);
      assert.deepEqual(found, kept);
    },
  );
});
