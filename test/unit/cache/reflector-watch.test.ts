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
test('changes, deletions and bookmarks come through in order, and move the resourceVersion', async () => {
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
test('every watch asks for bookmarks and for an end after 300 to 600 seconds', async () => {
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
test('a watch that the server ends is begun anew at once, from the last bookmark, without a list', async () => {
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
test('a cut connection is resumed, and what happened meanwhile arrives', async () => {
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
test('a server that refuses watches for a while is waited for, and then listed', async () => {
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

test('two minutes of a standing watch lead back to short delays', async () => {
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
test('429 four times: one list, five watches', async () => {
  const world = reflectorWorld();
  world.source.failNext('watch', apiError('invalid', 'no streaming', 422));
  world.source.failNext('watch', tooManyRequests(), 4);
  await world.start();
  await world.clock.advance(800 + 1600 + 3200 + 6400);
  assert.equal(world.source.watches.filter((watch) => watch.resourceVersion === '10').length, 5);
  assert.equal(world.source.lists.length, 1);
  await world.stop();
});

test('a Retry-After longer than the delay is waited for', async () => {
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
test('429 in the stream: a delay, then the same watch', async () => {
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
test('410 in the stream: a delay, then a relist not older than what is known; no line by default', async () => {
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
test('a history that was compacted away is made up for by a relist', async () => {
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
test('an outage that outlasts the history of the server: its return is waited for once, not twice', async () => {
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
test('any other error in the stream leads to a relist, and to a line', async () => {
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
test('a watch from the future, refused as such, leads to a quorum read', async () => {
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
test('watches that end at once and say nothing lead to relists at a slowing pace, and one line', async () => {
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
test('an object without a name is skipped and does not move the resourceVersion', async () => {
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
test('from a list that named no resourceVersion, unordered additions do not move it', async () => {
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

test('a watch from no particular point cannot be resumed: deletions would be missed', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  const { signal } = new AbortController();
  const reading = world.reflector.step({ phase: 'watching', resourceVersion: '0' }, signal);
  await settle();
  world.source.endWatches();
  assert.deepEqual(await reading, { phase: 'streaming', freshness: 'any' });
});

test('a silent watch is given up after 90 seconds and resumed where it was', async () => {
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

test('a bookmark a minute keeps a quiet watch open', async () => {
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

test('the silence that is borne is an option', async () => {
  const world = reflectorWorld('refused', {}, { stallMs: 500 });
  await world.start();
  await world.clock.advance(500);
  assert.equal(world.reflector.progress.stalls, 1);
  assert.equal(world.source.openWatches, 1, 'however short, silence is no very short watch');
  await world.stop();
});

// upstream: 4
test('no watch is opened once the signal has aborted', async () => {
  const world = reflectorWorld();
  await world.stop();
  const stopped = AbortSignal.abort();
  await world.reflector.run(stopped);
  assert.deepEqual(world.source.requests, []);
});

// upstream: 2, 7
test('an abort closes the open watch, and the reflector ends without an error', async () => {
  const world = reflectorWorld();
  await world.start();
  assert.equal(world.source.openWatches, 1);
  await world.stop();
  assert.equal(world.source.openWatches, 0);
  assert.equal(world.clock.pending, 0);
  assert.deepEqual(world.shown(), []);
});

test('the next event is read only when the sink has room', async () => {
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
test('progress tells when which sign of life came', async () => {
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
