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
import { brief, reflectorFixture } from './harness.ts';

// upstream: 30d
test('streams the initial state and continues the stream as the watch', async () => {
  const fixture = reflectorFixture('on');
  fixture.source.put('a');
  await fixture.start();
  fixture.source.put('b');
  await settle();
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11', 'changed b@12']);
  assert.equal(fixture.source.requests.length, 1);
  const { verb, signal: _, ...request } = fixture.source.requests[0]!;
  assert.equal(verb, 'watch');
  assert.deepEqual(request, {
    resourceVersion: undefined,
    resourceVersionMatch: 'NotOlderThan',
    sendInitialEvents: true,
    allowWatchBookmarks: true,
    timeoutSeconds: 300,
  });
  await fixture.stop();
});

// upstream: 30, 30e, 31
test('pushes nothing before the bookmark that ends the initial state', async () => {
  const fixture = reflectorFixture('endless');
  fixture.source.put('a');
  fixture.source.put('b');
  await fixture.start();
  fixture.source.put('a', 7);
  fixture.source.remove('b');
  fixture.source.put('c');
  fixture.source.bookmark();
  await settle();
  assert.equal(fixture.deltas.length, 0);
  assert.equal(fixture.reflector.progress.resourceVersion, '', 'nor does the resourceVersion move');
  fixture.source.emit({ type: 'bookmark', resourceVersion: '15', initialEventsEnd: true });
  await settle();
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a,c@15']);
  const replaced = fixture.deltas.at(0);
  assert.ok(replaced?.type === 'replaced');
  assert.equal(replaced.objects[0]!.spec.value, 7);
  await fixture.stop();
});

// upstream: 30c
test('lists at once if the server rejects streaming, and does not try again for some minutes', async () => {
  const fixture = reflectorFixture('refused');
  await fixture.start();
  assert.deepEqual(
    fixture.source.requests.map(({ verb }) => verb),
    ['watch', 'list', 'watch'],
  );
  fixture.source.watchListMode = 'on';
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(800);
  assert.deepEqual(
    fixture.source.requests.slice(3).map(({ verb }) => verb),
    ['list', 'watch'],
  );
  await fixture.clock.advance(5 * 60_000);
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(3200);
  assert.equal(fixture.source.lists.length, 2, 'streamed again');
  await fixture.stop();
});

test('does not try to stream if the server rejected it for another reflector', async () => {
  const clock = new FakeClock();
  const watchList = new WatchListSupport(clock);
  const first = reflectorFixture('refused', { clock, watchList });
  const second = reflectorFixture('refused', { clock, watchList });
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
  const fixture = reflectorFixture('on', { clock, watchList });
  await fixture.start();
  assert.equal(fixture.source.requests[0]!.verb, 'list');
  await fixture.stop();
});

// upstream: 30b
test('lists at once after another failure and tries streaming again later', async () => {
  const fixture = reflectorFixture('on');
  fixture.source.failNext('watch', apiError('internal', 'oops', 500));
  await fixture.start();
  assert.deepEqual(
    fixture.source.requests.map(({ verb }) => verb),
    ['watch', 'list', 'watch'],
  );
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(800);
  assert.equal(fixture.source.lists.length, 1);
  await fixture.stop();
});

// upstream: 30f
test('delays the stream after 429, without a list', async () => {
  const fixture = reflectorFixture('on');
  fixture.source.failNext('watch', tooManyRequests());
  await fixture.start();
  await fixture.clock.advance(800);
  assert.equal(fixture.source.lists.length, 0);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced @10']);
  await fixture.stop();
});

// upstream: 30h
test('streams the latest state at once if the resourceVersion is lost', async () => {
  const fixture = reflectorFixture('on');
  await fixture.start();
  fixture.source.put('a');
  await settle();
  fixture.source.failNext('watch', expired());
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(800);
  assert.deepEqual(
    fixture.source.watches.map(({ resourceVersion }) => resourceVersion),
    [undefined, '11', undefined],
  );
  assert.equal(fixture.source.lists.length, 0);
  await fixture.stop();
});

// upstream: 29
test('lists after a pause of ten seconds in the stream', async () => {
  const fixture = reflectorFixture('endless');
  fixture.source.put('a');
  await fixture.start();
  await fixture.clock.advance(9000);
  fixture.source.put('b');
  await fixture.clock.advance(9999);
  assert.deepEqual(fixture.deltas, []);
  await fixture.clock.advance(1);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a,b@12']);
  assert.equal(fixture.source.openWatches, 1, 'the stream was closed');
  await fixture.stop();
});

// upstream: 29
test('lists after two minutes of a stream without end', async () => {
  const fixture = reflectorFixture('endless');
  await fixture.start();
  for (let second = 0; second < 120; second++) {
    fixture.source.put('busy', second);
    await fixture.clock.advance(1000);
  }
  assert.equal(fixture.source.lists.length, 1);
  await fixture.stop();
});

// upstream: 30i
test('lists if the server ends the stream without the bookmark', async () => {
  const fixture = reflectorFixture('endless');
  await fixture.start();
  await fixture.clock.advance(5000);
  fixture.source.endWatches();
  await settle();
  assert.equal(fixture.source.lists.length, 1);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced @10']);
  assert.equal(fixture.clock.pending, 1, 'the watchdog of the watch, none of the stream');
  await fixture.stop();
});

test('lists if the stream is cut', async () => {
  const fixture = reflectorFixture('endless');
  await fixture.start();
  fixture.source.resetWatches(unreachable());
  await settle();
  assert.equal(fixture.source.lists.length, 1);
  await fixture.stop();
});

// upstream: 30j
test('pushes nothing if it is aborted before the initial state is complete', async () => {
  const fixture = reflectorFixture('endless');
  fixture.source.put('a');
  await fixture.start();
  await fixture.stop();
  assert.deepEqual(fixture.deltas, []);
  assert.equal(fixture.source.openWatches, 0);
  assert.equal(fixture.clock.pending, 0);
});

// upstream: 27
test('skips a malformed object in the stream', async () => {
  const fixture = reflectorFixture('endless');
  fixture.source.put('a');
  await fixture.start();
  fixture.source.emit({ type: 'added', object: { ...thing('t'), kind: 'Table' as 'Thing' } });
  fixture.source.emit({ type: 'bookmark', resourceVersion: '11', initialEventsEnd: true });
  await settle();
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11']);
  await fixture.stop();
});
