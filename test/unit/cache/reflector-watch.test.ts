import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deferred } from '../../../src/util/deferred.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import {
  apiError,
  expired,
  thing,
  tooLarge,
  tooManyRequests,
  unreachable,
} from '../../support/fake-source.ts';
import { brief, reflectorWorld } from './harness.ts';

// upstream: 6, 8
test('pushes changes, deletions and bookmarks in order and advances the resourceVersion', async () => {
  const { source, deltas, reflector, start, stop } = reflectorWorld();
  await start();
  source.put('a');
  source.put('a');
  source.remove('a');
  source.skip(5);
  source.bookmark();
  await settle();
  assert.deepEqual(deltas.map(brief), [
    'replaced @10',
    'changed a@11',
    'changed a@12',
    'deleted a@13',
    'synced @18',
  ]);
  assert.equal(reflector.progress.resourceVersion, '18');
  await stop();
});

// upstream: 23
test('requests bookmarks and a timeout of 300 to 600 seconds for every watch', async () => {
  for (const [random, seconds] of [
    [0, 300],
    [0.5, 450],
    [0.999, 599],
  ] as const) {
    const world = reflectorWorld('refused', { random: () => random });
    await world.start();
    const { verb: _, signal: __, ...request } = world.source.watches.at(-1)!;
    assert.deepEqual(request, {
      resourceVersion: '10',
      allowWatchBookmarks: true,
      timeoutSeconds: seconds,
    });
    await world.stop();
  }
});

// upstream: 34f
test('resumes from the last bookmark without a list when the server ends the watch', async () => {
  const world = reflectorWorld();
  await world.start();
  world.source.skip(7);
  world.source.bookmark();
  await world.clock.advance(1000);
  world.source.endWatches();
  await settle();
  assert.equal(world.source.watches.at(-1)!.resourceVersion, '17');
  assert.equal(world.source.openWatches, 1);
  assert.equal(world.source.lists.length, 1);
  await world.stop();
});

// upstream: 34h
test('resumes a cut connection and receives the changes meanwhile', async () => {
  const world = reflectorWorld();
  await world.start();
  await world.clock.advance(60_000);
  world.source.resetWatches();
  world.source.put('a');
  await settle();
  assert.deepEqual(world.deltas.map(brief), ['replaced @10', 'changed a@11']);
  assert.equal(world.source.lists.length, 1);
  assert.deepEqual(world.shown(), []);
  await world.stop();
});

// upstream: 10
test('waits for a server that refuses watches and lists then', async () => {
  const world = reflectorWorld();
  await world.start();
  await world.clock.advance(60_000);
  world.source.failNext('watch', unreachable(), 2);
  world.source.endWatches();
  world.source.put('a');
  await world.clock.advance(800 + 1600);
  assert.deepEqual(world.deltas.map(brief), ['replaced @10', 'changed a@11']);
  assert.deepEqual(world.shown(), ['Failed to watch', 'Recovered']);
  world.source.failNext('watch', unreachable(), 1);
  world.source.endWatches();
  await world.clock.advance(3200);
  assert.deepEqual(world.deltas.map(brief).slice(2), ['replaced a@11']);
  await world.stop();
});

test('resets the backoff after two minutes of a watch', async () => {
  const world = reflectorWorld();
  await world.start();
  world.source.emit({ type: 'error', error: tooManyRequests() });
  world.source.failNext('watch', unreachable(), 3);
  await world.clock.advance(60_000);
  assert.equal(world.reflector.progress.phase, 'watching');
  await world.clock.advance(80_000);
  world.source.failNext('watch', unreachable());
  world.source.endWatches();
  await settle();
  assert.equal(world.clock.untilNext, 800);
  await world.stop();
});

// upstream: 13
test('sends one list and five watches for four times 429', async () => {
  const world = reflectorWorld();
  world.source.failNext('watch', apiError('invalid', 'no streaming', 422));
  world.source.failNext('watch', tooManyRequests(), 4);
  await world.start();
  await world.clock.advance(800 + 1600 + 3200 + 6400);
  assert.equal(world.source.watches.filter((watch) => watch.resourceVersion === '10').length, 5);
  assert.equal(world.source.lists.length, 1);
  await world.stop();
});

test('waits for a Retry-After that is longer than the delay', async () => {
  const world = reflectorWorld();
  await world.start();
  await world.clock.advance(60_000);
  world.source.failNext('watch', tooManyRequests(20_000));
  world.source.endWatches();
  await world.clock.advance(19_999);
  assert.equal(world.source.openWatches, 0);
  await world.clock.advance(1);
  assert.equal(world.source.openWatches, 1);
  await world.stop();
});

// upstream: 34k
test('resumes after a delay if 429 arrives in the stream', async () => {
  const world = reflectorWorld();
  await world.start();
  world.source.emit({ type: 'error', error: tooManyRequests() });
  await settle();
  assert.equal(world.reflector.progress.phase, 'waiting');
  assert.equal(world.source.openWatches, 0, 'an error ends the watch');
  await world.clock.advance(800);
  assert.equal(world.source.openWatches, 1);
  assert.equal(world.source.lists.length, 1);
  await world.stop();
});

// upstream: 34i
test('relists not older than the last resourceVersion after 410 in the stream, without a line at -v=0', async () => {
  const world = reflectorWorld();
  await world.start();
  world.source.put('a');
  await settle();
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(800);
  assert.deepEqual(
    world.source.lists.map(({ resourceVersion }) => resourceVersion),
    ['0', '11'],
  );
  assert.deepEqual(world.shown(), []);
  await world.stop();
});

// upstream: 34i
test('relists after the history was compacted', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  await world.start();
  await world.clock.advance(60_000);
  world.source.isStalled = true;
  world.source.remove('a');
  world.source.put('b');
  world.source.isStalled = false;
  world.source.compact();
  world.source.endWatches();
  await world.clock.advance(2000);
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11', 'replaced b@13']);
  await world.stop();
});

// upstream: 34i
test('waits only once if an outage lasts longer than the history of the server', async () => {
  const world = reflectorWorld();
  await world.start();
  await world.clock.advance(60_000);
  world.source.failNext('list', unreachable(), 8);
  world.source.endWatches();
  await settle();
  await world.clock.advance(800 + 1600 + 3200 + 6400 + 12_800 + 25_600 + 30_000);
  world.source.put('a');
  world.source.compact();
  assert.equal(world.clock.untilNext, 30_000);
  await world.clock.advance(30_000);
  assert.deepEqual(world.deltas.map(brief), ['replaced @10', 'replaced a@11']);
  await world.stop();
});

// upstream: 14, 34l
test('relists and logs after any other error in the stream', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  await world.start();
  world.source.emit({ type: 'error', error: apiError('internal', 'object is corrupt', 500) });
  await world.clock.advance(800);
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11', 'replaced a@11']);
  assert.deepEqual(world.shown(), ['Failed to watch']);
  await world.stop();
});

// upstream: 34e
test('uses a quorum read if the server refuses a watch from a future resourceVersion', async () => {
  const world = reflectorWorld();
  await world.start();
  await world.clock.advance(60_000);
  world.source.failNext('watch', tooLarge());
  world.source.endWatches();
  await world.clock.advance(800);
  assert.equal(world.source.lists.at(-1)!.resourceVersion, undefined);
  await world.stop();
});

// upstream: 34g
test('relists with growing delays and one line if watches end at once without an event', async () => {
  const world = reflectorWorld();
  await world.start();
  while (world.clock.monotonic() < 60_000) {
    world.source.endWatches();
    await settle();
    await world.clock.advance(world.clock.untilNext!);
  }
  assert.equal(world.source.lists.length, 8, 'after 0.8, 1.6, 3.2, 6.4, 12.8, 25.6 and 30 s');
  assert.deepEqual(world.shown(), ['Failed to watch']);
  await world.stop();
});

// upstream: 6
test('skips an object without a name and keeps the resourceVersion', async () => {
  const world = reflectorWorld();
  await world.start();
  const broken = thing('x', 0, '99');
  Reflect.deleteProperty(broken.metadata, 'name');
  world.source.emit({ type: 'modified', object: broken });
  world.source.emit({ type: 'added', object: { ...thing('t'), kind: 'Table' as 'Thing' } });
  world.source.put('a');
  await settle();
  assert.deepEqual(world.deltas.map(brief), ['replaced @10', 'changed a@11']);
  await world.stop();
});

// upstream: 31
test('does not advance the resourceVersion by unordered additions', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  world.source.put('b');
  const { signal } = new AbortController();
  const reading = world.reflector.step({ phase: 'watching', resourceVersion: '' }, signal);
  await settle();
  assert.deepEqual(world.deltas.map(brief), ['changed a@11', 'changed b@12']);
  assert.ok(world.deltas.every((delta) => delta.type === 'changed' && delta.unordered));
  assert.equal(world.reflector.progress.resourceVersion, '');
  world.source.put('a');
  await settle();
  assert.equal(world.reflector.progress.resourceVersion, '13');
  world.source.put('c');
  await settle();
  assert.equal(
    world.deltas.at(-1)!.type === 'changed' && 'unordered' in world.deltas.at(-1)!,
    false,
  );
  world.source.endWatches();
  assert.deepEqual(await reading, { phase: 'watching', resourceVersion: '14', verify: true });
});

test('does not resume a watch without a start resourceVersion, which would miss deletions', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  const { signal } = new AbortController();
  const reading = world.reflector.step({ phase: 'watching', resourceVersion: '0' }, signal);
  await settle();
  world.source.endWatches();
  assert.deepEqual(await reading, { phase: 'streaming', freshness: 'any' });
});

test('re-establishes a stalled watch after 90 seconds from the last resourceVersion', async () => {
  const world = reflectorWorld();
  await world.start();
  world.source.isStalled = true;
  world.source.put('a');
  await world.clock.advance(89_999);
  assert.equal(world.deltas.length, 1);
  world.source.isStalled = false;
  await world.clock.advance(1);
  assert.deepEqual(world.deltas.map(brief), ['replaced @10', 'changed a@11']);
  assert.equal(world.source.lists.length, 1);
  assert.equal(world.reflector.progress.stalls, 1);
  assert.equal(world.source.openWatches, 1);
  await world.stop();
});

test('keeps a watch without changes that sends a bookmark a minute', async () => {
  const world = reflectorWorld();
  await world.start();
  for (let minute = 0; minute < 10; minute++) {
    await world.clock.advance(60_000);
    world.source.bookmark();
    await settle();
  }
  assert.equal(world.reflector.progress.stalls, 0);
  assert.equal(world.source.watches.length, 2, 'the refused stream, and the watch');
  await world.stop();
});

test('uses the configured stall timeout', async () => {
  const world = reflectorWorld('refused', {}, { stallMs: 500 });
  await world.start();
  await world.clock.advance(500);
  assert.equal(world.reflector.progress.stalls, 1);
  assert.equal(world.source.openWatches, 1, 'a stalled watch does not count as very short');
  await world.stop();
});

// upstream: 4
test('opens no watch after the abort', async () => {
  const world = reflectorWorld();
  await world.stop();
  const stopped = AbortSignal.abort();
  await world.reflector.run(stopped);
  assert.deepEqual(world.source.requests, []);
});

// upstream: 2, 7
test('closes the open watch on abort and ends without an error', async () => {
  const world = reflectorWorld();
  await world.start();
  assert.equal(world.source.openWatches, 1);
  await world.stop();
  assert.equal(world.source.openWatches, 0);
  assert.equal(world.clock.pending, 0);
  assert.deepEqual(world.shown(), []);
});

test('reads the next event only when the sink accepts it', async () => {
  const room = new Deferred();
  const pushed: string[] = [];
  const world = reflectorWorld('refused', {
    sink: {
      push(delta) {
        pushed.push(brief(delta));
        return delta.type === 'changed' ? room.promise : undefined;
      },
    },
  });
  await world.start();
  world.source.put('a');
  world.source.put('b');
  await settle();
  assert.deepEqual(pushed, ['replaced @10', 'changed a@11']);
  room.resolve();
  await settle();
  assert.deepEqual(pushed.at(-1), 'changed b@12');
  await world.stop();
});

// upstream: 68
test('records the time of each kind of activity in its progress', async () => {
  const world = reflectorWorld();
  const { progress } = world.reflector;
  assert.equal(progress.phase, 'idle');
  await world.start();
  assert.equal(progress.phase, 'watching');
  assert.equal(progress.lastListMs, 0);
  await world.clock.advance(1000);
  world.source.put('a');
  await world.clock.advance(1000);
  world.source.bookmark();
  await world.clock.advance(500);
  assert.equal(progress.lastEventMs, 1000);
  assert.equal(progress.lastBookmarkMs, 2000);
  assert.equal(progress.lastByteMs, 2000);
  assert.equal(progress.inactiveMs, 500);
  world.source.failNext('watch', unreachable());
  world.source.endWatches();
  await settle();
  assert.equal(progress.phase, 'waiting');
  assert.match(progress.reason!, /ECONNREFUSED/);
  assert.equal(progress.sinceMs, 2500);
  assert.ok(progress.lastError instanceof Error);
  await world.clock.advance(800);
  assert.equal(progress.lastError, undefined);
  await world.stop();
  assert.equal(progress.phase, 'idle');
});
