import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import type { Delta } from '../../../src/cache/delta-queue.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { apiError, expired, notFound, tooLarge, unreachable } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';
import { brief, reflectorWorld } from './harness.ts';
import type { ReflectorWorld } from './harness.ts';

const signal = new AbortController().signal;

/** resourceVersion and limit of each list. */
function listed({ source }: ReflectorWorld): [string | undefined, number | undefined][] {
  return source.lists.map(({ resourceVersion, limit }) => [resourceVersion, limit]);
}

// upstream: 8, 16, 47
test('lists at any resourceVersion in pages of 500 first, then watches from there', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  await world.start();
  assert.deepEqual(listed(world), [['0', 500]]);
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11']);
  const watch = world.source.watches.at(-1)!;
  assert.equal(watch.resourceVersion, '11');
  await world.stop();
});

// upstream: 17
test('relists not older than the last resourceVersion, in one page', async () => {
  const world = reflectorWorld();
  const next = await world.reflector.step(
    { phase: 'listing', freshness: { atLeast: '10' } },
    signal,
  );
  assert.deepEqual(listed(world), [['10', undefined]]);
  assert.deepEqual(next, { phase: 'watching', resourceVersion: '10' });
});

// upstream: 18
test('uses pages after the server’s watch cache returned pages', async () => {
  const world = reflectorWorld();
  for (let at = 0; at < 501; at++) world.source.put(`thing-${at}`);
  await world.reflector.step({ phase: 'listing', freshness: 'any' }, signal);
  await world.reflector.step({ phase: 'listing', freshness: { atLeast: '511' } }, signal);
  assert.deepEqual(listed(world), [
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
    const world = reflectorWorld();
    world.source.skip(10);
    world.source.failNext('list', error);
    const retry = await world.reflector.step(
      { phase: 'listing', freshness: { atLeast: '20' } },
      signal,
    );
    const next = await world.reflector.step(retry, signal);
    assert.deepEqual(listed(world), [
      ['20', undefined],
      [undefined, 500],
    ]);
    assert.deepEqual(next, { phase: 'watching', resourceVersion: '20' });
  });
}

test('retries a quorum read with the same failure after a delay', async () => {
  const { reflector, source } = reflectorWorld();
  source.failNext('list', expired());
  const next = await reflector.step({ phase: 'listing', freshness: 'latest' }, signal);
  assert.deepEqual(next, {
    phase: 'waiting',
    delayMs: 800,
    reason: 'The resourceVersion is too old',
    next: { phase: 'streaming', freshness: 'latest' },
  });
});

test('relists without a quorum read after one succeeded', async () => {
  const world = reflectorWorld();
  await world.start();
  world.source.failNext('list', expired());
  world.source.put('a');
  await settle();
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(1000);
  world.source.put('b');
  await settle();
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(2000);
  assert.deepEqual(listed(world), [
    ['0', 500],
    ['11', undefined],
    [undefined, 500],
    ['12', undefined],
  ]);
  await world.stop();
});

test('lists everything at the first resourceVersion after a continue token expired', async () => {
  const world = reflectorWorld();
  for (let at = 0; at < 501; at++) world.source.put(`thing-${at}`);
  world.source.failNext('continue', expired());
  await world.reflector.step({ phase: 'listing', freshness: 'any' }, signal);
  assert.deepEqual(listed(world), [
    ['0', 500],
    [undefined, 500],
    ['0', undefined],
  ]);
  assert.equal(world.deltas.length, 1);
});

// upstream: 9
test('leaves the cache unchanged after failed lists and watches', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  world.source.failNext('list', apiError('internal', 'etcd is sick', 500), 2);
  await world.start();
  await world.clock.advance(10_000);
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11']);
  assert.equal(world.source.openWatches, 1);
  await world.stop();
});

// upstream: 34a
test('retries with growing delays while the server is absent, and logs two lines', async () => {
  const world = reflectorWorld();
  world.source.failNext('list', unreachable(), 4);
  await world.start();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    assert.equal(world.reflector.progress.phase, 'waiting');
    waits.push(world.clock.untilNext!);
    await world.clock.advance(world.clock.untilNext!);
  }
  assert.deepEqual(waits, [800, 1600, 3200, 6400]);
  await world.clock.advance(1000);
  assert.equal(world.source.lists.length, 5);
  assert.deepEqual(world.shown(), ['Failed to list', 'Recovered']);
  await world.stop();
});

test('gives up a list without an answer after two minutes', async () => {
  const world = reflectorWorld();
  world.source.listsHang = true;
  await world.start();
  await world.clock.advance(119_999);
  assert.equal(world.reflector.progress.phase, 'listing');
  await world.clock.advance(1);
  assert.equal(world.reflector.progress.phase, 'waiting');
  assert.match(world.reflector.progress.reason!, /no answer within 120 s/);
  await world.stop();
});

test('abandons a list in flight on abort', async () => {
  const world = reflectorWorld();
  world.source.listsHang = true;
  await world.start();
  await world.stop();
  assert.deepEqual(world.deltas, []);
  assert.equal(world.clock.pending, 0);
});

test('ends a delay on abort', async () => {
  const world = reflectorWorld();
  world.source.failNext('list', unreachable());
  await world.start();
  await world.stop();
  assert.equal(world.source.lists.length, 1);
  assert.equal(world.clock.pending, 0);
});

// upstream: 46
test('skips malformed objects of a list', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  const broken: unknown[] = [null, 7, { kind: 'Thing' }, { metadata: { name: 3 } }];
  const source = {
    list: async () => {
      const list = await world.source.list({});
      return { ...list, items: [...(broken as typeof list.items), ...list.items] };
    },
    watch: world.source.watch.bind(world.source),
  };
  const other = reflectorWorld('refused', { source });
  await other.start();
  assert.deepEqual(other.deltas.map(brief), ['replaced a@11']);
  assert.equal(other.shown().length, 4);
  await other.stop();
});

test('waits for a resource that is not served, with one line', async () => {
  const world = reflectorWorld();
  world.source.missing = true;
  await world.start();
  await world.clock.advance(4 * 60_000);
  assert.equal(world.reflector.progress.missing, true);
  assert.deepEqual(world.deltas, []);
  assert.deepEqual(world.shown(), [
    'The server does not have the resource; waiting for it to appear',
  ]);
  world.source.missing = false;
  world.source.put('a');
  await world.clock.advance(5000);
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11']);
  assert.equal(world.reflector.progress.missing, false);
  await world.clock.advance(1000);
  assert.deepEqual(world.shown().slice(1), ['Recovered']);
  await world.stop();
});

test('removes the objects of a resource that disappears and lists it when it returns', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  await world.start();
  world.source.missing = true;
  world.source.endWatches();
  await world.clock.advance(5000);
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11', 'replaced @11']);
  await world.clock.advance(60_000);
  assert.equal(world.deltas.length, 2, 'pushed once');
  world.source.missing = false;
  world.source.restore(5, []);
  world.source.put('b');
  await world.clock.advance(6000);
  assert.deepEqual(world.deltas.slice(2).map(brief), ['replaced b@6']);
  assert.equal(
    world.source.lists.at(-1)!.resourceVersion,
    undefined,
    'no old version was asked for',
  );
  await world.stop();
});

// upstream: 34e
test('does not take one 404 of a watch for the end of the resource', async () => {
  const world = reflectorWorld();
  world.source.put('a');
  await world.start();
  await world.clock.advance(60_000);
  world.source.failNext('watch', notFound());
  world.source.endWatches();
  await world.clock.advance(5000);
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11', 'replaced a@11']);
  await world.stop();
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
  const world = reflectorWorld('refused', { sink });
  world.source.put('a');
  await world.start();
  await world.clock.advance(5000);
  assert.deepEqual(deltas, ['replaced']);
  assert.equal(world.source.openWatches, 0);
  room.resolve();
  await settle();
  assert.equal(world.source.openWatches, 1);
  await world.stop();
});

test('rejects an invalid page size', () => {
  for (const pageSize of [0, -1, 1.5, Number.NaN]) {
    assert.throws(() => reflectorWorld('refused', {}, { pageSize }), {
      name: 'RangeError',
      message: `pageSize: expected 1 or more objects, got ${pageSize}`,
    });
  }
});
