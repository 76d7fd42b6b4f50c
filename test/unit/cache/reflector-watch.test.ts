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
import { brief, reflectorFixture } from './harness.ts';

// upstream: 6, 8
test('pushes changes, deletions and bookmarks in order and advances the resourceVersion', async () => {
  const { source, deltas, reflector, start, stop } = reflectorFixture();
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
    const fixture = reflectorFixture('refused', { random: () => random });
    await fixture.start();
    const { verb: _, signal: __, ...request } = fixture.source.watches.at(-1)!;
    assert.deepEqual(request, {
      resourceVersion: '10',
      allowWatchBookmarks: true,
      timeoutSeconds: seconds,
    });
    await fixture.stop();
  }
});

// upstream: 34f
test('resumes from the last bookmark without a list when the server ends the watch', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  fixture.source.skip(7);
  fixture.source.bookmark();
  await fixture.clock.advance(1000);
  fixture.source.endWatches();
  await settle();
  assert.equal(fixture.source.watches.at(-1)!.resourceVersion, '17');
  assert.equal(fixture.source.openWatches, 1);
  assert.equal(fixture.source.lists.length, 1);
  await fixture.stop();
});

// upstream: 34h
test('resumes a cut connection and receives the changes meanwhile', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  await fixture.clock.advance(60_000);
  fixture.source.resetWatches();
  fixture.source.put('a');
  await settle();
  assert.deepEqual(fixture.deltas.map(brief), ['replaced @10', 'changed a@11']);
  assert.equal(fixture.source.lists.length, 1);
  assert.deepEqual(fixture.shown(), []);
  await fixture.stop();
});

// upstream: 10
test('waits while the server rejects watches, then lists', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  await fixture.clock.advance(60_000);
  fixture.source.failNext('watch', unreachable(), 2);
  fixture.source.endWatches();
  fixture.source.put('a');
  await fixture.clock.advance(800 + 1600);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced @10', 'changed a@11']);
  assert.deepEqual(fixture.shown(), ['Failed to watch', 'Recovered']);
  fixture.source.failNext('watch', unreachable(), 1);
  fixture.source.endWatches();
  await fixture.clock.advance(3200);
  assert.deepEqual(fixture.deltas.map(brief).slice(2), ['replaced a@11']);
  await fixture.stop();
});

test('resets the backoff after two minutes of a watch', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  fixture.source.emit({ type: 'error', error: tooManyRequests() });
  fixture.source.failNext('watch', unreachable(), 3);
  await fixture.clock.advance(60_000);
  assert.equal(fixture.reflector.progress.phase, 'watching');
  await fixture.clock.advance(80_000);
  fixture.source.failNext('watch', unreachable());
  fixture.source.endWatches();
  await settle();
  assert.equal(fixture.clock.untilNext, 800);
  await fixture.stop();
});

// upstream: 13
test('sends one list and five watches for four times 429', async () => {
  const fixture = reflectorFixture();
  fixture.source.failNext('watch', apiError('invalid', 'no streaming', 422));
  fixture.source.failNext('watch', tooManyRequests(), 4);
  await fixture.start();
  await fixture.clock.advance(800 + 1600 + 3200 + 6400);
  assert.equal(fixture.source.watches.filter((watch) => watch.resourceVersion === '10').length, 5);
  assert.equal(fixture.source.lists.length, 1);
  await fixture.stop();
});

test('waits for a Retry-After that is longer than the delay', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  await fixture.clock.advance(60_000);
  fixture.source.failNext('watch', tooManyRequests(20_000));
  fixture.source.endWatches();
  await fixture.clock.advance(19_999);
  assert.equal(fixture.source.openWatches, 0);
  await fixture.clock.advance(1);
  assert.equal(fixture.source.openWatches, 1);
  await fixture.stop();
});

// upstream: 34k
test('resumes after a delay if 429 arrives in the stream', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  fixture.source.emit({ type: 'error', error: tooManyRequests() });
  await settle();
  assert.equal(fixture.reflector.progress.phase, 'waiting');
  assert.equal(fixture.source.openWatches, 0, 'an error ends the watch');
  await fixture.clock.advance(800);
  assert.equal(fixture.source.openWatches, 1);
  assert.equal(fixture.source.lists.length, 1);
  await fixture.stop();
});

// upstream: 34i
test('relists not older than the last resourceVersion after 410 in the stream, without a line at -v=0', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  fixture.source.put('a');
  await settle();
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(0);
  assert.deepEqual(
    fixture.source.lists.map(({ resourceVersion }) => resourceVersion),
    ['0', '11'],
  );
  assert.deepEqual(fixture.shown(), []);
  await fixture.stop();
});

for (const request of ['watch', 'list'] as const) {
  // upstream: 34i
  test(`backs off while each ${request} after an expiry expires too`, async () => {
    const fixture = reflectorFixture();
    await fixture.start();
    await fixture.clock.advance(60_000);
    fixture.source.failNext(request, expired(), 1000);
    const before = fixture.source.lists.length;
    fixture.source.emit({ type: 'error', error: expired() });
    await fixture.clock.advance(60_000);
    // After 0, 0.8, 1.6, 3.2, 6.4, 12.8 and 25.6 s. An expired list is followed by a quorum read.
    const lists = fixture.source.lists.length - before;
    assert.ok(lists >= 7 && lists <= 16, `${lists} lists`);
    await fixture.stop();
  });
}

// upstream: 34i
test('relists after the history was compacted', async () => {
  const fixture = reflectorFixture();
  fixture.source.put('a');
  await fixture.start();
  await fixture.clock.advance(60_000);
  fixture.source.isStalled = true;
  fixture.source.remove('a');
  fixture.source.put('b');
  fixture.source.isStalled = false;
  fixture.source.compact();
  fixture.source.endWatches();
  await fixture.clock.advance(2000);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11', 'replaced b@13']);
  await fixture.stop();
});

// upstream: 34i
test('waits only once if an outage lasts longer than the history of the server', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  await fixture.clock.advance(60_000);
  fixture.source.failNext('list', unreachable(), 8);
  fixture.source.endWatches();
  await settle();
  await fixture.clock.advance(800 + 1600 + 3200 + 6400 + 12_800 + 25_600 + 30_000);
  fixture.source.put('a');
  fixture.source.compact();
  assert.equal(fixture.clock.untilNext, 30_000);
  await fixture.clock.advance(30_000);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced @10', 'replaced a@11']);
  await fixture.stop();
});

// upstream: 14, 34l
test('relists and logs after any other error in the stream', async () => {
  const fixture = reflectorFixture();
  fixture.source.put('a');
  await fixture.start();
  fixture.source.emit({ type: 'error', error: apiError('internal', 'object is corrupt', 500) });
  await fixture.clock.advance(800);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11', 'replaced a@11']);
  assert.deepEqual(fixture.shown(), ['Failed to watch']);
  await fixture.stop();
});

// upstream: 34e
test('uses a quorum read if the server rejects a watch from a future resourceVersion', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  await fixture.clock.advance(60_000);
  fixture.source.failNext('watch', tooLarge());
  fixture.source.endWatches();
  await fixture.clock.advance(800);
  assert.equal(fixture.source.lists.at(-1)!.resourceVersion, undefined);
  await fixture.stop();
});

// upstream: 34g
test('relists with growing delays and one line if watches end at once without an event', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  while (fixture.clock.monotonic() < 60_000) {
    fixture.source.endWatches();
    await settle();
    await fixture.clock.advance(fixture.clock.untilNext!);
  }
  assert.equal(fixture.source.lists.length, 8, 'after 0.8, 1.6, 3.2, 6.4, 12.8, 25.6 and 30 s');
  assert.deepEqual(fixture.shown(), ['Failed to watch']);
  await fixture.stop();
});

// upstream: 6
test('skips an object without a name and keeps the resourceVersion', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  const broken = thing('x', 0, '99');
  Reflect.deleteProperty(broken.metadata, 'name');
  fixture.source.emit({ type: 'modified', object: broken });
  fixture.source.emit({ type: 'added', object: { ...thing('t'), kind: 'Table' as 'Thing' } });
  fixture.source.put('a');
  await settle();
  assert.deepEqual(fixture.deltas.map(brief), ['replaced @10', 'changed a@11']);
  await fixture.stop();
});

// upstream: 31
test('does not advance the resourceVersion by unordered additions', async () => {
  const fixture = reflectorFixture();
  fixture.source.put('a');
  fixture.source.put('b');
  const { signal } = new AbortController();
  const { reflector } = fixture;
  const watching = await reflector.step({ phase: 'opening', resourceVersion: '' }, signal);
  const reading = reflector.step(watching, signal);
  await settle();
  assert.deepEqual(fixture.deltas.map(brief), ['changed a@11', 'changed b@12']);
  assert.ok(fixture.deltas.every((delta) => delta.type === 'changed' && delta.unordered));
  assert.equal(fixture.reflector.progress.resourceVersion, '');
  fixture.source.put('a');
  await settle();
  assert.equal(fixture.reflector.progress.resourceVersion, '13');
  fixture.source.put('c');
  await settle();
  assert.equal(
    fixture.deltas.at(-1)!.type === 'changed' && 'unordered' in fixture.deltas.at(-1)!,
    false,
  );
  fixture.source.endWatches();
  assert.deepEqual(await reading, {
    phase: 'verifying',
    resourceVersion: '14',
    absentSinceMs: fixture.clock.monotonic(),
  });
});

test('does not resume a watch without a start resourceVersion, which would miss deletions', async () => {
  const fixture = reflectorFixture();
  fixture.source.put('a');
  const { signal } = new AbortController();
  const { reflector } = fixture;
  const watching = await reflector.step({ phase: 'opening', resourceVersion: '0' }, signal);
  const reading = reflector.step(watching, signal);
  await settle();
  fixture.source.endWatches();
  assert.deepEqual(await reading, { phase: 'streaming', freshness: 'any' });
});

test('re-establishes a stalled watch after 90 seconds from the last resourceVersion', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  fixture.source.isStalled = true;
  fixture.source.put('a');
  await fixture.clock.advance(89_999);
  assert.equal(fixture.deltas.length, 1);
  fixture.source.isStalled = false;
  await fixture.clock.advance(1);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced @10', 'changed a@11']);
  assert.equal(fixture.source.lists.length, 1);
  assert.equal(fixture.reflector.progress.stalls, 1);
  assert.equal(fixture.source.openWatches, 1);
  await fixture.stop();
});

test('keeps a watch without changes that sends a bookmark a minute', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  for (let minute = 0; minute < 10; minute++) {
    await fixture.clock.advance(60_000);
    fixture.source.bookmark();
    await settle();
  }
  assert.equal(fixture.reflector.progress.stalls, 0);
  assert.equal(fixture.source.watches.length, 2, 'the refused stream, and the watch');
  await fixture.stop();
});

test('uses the configured stall timeout', async () => {
  const fixture = reflectorFixture('refused', {}, { stallMs: 500 });
  await fixture.start();
  await fixture.clock.advance(500);
  assert.equal(fixture.reflector.progress.stalls, 1);
  assert.equal(fixture.source.openWatches, 1, 'a stalled watch does not count as very short');
  await fixture.stop();
});

// upstream: 4
test('opens no watch after the abort', async () => {
  const fixture = reflectorFixture();
  await fixture.stop();
  const stopped = AbortSignal.abort();
  await fixture.reflector.run(stopped);
  assert.deepEqual(fixture.source.requests, []);
});

// upstream: 2, 7
test('closes the open watch on abort and ends without an error', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  assert.equal(fixture.source.openWatches, 1);
  await fixture.stop();
  assert.equal(fixture.source.openWatches, 0);
  assert.equal(fixture.clock.pending, 0);
  assert.deepEqual(fixture.shown(), []);
});

test('reads the next event only when the sink accepts it', async () => {
  const room = new Deferred();
  const pushed: string[] = [];
  const fixture = reflectorFixture('refused', {
    sink: {
      push(delta) {
        pushed.push(brief(delta));
        return delta.type === 'changed' ? room.promise : undefined;
      },
    },
  });
  await fixture.start();
  fixture.source.put('a');
  fixture.source.put('b');
  await settle();
  assert.deepEqual(pushed, ['replaced @10', 'changed a@11']);
  room.resolve();
  await settle();
  assert.deepEqual(pushed.at(-1), 'changed b@12');
  await fixture.stop();
});

// upstream: 68
test('records the time of each kind of activity in its progress', async () => {
  const fixture = reflectorFixture();
  const { progress } = fixture.reflector;
  assert.equal(progress.phase, 'idle');
  await fixture.start();
  assert.equal(progress.phase, 'watching');
  assert.equal(progress.lastListMs, 0);
  await fixture.clock.advance(1000);
  fixture.source.put('a');
  await fixture.clock.advance(1000);
  fixture.source.bookmark();
  await fixture.clock.advance(500);
  assert.equal(progress.lastEventMs, 1000);
  assert.equal(progress.lastBookmarkMs, 2000);
  assert.equal(progress.lastByteMs, 2000);
  assert.equal(progress.inactiveMs, 500);
  fixture.source.failNext('watch', unreachable());
  fixture.source.endWatches();
  await settle();
  assert.equal(progress.phase, 'waiting');
  assert.match(progress.reason!, /ECONNREFUSED/);
  assert.equal(progress.sinceMs, 2500);
  assert.ok(progress.lastError instanceof Error);
  await fixture.clock.advance(800);
  assert.equal(progress.lastError, undefined);
  await fixture.stop();
  assert.equal(progress.phase, 'idle');
});
