import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CacheSyncLog } from '../../../src/cache/informer-set.ts';
import type { SyncingCache } from '../../../src/cache/informer-set.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

type Cache = { -readonly [K in keyof SyncingCache]: SyncingCache[K] };

function cache(name: string, progress: Partial<SyncingCache['progress']> = {}): Cache {
  const idle = { phase: 'listing', missing: false } as const;
  const none = { lastError: undefined, lastErrorLoggedMs: undefined };
  return { name, hasSynced: false, progress: { ...idle, ...none, ...progress } };
}

function newFixture() {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const waiting = new CacheSyncLog(clock, log);
  /** Returns the lines since the last call. */
  const said = () => lines.splice(0).map(({ fields }) => fields);
  return { clock, waiting, said };
}

const down = { lastError: new Error('connection refused') };

test('logs caches with the same reason in one line', async () => {
  const { clock, waiting, said } = newFixture();
  waiting.add(cache('pods in a', down));
  waiting.add(cache('pods in b', { lastError: new Error('connection refused') }));
  waiting.add(cache('secrets', { lastError: new Error('secrets is forbidden') }));
  waiting.add(cache('nodes', { phase: 'streaming' }));
  await clock.advance(10_000);
  assert.deepEqual(said(), [
    { caches: 'pods in a, pods in b', forSeconds: 10, lastError: 'connection refused' },
    { caches: 'secrets', forSeconds: 10, lastError: 'secrets is forbidden' },
    { caches: 'nodes', forSeconds: 10, phase: 'streaming' },
  ]);
});

test('names at most ten caches in a line', async () => {
  const { clock, waiting, said } = newFixture();
  for (let at = 1; at <= 13; at++) waiting.add(cache(`c${at}`, down));
  await clock.advance(10_000);
  assert.deepEqual(said(), [
    {
      caches: 'c1, c2, c3, c4, c5, c6, c7, c8, c9, c10',
      more: 3,
      forSeconds: 10,
      lastError: 'connection refused',
    },
  ]);
});

test('doubles the interval up to five minutes and starts again with a new cache', async () => {
  const { clock, waiting, said } = newFixture();
  waiting.add(cache('pods', down));
  await clock.advance(1_000_000);
  const times = [10, 30, 70, 150, 310, 610, 910];
  assert.deepEqual(
    said().map(({ forSeconds }) => forSeconds),
    times,
  );
  waiting.add(cache('counts', down));
  waiting.add(cache('nodes', { phase: 'listing' }));
  await clock.advance(35_000);
  assert.deepEqual(
    said().map(({ caches, forSeconds }) => [caches, forSeconds]),
    [
      ['pods, counts', 1010],
      ['nodes', 10],
      ['pods, counts', 1030],
      ['nodes', 30],
    ],
  );
});

test('does not log synced caches and resources that are not served', async () => {
  const { clock, waiting, said } = newFixture();
  const pods = cache('pods', down);
  const counts = cache('counts', { missing: true, lastError: new Error('not found') });
  waiting.add(pods);
  waiting.add(counts);
  pods.hasSynced = true;
  await clock.advance(10_000);
  assert.deepEqual(said(), []);
  counts.progress = { ...counts.progress, missing: false };
  await clock.advance(20_000);
  assert.deepEqual(
    said().map(({ caches }) => caches),
    ['counts'],
  );
  counts.hasSynced = true;
  await clock.advance(40_000);
  assert.deepEqual(said(), []);
  assert.equal(clock.pending, 0, 'nothing is waited for any more');
});

test('omits caches whose reflector has just logged the error', async () => {
  const { clock, waiting, said } = newFixture();
  const pods = cache('pods', { ...down, lastErrorLoggedMs: 0 });
  const counts = cache('counts', { ...down, lastErrorLoggedMs: 6_000 });
  waiting.add(pods);
  waiting.add(counts);
  await clock.advance(10_000);
  pods.progress = { ...pods.progress, lastErrorLoggedMs: 29_000 };
  await clock.advance(20_000);
  assert.deepEqual(
    said().map(({ caches, forSeconds }) => [caches, forSeconds]),
    [
      ['pods', 10],
      ['counts', 30],
    ],
  );
  waiting.stop();
});

test('leaves no timer after a stop', async () => {
  const { clock, waiting, said } = newFixture();
  waiting.add(cache('pods', down));
  waiting.stop();
  assert.equal(clock.pending, 0);
  await clock.advance(100_000);
  assert.deepEqual(said(), []);
});
