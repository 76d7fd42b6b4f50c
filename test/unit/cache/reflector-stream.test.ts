import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WatchListSupport } from '../../../src/cache/reflector-watch.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import {
  apiError,
  expired,
  thing,
  tooManyRequests,
  unreachable,
} from '../../support/fake-source.ts';
import { brief, reflectorWorld } from './harness.ts';

// upstream: 30d
test('streams the initial state and continues the stream as the watch', async () => {
  const world = reflectorWorld('on');
  world.source.put('a');
  await world.start();
  world.source.put('b');
  await settle();
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11', 'changed b@12']);
  assert.equal(world.source.requests.length, 1);
  const { verb, signal: _, ...request } = world.source.requests[0]!;
  assert.equal(verb, 'watch');
  assert.deepEqual(request, {
    resourceVersion: undefined,
    resourceVersionMatch: 'NotOlderThan',
    sendInitialEvents: true,
    allowWatchBookmarks: true,
    timeoutSeconds: 300,
  });
  await world.stop();
});

// upstream: 30, 30e, 31
test('pushes nothing before the bookmark that ends the initial state', async () => {
  const world = reflectorWorld('endless');
  world.source.put('a');
  world.source.put('b');
  await world.start();
  world.source.put('a', 7);
  world.source.remove('b');
  world.source.put('c');
  world.source.bookmark();
  await settle();
  assert.equal(world.deltas.length, 0);
  assert.equal(world.reflector.progress.resourceVersion, '', 'nor does the resourceVersion move');
  world.source.emit({ type: 'bookmark', resourceVersion: '15', initialEventsEnd: true });
  await settle();
  assert.deepEqual(world.deltas.map(brief), ['replaced a,c@15']);
  const replaced = world.deltas.at(0);
  assert.ok(replaced?.type === 'replaced');
  assert.equal(replaced.objects[0]!.spec.value, 7);
  await world.stop();
});

// upstream: 30c
test('lists at once after a refusal and remembers it for some minutes', async () => {
  const world = reflectorWorld('refused');
  await world.start();
  assert.deepEqual(
    world.source.requests.map(({ verb }) => verb),
    ['watch', 'list', 'watch'],
  );
  world.source.watchListMode = 'on';
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(800);
  assert.deepEqual(
    world.source.requests.slice(3).map(({ verb }) => verb),
    ['list', 'watch'],
  );
  await world.clock.advance(5 * 60_000);
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(3200);
  assert.equal(world.source.lists.length, 2, 'streamed again');
  await world.stop();
});

test('shares a refusal between reflectors of one server', async () => {
  const clock = new FakeClock();
  const watchList = new WatchListSupport(clock);
  const first = reflectorWorld('refused', { clock, watchList });
  const second = reflectorWorld('refused', { clock, watchList });
  await first.start();
  await second.start();
  assert.equal(first.source.requests.length, 3);
  assert.equal(second.source.requests.length, 2);
  await first.stop();
  await second.stop();
});

// upstream: 30a
test('can disable streaming', async () => {
  const clock = new FakeClock();
  const watchList = new WatchListSupport(clock, { enabled: false });
  const world = reflectorWorld('on', { clock, watchList });
  await world.start();
  assert.equal(world.source.requests[0]!.verb, 'list');
  await world.stop();
});

// upstream: 30b
test('lists at once after another failure and tries streaming again later', async () => {
  const world = reflectorWorld('on');
  world.source.failNext('watch', apiError('internal', 'oops', 500));
  await world.start();
  assert.deepEqual(
    world.source.requests.map(({ verb }) => verb),
    ['watch', 'list', 'watch'],
  );
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(800);
  assert.equal(world.source.lists.length, 1);
  await world.stop();
});

// upstream: 30f
test('delays the stream after 429, without a list', async () => {
  const world = reflectorWorld('on');
  world.source.failNext('watch', tooManyRequests());
  await world.start();
  await world.clock.advance(800);
  assert.equal(world.source.lists.length, 0);
  assert.deepEqual(world.deltas.map(brief), ['replaced @10']);
  await world.stop();
});

// upstream: 30h
test('streams the latest state at once if the resourceVersion is lost', async () => {
  const world = reflectorWorld('on');
  await world.start();
  world.source.put('a');
  await settle();
  world.source.failNext('watch', expired());
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(800);
  assert.deepEqual(
    world.source.watches.map(({ resourceVersion }) => resourceVersion),
    [undefined, '11', undefined],
  );
  assert.equal(world.source.lists.length, 0);
  await world.stop();
});

// upstream: 29
test('lists after a pause of ten seconds in the stream', async () => {
  const world = reflectorWorld('endless');
  world.source.put('a');
  await world.start();
  await world.clock.advance(9000);
  world.source.put('b');
  await world.clock.advance(9999);
  assert.deepEqual(world.deltas, []);
  await world.clock.advance(1);
  assert.deepEqual(world.deltas.map(brief), ['replaced a,b@12']);
  assert.equal(world.source.openWatches, 1, 'the stream was closed');
  await world.stop();
});

// upstream: 29
test('lists after two minutes of a stream without end', async () => {
  const world = reflectorWorld('endless');
  await world.start();
  for (let second = 0; second < 120; second++) {
    world.source.put('busy', second);
    await world.clock.advance(1000);
  }
  assert.equal(world.source.lists.length, 1);
  await world.stop();
});

// upstream: 30i
test('lists if the server ends the stream without the bookmark', async () => {
  const world = reflectorWorld('endless');
  await world.start();
  await world.clock.advance(5000);
  world.source.endWatches();
  await settle();
  assert.equal(world.source.lists.length, 1);
  assert.deepEqual(world.deltas.map(brief), ['replaced @10']);
  assert.equal(world.clock.pending, 1, 'the watchdog of the watch, none of the stream');
  await world.stop();
});

test('lists if the stream is cut', async () => {
  const world = reflectorWorld('endless');
  await world.start();
  world.source.resetWatches(unreachable());
  await settle();
  assert.equal(world.source.lists.length, 1);
  await world.stop();
});

// upstream: 30j
test('pushes nothing if it is aborted before the initial state is complete', async () => {
  const world = reflectorWorld('endless');
  world.source.put('a');
  await world.start();
  await world.stop();
  assert.deepEqual(world.deltas, []);
  assert.equal(world.source.openWatches, 0);
  assert.equal(world.clock.pending, 0);
});

// upstream: 27
test('skips a malformed object in the stream', async () => {
  const world = reflectorWorld('endless');
  world.source.put('a');
  await world.start();
  world.source.emit({ type: 'added', object: { ...thing('t'), kind: 'Table' as 'Thing' } });
  world.source.emit({ type: 'bookmark', resourceVersion: '11', initialEventsEnd: true });
  await settle();
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11']);
  await world.stop();
});
