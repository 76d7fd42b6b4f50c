import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import type { Delta } from '../../../src/cache/delta-queue.ts';
import { noInformerMetrics } from '../../../src/metrics/no-metrics.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { apiError, expired, notFound, tooLarge, unreachable } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';
import { brief, reflectorFixture } from './harness.ts';
import type { ReflectorFixture } from './harness.ts';

const signal = new AbortController().signal;

/** resourceVersion and limit of each list. */
function listed({ source }: ReflectorFixture): [string | undefined, number | undefined][] {
  return source.lists.map(({ resourceVersion, limit }) => [resourceVersion, limit]);
}

// upstream: 8, 16, 47
test('lists at any resourceVersion in pages of 500 first, then watches from there', async () => {
  const fixture = reflectorFixture();
  fixture.source.put('a');
  await fixture.start();
  assert.deepEqual(listed(fixture), [['0', 500]]);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11']);
  const watch = fixture.source.watches.at(-1)!;
  assert.equal(watch.resourceVersion, '11');
  await fixture.stop();
});

// upstream: 17
test('relists not older than the last resourceVersion, in one page', async () => {
  const fixture = reflectorFixture();
  const next = await fixture.reflector.step(
    { phase: 'listing', freshness: { atLeast: '10' } },
    signal,
  );
  assert.deepEqual(listed(fixture), [['10', undefined]]);
  assert.deepEqual(next, { phase: 'opening', resourceVersion: '10' });
});

test('waits before it lists again after an error that does not concern the resourceVersion', async () => {
  for (const error of [unreachable(), apiError('forbidden', 'no', 403)]) {
    const { source, reflector } = reflectorFixture();
    source.failNext('list', error);
    const next = await reflector.step({ phase: 'listing', freshness: { atLeast: '10' } }, signal);
    assert.deepEqual([next.phase, next.phase === 'waiting' && next.delayMs], ['waiting', 800]);
  }
});

test('measures the time and the number of objects of a list', async () => {
  const lists: number[][] = [];
  const metrics = { ...noInformerMetrics, listed: (...list: number[]) => void lists.push(list) };
  const fixture = reflectorFixture('refused', { metrics });
  fixture.source.put('a');
  fixture.source.put('b');
  await fixture.start();
  assert.deepEqual(lists, [[0, 2]]);
  await fixture.stop();
});

// upstream: 18
test('uses pages after the server’s watch cache returned pages', async () => {
  const fixture = reflectorFixture();
  for (let at = 0; at < 501; at++) fixture.source.put(`thing-${at}`);
  await fixture.reflector.step({ phase: 'listing', freshness: 'any' }, signal);
  await fixture.reflector.step({ phase: 'listing', freshness: { atLeast: '511' } }, signal);
  assert.deepEqual(listed(fixture), [
    ['0', 500],
    [undefined, 500],
    ['511', 500],
    [undefined, 500],
  ]);
});

for (const [name, error] of [
  ['expired', expired()],
  ['gone', apiError('gone', 'gone', 410)],
  ['too large, with a cause', tooLarge()],
  [
    'too large, in the words of a cause',
    new ApiError({
      kind: 'timeout',
      message: 'timed out',
      details: { causes: [{ message: 'Too large resource version' }] },
    }),
  ],
  ['too large, in words', apiError('timeout', 'Too large resource version', 504)],
] as const) {
  test(`uses a quorum read at once if the resourceVersion is ${name}`, async () => {
    const fixture = reflectorFixture();
    fixture.source.skip(10);
    fixture.source.failNext('list', error);
    const retry = await fixture.reflector.step(
      { phase: 'listing', freshness: { atLeast: '20' } },
      signal,
    );
    const next = await fixture.reflector.step(retry, signal);
    assert.deepEqual(listed(fixture), [
      ['20', undefined],
      [undefined, 500],
    ]);
    assert.deepEqual(next, { phase: 'opening', resourceVersion: '20' });
  });
}

test('retries a quorum read with the same failure after a delay', async () => {
  const { reflector, source } = reflectorFixture();
  source.failNext('list', expired(), 2);
  await reflector.step({ phase: 'listing', freshness: 'latest' }, signal);
  const next = await reflector.step({ phase: 'listing', freshness: 'latest' }, signal);
  assert.deepEqual(next, {
    phase: 'waiting',
    delayMs: 800,
    reason: 'The resourceVersion is too old',
    next: { phase: 'streaming', freshness: 'latest' },
  });
});

test('relists without a quorum read after one succeeded', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  fixture.source.failNext('list', expired());
  fixture.source.put('a');
  await settle();
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(1000);
  fixture.source.put('b');
  await settle();
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(2000);
  assert.deepEqual(listed(fixture), [
    ['0', 500],
    ['11', undefined],
    [undefined, 500],
    ['12', undefined],
  ]);
  await fixture.stop();
});

test('lists everything at the first resourceVersion after a continue token expired', async () => {
  const fixture = reflectorFixture();
  for (let at = 0; at < 501; at++) fixture.source.put(`thing-${at}`);
  fixture.source.failNext('continue', expired());
  await fixture.reflector.step({ phase: 'listing', freshness: 'any' }, signal);
  assert.deepEqual(listed(fixture), [
    ['0', 500],
    [undefined, 500],
    ['0', undefined],
  ]);
  assert.equal(fixture.deltas.length, 1);
});

// upstream: 9
test('leaves the cache unchanged after failed lists and watches', async () => {
  const fixture = reflectorFixture();
  fixture.source.put('a');
  fixture.source.failNext('list', apiError('internal', 'etcd is unavailable', 500), 2);
  await fixture.start();
  await fixture.clock.advance(10_000);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11']);
  assert.equal(fixture.source.openWatches, 1);
  await fixture.stop();
});

// upstream: 34a
test('retries with growing delays while the server is absent, and logs two lines', async () => {
  const fixture = reflectorFixture();
  fixture.source.failNext('list', unreachable(), 4);
  await fixture.start();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    assert.equal(fixture.reflector.progress.phase, 'waiting');
    waits.push(fixture.clock.untilNext!);
    await fixture.clock.advance(fixture.clock.untilNext!);
  }
  assert.deepEqual(waits, [800, 1600, 3200, 6400]);
  await fixture.clock.advance(1000);
  assert.equal(fixture.source.lists.length, 5);
  assert.deepEqual(fixture.shown(), ['Failed to list', 'Recovered']);
  await fixture.stop();
});

test('cancels a list without a response after two minutes', async () => {
  const fixture = reflectorFixture();
  fixture.source.listsHang = true;
  await fixture.start();
  await fixture.clock.advance(119_999);
  assert.equal(fixture.reflector.progress.phase, 'listing');
  await fixture.clock.advance(1);
  assert.equal(fixture.reflector.progress.phase, 'waiting');
  assert.match(fixture.reflector.progress.reason!, /no answer within 120 s/);
  await fixture.stop();
});

test('abandons a list in flight on abort', async () => {
  const fixture = reflectorFixture();
  fixture.source.listsHang = true;
  await fixture.start();
  await fixture.stop();
  assert.deepEqual(fixture.deltas, []);
  assert.equal(fixture.clock.pending, 0);
});

test('ends a delay on abort', async () => {
  const fixture = reflectorFixture();
  fixture.source.failNext('list', unreachable());
  await fixture.start();
  await fixture.stop();
  assert.equal(fixture.source.lists.length, 1);
  assert.equal(fixture.clock.pending, 0);
});

// upstream: 46
test('skips malformed objects of a list', async () => {
  const fixture = reflectorFixture();
  fixture.source.put('a');
  const broken: unknown[] = [null, 7, { kind: 'Thing' }, { metadata: { name: 3 } }];
  const source = {
    list: async () => {
      const list = await fixture.source.list({});
      return { ...list, items: [...(broken as typeof list.items), ...list.items] };
    },
    watch: fixture.source.watch.bind(fixture.source),
  };
  const other = reflectorFixture('refused', { source });
  await other.start();
  assert.deepEqual(other.deltas.map(brief), ['replaced a@11']);
  assert.equal(other.shown().length, 4);
  await other.stop();
});

test('waits for a resource that is not served, with one line', async () => {
  const fixture = reflectorFixture();
  fixture.source.missing = true;
  await fixture.start();
  await fixture.clock.advance(4 * 60_000);
  assert.equal(fixture.reflector.progress.missing, true);
  assert.deepEqual(fixture.deltas, []);
  assert.deepEqual(fixture.shown(), [
    'The server does not have the resource; waiting for it to appear',
  ]);
  fixture.source.missing = false;
  fixture.source.put('a');
  await fixture.clock.advance(5000);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11']);
  assert.equal(fixture.reflector.progress.missing, false);
  await fixture.clock.advance(1000);
  assert.deepEqual(fixture.shown().slice(1), ['Recovered']);
  await fixture.stop();
});

test('removes the objects of a resource that disappears and lists it when it returns', async () => {
  const fixture = reflectorFixture();
  fixture.source.put('a');
  await fixture.start();
  fixture.source.missing = true;
  fixture.source.endWatches();
  await fixture.clock.advance(5000);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11', 'replaced @11']);
  await fixture.clock.advance(60_000);
  assert.equal(fixture.deltas.length, 2, 'pushed once');
  fixture.source.missing = false;
  fixture.source.restore(5, []);
  fixture.source.put('b');
  await fixture.clock.advance(6000);
  assert.deepEqual(fixture.deltas.slice(2).map(brief), ['replaced b@6']);
  assert.equal(
    fixture.source.lists.at(-1)!.resourceVersion,
    undefined,
    'no old version was asked for',
  );
  await fixture.stop();
});

// upstream: 34e
test('does not treat a single 404 of a watch as a missing resource', async () => {
  const fixture = reflectorFixture();
  fixture.source.put('a');
  await fixture.start();
  await fixture.clock.advance(60_000);
  fixture.source.failNext('watch', notFound());
  fixture.source.endWatches();
  await fixture.clock.advance(5000);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11', 'replaced a@11']);
  await fixture.stop();
});

test('starts no watch while the sink blocks the producer', async () => {
  const room = new Deferred();
  const deltas: string[] = [];
  const sink = {
    push(delta: Delta<Thing>) {
      deltas.push(delta.type);
      return delta.type === 'replaced' ? room.promise : undefined;
    },
  };
  const fixture = reflectorFixture('refused', { sink });
  fixture.source.put('a');
  await fixture.start();
  await fixture.clock.advance(5000);
  assert.deepEqual(deltas, ['replaced']);
  assert.equal(fixture.source.openWatches, 0);
  room.resolve();
  await settle();
  assert.equal(fixture.source.openWatches, 1);
  await fixture.stop();
});

test('rejects an invalid page size', () => {
  for (const pageSize of [0, -1, 1.5, Number.NaN]) {
    assert.throws(() => reflectorFixture('refused', {}, { pageSize }), {
      name: 'RangeError',
      message: `pageSize: expected 1 or more objects, got ${pageSize}`,
    });
  }
});
