import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noInformerMetrics } from '../../../src/metrics/no-metrics.ts';
import type { InformerState } from '../../../src/metrics/reflector-metrics.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { expired } from '../../support/fake-source.ts';
import { informerFixture, recordingHandler } from './harness.ts';

// upstream: 64
test('resyncs each handler at its own interval', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  const books = [0, 2000, 3000].map((resyncPeriodMs) => {
    const { notes, handler } = recordingHandler();
    fixture.informer.addHandler(handler, { resyncPeriodMs });
    return notes;
  });
  await fixture.start();
  const resyncs = () => books.map((notes) => notes.filter((note) => note === '~a=1→1').length);
  const seen: number[][] = [];
  for (let second = 1; second <= 6; second++) {
    await fixture.clock.advance(1000);
    seen.push(resyncs());
  }
  assert.deepEqual(seen, [
    [0, 0, 0],
    [0, 1, 0],
    [0, 1, 1],
    [0, 2, 1],
    [0, 2, 1],
    [0, 3, 2],
  ]);
  await fixture.stop();
  assert.equal(fixture.clock.pending, 0);
});

// upstream: 67
test('does not deliver unchanged objects after a relist', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler, { resyncPeriodMs: 60_000 });
  await fixture.start();
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(10_000);
  assert.deepEqual(notes, ['+a=1!']);
  await fixture.stop();
});

test('resyncs a handler that was added late and not one that was removed', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  await fixture.start();
  const { notes, handler } = recordingHandler();
  const registration = fixture.informer.addHandler(handler, { resyncPeriodMs: 5000 });
  await fixture.clock.advance(5000);
  assert.deepEqual(notes, ['+a=1!', '~a=1→1']);
  registration.remove();
  assert.equal(fixture.clock.pending, 1, 'the watchdog, no timer of a resync');
  await fixture.clock.advance(20_000);
  assert.equal(notes.length, 2);
  await fixture.stop();
});

test('does not resync before the initial state', async () => {
  const fixture = informerFixture();
  fixture.source.missing = true;
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler, { resyncPeriodMs: 1000 });
  await fixture.start();
  await fixture.clock.advance(10_000);
  fixture.source.put('a', 1);
  fixture.source.missing = false;
  await fixture.clock.advance(6000);
  assert.equal(notes[0], '+a=1!');
  await fixture.stop();
});

// upstream: 47, 64
test('merges resyncs that become due while handlers are busy', async () => {
  let gate: Deferred | undefined;
  const fixture = informerFixture({ yieldTurn: () => gate?.promise ?? Promise.resolve() });
  for (let at = 0; at < 1500; at++) fixture.source.put(`thing-${at}`);
  let updates = 0;
  fixture.informer.addHandler({ onUpdate: () => void updates++ }, { resyncPeriodMs: 1000 });
  await fixture.start();
  gate = new Deferred();
  await fixture.clock.advance(5500);
  assert.ok(updates > 0 && updates < 1500, 'the first resync is held up');
  gate.resolve();
  gate = undefined;
  await settle();
  assert.equal(updates, 3000, 'that one, and one for all that fell due meanwhile');
  await fixture.stop();
});

// upstream: 65
test('raises an interval below a second to a second and rejects a negative one', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler, { resyncPeriodMs: 1 });
  await fixture.start();
  await fixture.clock.advance(999);
  assert.equal(notes.length, 1);
  await fixture.clock.advance(1);
  await settle();
  assert.equal(notes.length, 2);
  assert.throws(() => fixture.informer.addHandler({}, { resyncPeriodMs: -1 }), /^RangeError/);
  assert.throws(() => fixture.informer.addHandler({}, { resyncPeriodMs: Number.NaN }), RangeError);
  await fixture.stop();
});

test('queues at most one resync while handlers are busy', async () => {
  let gate: Deferred | undefined;
  let state: InformerState | undefined;
  const fixture = informerFixture({
    yieldTurn: () => gate?.promise ?? Promise.resolve(),
    metrics: {
      informer: (_labels, its) => {
        state = its;
        return noInformerMetrics;
      },
    },
  });
  for (let at = 0; at < 1500; at++) fixture.source.put(`thing-${at}`);
  fixture.informer.addHandler({}, { resyncPeriodMs: 1000 });
  await fixture.start();
  gate = new Deferred();
  await fixture.clock.advance(10_500);
  assert.equal(state?.queued, 1);
  gate.resolve();
  gate = undefined;
  await settle();
  assert.equal(state?.queued, 0);
  await fixture.stop();
});
