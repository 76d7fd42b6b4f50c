import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle } from '../../../src/util/fake-clock.ts';
import { apiError, expired, thing, unreachable } from '../../support/fake-source.ts';
import { brief, reflectorWorld } from './harness.ts';
import type { ReflectorWorld } from './harness.ts';

/** Server whose etcd was restored from a backup. It accepts a watch from a future resourceVersion. */
describe('a reflector of a server that lost its history', () => {
  const old = thing('old', 1, '2');

  async function watching(): Promise<ReflectorWorld> {
    const world = reflectorWorld();
    world.source.put('a');
    await world.start();
    await world.clock.advance(60_000);
    return world;
  }

  it('lists again after the connection is lost, though the watch would be accepted', async () => {
    for (const lose of [
      ({ source }: ReflectorWorld) => source.endWatches(),
      ({ source }: ReflectorWorld) => source.resetWatches(),
    ]) {
      const world = await watching();
      world.source.restoreUnderWatches(3, [old]);
      lose(world);
      await world.clock.advance(2000);
      assert.deepEqual(world.deltas.map(brief), ['replaced a@11', 'replaced old@3']);
      assert.equal(world.source.openWatches, 1);
      world.source.put('b');
      await settle();
      assert.equal(brief(world.deltas.at(-1)!), 'changed b@4', 'it sees what comes next');
      await world.stop();
    }
  });

  it('lists again by a quorum read and logs it', async () => {
    const world = await watching();
    world.source.restore(3, [old]);
    await world.clock.advance(2000);
    assert.equal(world.source.lists.at(-1)!.resourceVersion, undefined);
    assert.deepEqual(
      world.deltas.map((delta) => delta.type === 'replaced' && 'quorumReadMs' in delta),
      [false, true],
    );
    await world.stop();
  });

  it('lists again within 90 s if the connection stays open, because its watch stalls', async () => {
    const world = await watching();
    world.source.restoreUnderWatches(3, [old]);
    world.source.put('b');
    world.source.bookmark();
    await world.clock.advance(92_000);
    assert.deepEqual(world.deltas.map(brief), ['replaced a@11', 'replaced old,b@4']);
    await world.stop();
  });

  it('lists again after a bookmark with an older resourceVersion', async () => {
    const world = await watching();
    world.source.put('b');
    await settle();
    world.source.restoreUnderWatches(3, [old]);
    world.source.emit({ type: 'bookmark', resourceVersion: '11', initialEventsEnd: false });
    await world.clock.advance(3000);
    assert.equal(brief(world.deltas.at(-1)!), 'replaced old@3');
    await world.stop();
  });

  it('lists again after an outage, though the server has passed the resourceVersion by other writes', async () => {
    for (const failure of [unreachable(), apiError('unavailable', 'starting', 503)]) {
      const world = await watching();
      world.source.failNext('list', failure, 2);
      world.source.restore(3, [old]);
      world.source.skip(100);
      await world.clock.advance(60_000);
      assert.equal(brief(world.deltas.at(-1)!), 'replaced old@103');
      assert.equal(world.source.lists.at(-1)!.resourceVersion, undefined);
      await world.stop();
    }
  });

  it('lists again if the answer to its check took as long as an outage', async () => {
    const world = await watching();
    world.source.listDelayMs = 2000;
    world.source.restore(3, [old]);
    world.source.skip(100);
    await world.clock.advance(4000);
    assert.equal(brief(world.deltas.at(-1)!), 'replaced old@103');
    await world.stop();
  });

  it('lists again if the outage came during another relist', async () => {
    const world = await watching();
    world.source.emit({ type: 'error', error: expired() });
    world.source.failNext('list', unreachable());
    world.source.restore(3, [old]);
    world.source.skip(100);
    await world.clock.advance(10_000);
    assert.equal(world.source.lists.at(-1)!.resourceVersion, undefined);
    assert.equal(brief(world.deltas.at(-1)!), 'replaced old@103');
    await world.stop();
  });

  it('lists again after three minutes without activity, as after a suspended process', async () => {
    const world = reflectorWorld();
    const activity = { lastMs: Infinity };
    world.source.activity = activity;
    world.source.put('a');
    await world.start();
    await world.clock.advance(190_000);
    // The stall timers were suspended too.
    activity.lastMs = 0;
    world.source.restore(3, [old]);
    world.source.skip(100);
    await world.clock.advance(2000);
    assert.equal(brief(world.deltas.at(-1)!), 'replaced old@103');
    await world.stop();
  });

  it('lists again on request in every state', async () => {
    const world = await watching();
    world.reflector.relist();
    await settle();
    assert.deepEqual(world.deltas.map(brief), ['replaced a@11', 'replaced a@11']);
    world.source.failNext('watch', unreachable());
    world.source.resetWatches();
    await settle();
    world.reflector.relist();
    await world.clock.advance(2000);
    assert.deepEqual(world.source.lists.length, 3, 'the first, and one for each time');
    assert.equal(world.source.openWatches, 1);
    await world.stop();
  });
});

describe('a reflector of a server that keeps its history', () => {
  it('sends no extra request while its watches run to their timeout', async () => {
    const world = reflectorWorld();
    await world.start();
    for (let minute = 1; minute <= 30; minute++) {
      await world.clock.advance(60_000);
      world.source.bookmark();
      await settle();
      if (minute % 5 === 0) world.source.endWatches();
      await settle();
    }
    assert.deepEqual([world.source.checks.length, world.source.lists.length], [0, 1]);
    await world.stop();
  });

  it('sends one small read for each lost connection, and resumes', async () => {
    const world = reflectorWorld();
    await world.start();
    for (let times = 0; times < 5; times++) {
      await world.clock.advance(10_000);
      world.source.resetWatches();
      world.source.put('a');
      await settle();
    }
    assert.deepEqual([world.source.checks.length, world.source.lists.length], [5, 1]);
    const { signal: _, ...check } = world.source.checks[0]!;
    assert.deepEqual(check, { verb: 'list', limit: 1, metadataOnly: true });
    await world.stop();
  });

  it('resumes after an absence of the server that is too short for a restore', async () => {
    const world = reflectorWorld();
    await world.start();
    await world.clock.advance(60_000);
    world.source.failNext('list', unreachable());
    world.source.resetWatches();
    world.source.put('a');
    await world.clock.advance(1999);
    assert.deepEqual(world.deltas.map(brief), ['replaced @10', 'changed a@11']);
    await world.stop();
  });

  it('resumes if resourceVersions have no order', async () => {
    const world = reflectorWorld();
    await world.start();
    world.source.emit({ type: 'modified', object: thing('a', 0, 'opaque') });
    await world.clock.advance(2000);
    world.source.resetWatches();
    await settle();
    assert.equal(world.source.watches.at(-1)!.resourceVersion, 'opaque');
    assert.equal(world.source.lists.length, 1);
    await world.stop();
  });
});
