import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import type { WatchEvent } from '../../../src/api/object.ts';
import type { ListerWatcher } from '../../../src/cache/lister-watcher.ts';
import { WatchConnection } from '../../../src/cache/reflector-watch.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { ConnectionActivity } from '../../../src/util/http.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { FakeSource, thing, unreachable } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';

/** @param activity of the connections that carry the watches */
function newFixture(activity?: ConnectionActivity) {
  const clock = new FakeClock();
  const source = new FakeSource(clock);
  source.activity = activity;
  const owner = new AbortController();
  const open = () =>
    WatchConnection.open(
      source,
      { resourceVersion: '10' },
      { clock, stallMs: 1000, quietMs: 5000, signal: owner.signal },
    );
  return { clock, source, owner, open };
}

test('returns events one by one and then done', async () => {
  const { source, open } = newFixture();
  const connection = await open();
  source.put('a');
  const first = await connection.next();
  assert.ok(!first.done && first.value.type === 'added');
  source.endWatches();
  assert.equal((await connection.next()).done, true);
  assert.equal(connection.stalled, false);
});

// upstream: 34n
test('ends after inactivity; any byte restarts the limit', async () => {
  const { clock, source, open } = newFixture();
  const connection = await open();
  await clock.advance(900);
  source.bookmark();
  await connection.next();
  await clock.advance(999);
  assert.equal(connection.stalled, false);
  assert.equal(connection.lastByteMs, 900);
  const last = connection.next();
  await clock.advance(1);
  assert.equal((await last).done, true);
  assert.equal(connection.stalled, true);
  assert.equal(source.openWatches, 0);
});

test('measures inactivity from the last byte, to the millisecond', async () => {
  const { clock, source, open } = newFixture();
  const connection = await open();
  await clock.advance(30);
  source.bookmark();
  await clock.advance(999);
  assert.equal(connection.stalled, false);
  await clock.advance(1);
  assert.equal(connection.stalled, true);
});

// upstream: 34n
test('allows a longer limit on a connection that answers pings', async () => {
  const activity = { lastMs: 0 };
  const { clock, source, open } = newFixture(activity);
  const connection = await open();
  for (; clock.monotonic() < 4900; activity.lastMs = clock.monotonic()) await clock.advance(100);
  assert.equal(connection.stalled, false);
  await clock.advance(99);
  assert.equal(connection.stalled, false);
  await clock.advance(1);
  assert.equal(connection.stalled, true);
  assert.equal(source.openWatches, 0);
});

// upstream: 34n
test('ends after the connection stopped answering pings', async () => {
  const activity = { lastMs: 0 };
  const { clock, open } = newFixture(activity);
  const connection = await open();
  await clock.advance(700);
  activity.lastMs = 700;
  await clock.advance(999);
  assert.equal(connection.stalled, false);
  await clock.advance(1);
  assert.equal(connection.stalled, true);
});

// upstream: 34n
test('expects bookmarks within the short limit after the first one', async () => {
  const activity = { lastMs: 0 };
  const { clock, source, open } = newFixture(activity);
  const connection = await open();
  await clock.advance(500);
  source.bookmark();
  await connection.next();
  connection.expectBookmarks();
  for (; clock.monotonic() < 1499; activity.lastMs = clock.monotonic()) await clock.advance(1);
  assert.equal(connection.stalled, false);
  await clock.advance(1);
  assert.equal(connection.stalled, true);
});

// upstream: 34n
test('limits the wait for the response', async () => {
  const { clock, owner } = newFixture();
  await clock.advance(60_000);
  const opening = WatchConnection.open(
    {
      list: () => Promise.reject(new Error('unused')),
      watch: ({ signal }) =>
        new Promise<never>((_, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason as Error));
        }),
    },
    {},
    { clock, stallMs: 1000, quietMs: 5000, signal: owner.signal },
  );
  const rejected = assert.rejects(opening, { kind: 'unreachable' });
  await clock.advance(999);
  assert.equal(clock.pending, 1);
  await clock.advance(1);
  await rejected;
  assert.equal(clock.pending, 0);
});

for (const end of ['close', 'abort'] as const) {
  // upstream: 5
  test(`ends on ${end} and leaves no timer or listener`, async () => {
    const { clock, source, owner, open } = newFixture();
    const connection = await open();
    const last = connection.next();
    if (end === 'close') connection.close();
    else owner.abort();
    assert.equal((await last).done, true);
    await settle();
    assert.equal(connection.stalled, false);
    assert.equal(source.openWatches, 0);
    assert.equal(clock.pending, 0);
    assert.equal(getEventListeners(owner.signal, 'abort').length, 0);
  });
}

test('leaves no timer or listener after a rejected watch', async () => {
  const { clock, source, open } = newFixture();
  source.failNext('watch', unreachable());
  await assert.rejects(open(), { kind: 'unreachable' });
  assert.equal(clock.pending, 0);
});

// upstream: 4
test('opens nothing with an aborted signal', async () => {
  const { clock, source, owner, open } = newFixture();
  owner.abort(new Error('stopped'));
  await assert.rejects(open(), /stopped/);
  assert.equal(source.openWatches, 0);
  assert.equal(clock.pending, 0);
});

for (const [who, end] of [
  ['the reader', (connection: WatchConnection<Thing>) => connection.close()],
  ['the owner', (_: WatchConnection<Thing>, owner: AbortController) => owner.abort()],
] as const) {
  test(`returns no more received events after ${who} ended it`, async () => {
    const owner = new AbortController();
    const events: WatchEvent<Thing>[] = ['a', 'b', 'c'].map((key) => ({
      type: 'added',
      object: thing(key),
    }));
    async function* batches(signal: AbortSignal | undefined) {
      yield events;
      if (signal && !signal.aborted) await untilAborted(signal);
    }
    const source: ListerWatcher<Thing> = {
      list: () => assert.fail('nothing is listed'),
      watch: async ({ signal }) => ({
        lastByteMs: 0,
        batches: () => batches(signal),
        [Symbol.asyncIterator]: () => assert.fail('it is read by batches'),
      }),
    };
    const connection = await WatchConnection.open(
      source,
      { resourceVersion: '10' },
      { clock: new FakeClock(), stallMs: 1000, quietMs: 5000, signal: owner.signal },
    );
    assert.deepEqual(await connection.next(), { done: false, value: events[0] });
    assert.equal(connection.ready(), events[1]);
    end(connection, owner);
    assert.equal(connection.ready(), undefined);
    assert.deepEqual(await connection.next(), { done: true, value: undefined });
  });
}
