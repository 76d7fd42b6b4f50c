import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventHandler } from '../../../src/cache/event-handler.ts';
import type { InformerOptions } from '../../../src/cache/informer.ts';
import { noInformerMetrics } from '../../../src/metrics/no-metrics.ts';
import type { InformerState, ReflectorMetrics } from '../../../src/metrics/reflector-metrics.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { expired, thing } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';
import { informerFixture, recordingHandler } from './harness.ts';
import type { InformerFixture } from './harness.ts';

/** More than one time slice. */
const COUNT = 1100;
const many = (name: string) => Array.from({ length: COUNT }, (_, at) => thing(`${name}-${at}`));

/**
 * Informer that is blocked during its initial state: handlers have received `a` and `b`, not the last
 * filler. Later deltas stay queued until `release`.
 */
async function blocked(
  more: EventHandler<Thing> = {},
  resyncPeriodMs = 0,
  options: InformerOptions<Thing> = {},
) {
  let gate: Deferred | undefined = new Deferred();
  const yieldTurn = () => gate?.promise ?? Promise.resolve();
  const fixture = informerFixture({ ...options, yieldTurn, freeze: false }, 'refused');
  const { source, clock, informer } = fixture;
  source.restore(10, [thing('a', 1), thing('b', 1), ...many('filler')]);
  const { notes, handler } = recordingHandler();
  const registration = informer.addHandler(handler, { resyncPeriodMs });
  informer.addHandler(more);
  await fixture.start();
  /** Events that are delivered from now on, without fillers. */
  const received = () => notes.splice(0).filter((note) => !note.includes('filler'));
  assert.deepEqual(received(), ['+a=1!', '+b=1!']);
  const release = async () => {
    gate?.resolve();
    gate = undefined;
    await settle();
  };
  /** Ends the watch; a relist returns the state after `meanwhile`. */
  const relist = async (meanwhile: () => void) => {
    await settle();
    source.emit({ type: 'error', error: expired() });
    source.compact();
    meanwhile();
    await clock.advance(2000);
    assert.equal(source.openWatches, 1);
  };
  return { ...fixture, notes, received, registration, release, relist };
}

// upstream: 42, 74
test('has not synced before handlers have received all initial objects', async () => {
  const { informer, registration, release, stop } = await blocked();
  assert.equal(informer.lister.size, COUNT + 2);
  assert.deepEqual([informer.hasSynced, registration.hasSynced], [false, false]);
  await release();
  assert.deepEqual([informer.hasSynced, registration.hasSynced], [true, true]);
  await stop();
});

// upstream: 38, 43
test('delivers every queued change in order', async () => {
  const { source, received, release, stop } = await blocked();
  source.put('x', 1);
  source.put('y', 1);
  source.put('x', 2);
  source.remove('x');
  source.put('x', 3);
  source.put('y', 2);
  await settle();
  assert.deepEqual(received(), []);
  await release();
  assert.deepEqual(received(), ['+x=1', '+y=1', '~x=1→2', '-x', '+x=3', '~y=1→2']);
  await stop();
});

// upstream: 36
test('delivers a queued deletion before the addition by a relist', async () => {
  const { source, received, release, relist, stop } = await blocked();
  source.remove('a');
  await relist(() => source.put('a', 2));
  await release();
  assert.deepEqual(received(), ['-a', '+a=2']);
  await stop();
});

// upstream: 37
test('delivers an object that was added and deleted while queued, with its newest state', async () => {
  const ends: [string, number, boolean][] = [];
  const { source, received, release, relist, stop } = await blocked({
    onDelete: ({ metadata, spec }, finalStateKnown) => {
      ends.push([metadata.name, spec.value, finalStateKnown]);
    },
  });
  source.put('new', 1);
  source.put('new', 2);
  await relist(() => source.remove('new'));
  await release();
  assert.deepEqual(received(), ['+new=1', '~new=1→2', '-new?']);
  assert.deepEqual(ends, [['new', 2, false]]);
  await stop();
});

// upstream: 36
test('delivers one deletion for an object that was deleted and is missing from the next relist', async () => {
  const { source, received, release, relist, stop } = await blocked();
  source.remove('a');
  await relist(() => undefined);
  await release();
  assert.deepEqual(received(), ['-a']);
  await stop();
});

// upstream: 40
test('resyncs with the objects in the store at that time', async () => {
  const { source, clock, notes, informer, release, stop } = await blocked({}, 1000);
  source.put('a', 2);
  source.remove('b');
  await clock.advance(1000);
  source.put('a', 3);
  await release();
  const received = notes.filter((note) => !note.includes('filler-'));
  assert.deepEqual(received, ['~a=1→2', '-b', '~a=2→2', '~a=2→3']);
  assert.equal(notes.filter((note) => note.startsWith('~filler')).length, COUNT);
  assert.equal(informer.lister.size, COUNT + 1);
  await stop();
});

// upstream: 37
test('applies two queued relists one after the other', async () => {
  const { source, received, release, relist, stop } = await blocked();
  await relist(() => source.put('between', 1));
  await relist(() => source.remove('between'));
  await release();
  assert.deepEqual(received(), ['+between=1', '-between?']);
  await stop();
});

// upstream: 71
test('delivers the current store to a handler that is added during a backlog', async () => {
  const { source, informer, release, stop } = await blocked();
  source.put('a', 2);
  await settle();
  const { notes, handler } = recordingHandler();
  const late = informer.addHandler(handler);
  source.put('b', 2);
  await settle();
  assert.deepEqual([notes.length, late.hasSynced], [0, false]);
  await release();
  assert.equal(late.hasSynced, true);
  const received = notes.filter((note) => !note.includes('filler'));
  assert.deepEqual(received, ['+a=2!', '+b=1!', '~b=1→2']);
  assert.equal(notes.length, COUNT + 3);
  await stop();
});

test('queues one entry for resyncs that become due during a backlog', async () => {
  let state: InformerState | undefined;
  const metrics: ReflectorMetrics = {
    informer: (_, of) => {
      state = of;
      return noInformerMetrics;
    },
  };
  const { clock, release, stop } = await blocked({}, 1000, { metrics });
  assert.equal(state?.queued, 0);
  await clock.advance(5500);
  assert.equal(state.queued, 1);
  assert.equal(state.lastProgressMs, clock.now() - 5500, 'the list');
  await release();
  assert.equal(state.queued, 0);
  await stop();
});

for (const [what, start] of [
  [
    'a late handler’s first objects',
    ({ informer }, handler) => {
      informer.addHandler(handler);
    },
  ],
  [
    'a resync',
    async ({ informer, clock }, handler) => {
      informer.addHandler(handler, { resyncPeriodMs: 1000 });
      await settle();
      await clock.advance(1000);
    },
  ],
  [
    'the deletions of a relist',
    async ({ informer, source, clock }, handler) => {
      informer.addHandler(handler);
      await settle();
      source.emit({ type: 'error', error: expired() });
      source.restore(5000, []);
      await clock.advance(800);
    },
  ],
  [
    'the additions of a relist',
    async ({ informer, source, clock }, handler) => {
      informer.addHandler(handler);
      await settle();
      source.emit({ type: 'error', error: expired() });
      source.restore(5000, [...many('more'), ...source.objects]);
      await clock.advance(800);
    },
  ],
] as const satisfies readonly [
  string,
  (fixture: InformerFixture, handler: EventHandler<Thing>) => void | Promise<void>,
][]) {
  test(`delivers no further event after a stop during ${what}`, async () => {
    let gate: Deferred | undefined;
    let received = 0;
    const yieldTurn = () => gate?.promise ?? Promise.resolve();
    const fixture = informerFixture({ yieldTurn, freeze: false }, 'refused');
    fixture.source.restore(10, many('filler'));
    await fixture.start();
    assert.equal(fixture.informer.hasSynced, true);
    // Only events during the block count.
    const count = () => {
      if (gate) received++;
    };
    const starting = start(fixture, { onAdd: count, onUpdate: count, onDelete: count });
    if (starting) await settle();
    gate = new Deferred();
    await starting;
    await settle();
    assert.ok(received > 0 && received < COUNT, `${received} received`);
    const soFar = received;
    const stopping = fixture.stop();
    gate.resolve();
    await stopping;
    assert.equal(received, soFar);
  });
}
