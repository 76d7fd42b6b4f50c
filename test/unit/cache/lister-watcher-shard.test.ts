import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatShardRange } from '../../../src/api/shard-range.ts';
import type { WatchEvent } from '../../../src/api/object.ts';
import { withinShard } from '../../../src/cache/lister-watcher.ts';
import type { ListerWatcher, WatchRequest } from '../../../src/cache/lister-watcher.ts';
import { thing } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';

/** By the hashes of their uids, x and y are in the shard; one and two are not. */
const UPPER = { index: 1, count: 2 };

function object(uid: string, resourceVersion: string): Thing {
  const one = thing(`default/${uid}`, 0, resourceVersion);
  return { ...one, metadata: { ...one.metadata, uid } };
}

const events: readonly WatchEvent<Thing>[] = [
  { type: 'added', object: object('x', '7') },
  { type: 'added', object: object('one', '8') },
  { type: 'bookmark', resourceVersion: '9', initialEventsEnd: true },
  { type: 'modified', object: object('y', '10') },
  { type: 'modified', object: object('two', '11') },
];

function sourceOf(asked: (string | undefined)[], batched: boolean): ListerWatcher<Thing> {
  return {
    list: async ({ shardSelector }) => {
      asked.push(shardSelector);
      const items = events.flatMap((event) => ('object' in event ? event.object : []));
      return { items, resourceVersion: '12' };
    },
    watch: async ({ shardSelector }) => {
      asked.push(shardSelector);
      return {
        lastByteMs: 5,
        activity: { lastMs: 6 },
        async *[Symbol.asyncIterator]() {
          yield* events;
        },
        ...(batched && {
          async *batches() {
            yield events;
          },
        }),
      };
    },
  };
}

async function eventsOf(batched: boolean, request: WatchRequest): Promise<string[]> {
  const stream = await withinShard(sourceOf([], batched), UPPER).watch(request);
  const all: WatchEvent<Thing>[] = [];
  if (stream.batches) for await (const batch of stream.batches()) all.push(...batch);
  else for await (const event of stream) all.push(event);
  return all.map((event) =>
    'object' in event
      ? `${event.type} ${event.object.metadata.uid}`
      : event.type === 'bookmark'
        ? `at ${event.resourceVersion}${event.initialEventsEnd ? ', complete' : ''}`
        : event.type,
  );
}

describe('withinShard', () => {
  it('requests the shard in lists and watches and drops other objects', async () => {
    const asked: (string | undefined)[] = [];
    const source = withinShard(sourceOf(asked, true), UPPER);
    const { items } = await source.list({});
    assert.deepEqual(
      items.map(({ metadata }) => metadata.uid),
      ['x', 'y'],
    );
    await source.watch({});
    assert.deepEqual(asked, [formatShardRange(UPPER), formatShardRange(UPPER)]);
  });

  for (const batched of [true, false]) {
    it(`advances the resourceVersion by changes of other shards, ${batched ? 'in batches' : 'one by one'}`, async () => {
      assert.deepEqual(await eventsOf(batched, { resourceVersion: '6' }), [
        'added x',
        'at 8',
        'at 9, complete',
        'modified y',
        'at 11',
      ]);
    });

    it(`does not advance the resourceVersion by the initial state, ${batched ? 'in batches' : 'one by one'}`, async () => {
      assert.deepEqual(await eventsOf(batched, { sendInitialEvents: true }), [
        'added x',
        'at 9, complete',
        'modified y',
        'at 11',
      ]);
    });
  }

  it('reports the activity of its connection', async () => {
    const stream = await withinShard(sourceOf([], true), UPPER).watch({});
    assert.deepEqual([stream.lastByteMs, stream.activity?.lastMs], [5, 6]);
  });
});
