import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Delta } from '../../../src/cache/delta-queue.ts';
import { ObjectGuard } from '../../../src/cache/object-guard.ts';
import { ReflectorProgress } from '../../../src/cache/progress.ts';
import { limitsOf } from '../../../src/cache/reflector-options.ts';
import { WatchReader } from '../../../src/cache/reflector-watch.ts';
import { WatchConnection } from '../../../src/cache/reflector-watch.ts';
import { isVeryShort } from '../../../src/cache/reflector-state.ts';
import { noInformerMetrics } from '../../../src/metrics/no-metrics.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { apiError, expired, FakeSource, unreachable } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';

const versionOf = (delta: Delta<Thing>): string =>
  delta.type === 'changed' ? `changed ${delta.object.metadata.resourceVersion}` : delta.type;

async function newFixture(ordered = true) {
  const clock = new FakeClock();
  const source = new FakeSource(clock);
  const owner = new AbortController();
  const connection = await WatchConnection.open(
    source,
    { resourceVersion: '10' },
    { clock, signal: owner.signal, ...limitsOf({}) },
  );
  const progress = new ReflectorProgress(clock);
  const deltas: Delta<Thing>[] = [];
  /** resourceVersion of the progress at the time of each delta. */
  const versions: string[] = [];
  let firstEvents = 0;
  const reader = new WatchReader<Thing>({
    sink: {
      push(delta) {
        deltas.push(delta);
        versions.push(progress.resourceVersion);
        return undefined;
      },
    },
    guard: new ObjectGuard(clock, silentLogger, noInformerMetrics),
    progress,
    clock,
    onFirstEvent: () => firstEvents++,
  });
  return {
    clock,
    source,
    owner,
    progress,
    deltas,
    versions,
    firstEvents: () => firstEvents,
    read: () => reader.read(connection, ordered ? '10' : ''),
  };
}

// upstream: 5
test('reports a watch that ended before it was read, without an event', async () => {
  const { source, read } = await newFixture();
  source.endWatches();
  const end = await read();
  assert.deepEqual(end, { how: 'serverEnded', lastedMs: 0, events: 0, resourceVersion: '10' });
  assert.equal(isVeryShort(end), true);
});

// upstream: 5
test('reports the duration and the number of events of a watch', async () => {
  const { clock, source, read } = await newFixture();
  const reading = read();
  source.put('a');
  await clock.advance(700);
  source.put('a');
  await clock.advance(500);
  source.endWatches();
  const end = await reading;
  assert.deepEqual(end, { how: 'serverEnded', lastedMs: 1200, events: 2, resourceVersion: '12' });
  assert.equal(isVeryShort(end), false);
});

test('reads events that arrived before the end', async () => {
  const { source, deltas, read } = await newFixture();
  source.put('a');
  source.put('b');
  source.endWatches();
  assert.deepEqual(await read(), {
    how: 'serverEnded',
    lastedMs: 0,
    events: 2,
    resourceVersion: '12',
  });
  assert.deepEqual(deltas.map(versionOf), ['changed 11', 'changed 12']);
});

for (const when of ['before', 'while'] as const) {
  // upstream: 5
  test(`ends without an error on an abort ${when === 'before' ? 'before the watch is read' : 'while it is read'}`, async () => {
    const { source, owner, read } = await newFixture();
    if (when === 'before') owner.abort(new Error('stopped'));
    const reading = read();
    await settle();
    owner.abort(new Error('stopped'));
    const { how, events } = await reading;
    assert.deepEqual([how, events], ['serverEnded', 0]);
    assert.equal(source.openWatches, 0);
  });
}

// upstream: 1
test('stops at an error event', async () => {
  const { source, deltas, read } = await newFixture();
  const error = expired();
  source.put('a');
  source.emit({ type: 'error', error });
  source.put('b');
  assert.deepEqual(await read(), {
    how: 'errorEvent',
    error,
    lastedMs: 0,
    events: 2,
    resourceVersion: '11',
  });
  assert.deepEqual(deltas.map(versionOf), ['changed 11']);
});

test('distinguishes a broken connection from an error of the server', async () => {
  for (const error of [unreachable(), apiError('malformed', 'no JSON')]) {
    const { source, read } = await newFixture();
    source.resetWatches(error);
    const end = await read();
    assert.deepEqual(end, {
      how: 'connectionBroke',
      error,
      lastedMs: 0,
      events: 0,
      resourceVersion: '10',
    });
  }
});

// upstream: 24
test('advances the resourceVersion after the push, never before', async () => {
  const { source, progress, versions, read } = await newFixture();
  const reading = read();
  for (const step of [
    () => source.put('a'),
    () => source.put('a'),
    () => source.remove('a'),
    () => source.skip(7),
    () => source.bookmark(),
    () => source.put('b'),
  ]) {
    step();
    await settle();
  }
  assert.deepEqual(versions, ['', '11', '12', '13', '20']);
  assert.equal(progress.resourceVersion, '21');
  source.endWatches();
  await reading;
});

test('calls onFirstEvent for the first event only, of any kind', async () => {
  const { source, firstEvents, read } = await newFixture();
  const reading = read();
  await settle();
  assert.equal(firstEvents(), 0);
  source.bookmark();
  source.put('a');
  source.endWatches();
  await reading;
  assert.equal(firstEvents(), 1);
});

test('ignores the resourceVersion of a bookmark that is not a point in time', async () => {
  const { source, deltas, progress, read } = await newFixture();
  source.put('a');
  for (const resourceVersion of ['', '0']) {
    source.emit({ type: 'bookmark', resourceVersion, initialEventsEnd: false });
  }
  source.endWatches();
  await read();
  assert.deepEqual(deltas.map(versionOf), ['changed 11']);
  assert.equal(progress.resourceVersion, '11');
});

for (const [name, happen] of [
  ['a change', (source: FakeSource) => source.put('a')],
  ['a deletion', (source: FakeSource) => source.remove('a')],
  ['a bookmark', (source: FakeSource) => source.bookmark()],
] as const) {
  // upstream: 31
  test(`ends the unordered initial state of a watch with ${name}`, async () => {
    const { source, deltas, progress, read } = await newFixture(false);
    source.put('a');
    const reading = read();
    await settle();
    assert.equal(progress.resourceVersion, '');
    happen(source);
    await settle();
    assert.notEqual(progress.resourceVersion, '');
    source.put('new');
    source.endWatches();
    await reading;
    const unordered = deltas.map((delta) => delta.type === 'changed' && delta.unordered === true);
    assert.deepEqual(unordered, [true, false, false]);
  });
}
