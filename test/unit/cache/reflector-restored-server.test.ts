import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Deferred } from '../../../src/util/deferred.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { apiError, expired, thing, unreachable } from '../../support/fake-source.ts';
import { brief, reflectorFixture } from './harness.ts';
import type { ReflectorFixture } from './harness.ts';

/** Server whose etcd was restored from a backup. It accepts a watch from a future resourceVersion. */
describe('a reflector of a server that lost its history', () => {
  const old = thing('old', 1, '2');

  async function watching(): Promise<ReflectorFixture> {
    const fixture = reflectorFixture();
    fixture.source.put('a');
    await fixture.start();
    await fixture.clock.advance(60_000);
    return fixture;
  }

  it('lists again after the connection is lost, though the watch would be accepted', async () => {
    for (const lose of [
      ({ source }: ReflectorFixture) => source.endWatches(),
      ({ source }: ReflectorFixture) => source.resetWatches(),
    ]) {
      const fixture = await watching();
      fixture.source.restoreUnderWatches(3, [old]);
      lose(fixture);
      await fixture.clock.advance(2000);
      assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11', 'replaced old@3']);
      assert.equal(fixture.source.openWatches, 1);
      fixture.source.put('b');
      await settle();
      assert.equal(brief(fixture.deltas.at(-1)!), 'changed b@4', 'it sees what comes next');
      await fixture.stop();
    }
  });

  it('lists again by a quorum read and logs it', async () => {
    const fixture = await watching();
    fixture.source.restore(3, [old]);
    await fixture.clock.advance(2000);
    assert.equal(fixture.source.lists.at(-1)!.resourceVersion, undefined);
    assert.deepEqual(
      fixture.deltas.map((delta) => delta.type === 'replaced' && 'quorumReadMs' in delta),
      [false, true],
    );
    await fixture.stop();
  });

  it('lists again within 90 s if the connection stays open, because its watch stalls', async () => {
    const fixture = await watching();
    fixture.source.restoreUnderWatches(3, [old]);
    fixture.source.put('b');
    fixture.source.bookmark();
    await fixture.clock.advance(92_000);
    assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11', 'replaced old,b@4']);
    await fixture.stop();
  });

  it('lists again after a bookmark with an older resourceVersion', async () => {
    const fixture = await watching();
    fixture.source.put('b');
    await settle();
    fixture.source.restoreUnderWatches(3, [old]);
    fixture.source.emit({ type: 'bookmark', resourceVersion: '11', initialEventsEnd: false });
    await fixture.clock.advance(3000);
    assert.equal(brief(fixture.deltas.at(-1)!), 'replaced old@3');
    await fixture.stop();
  });

  it('lists again after an outage, though the server has passed the resourceVersion by other writes', async () => {
    for (const failure of [unreachable(), apiError('unavailable', 'starting', 503)]) {
      const fixture = await watching();
      fixture.source.failNext('list', failure, 2);
      fixture.source.restore(3, [old]);
      fixture.source.skip(100);
      await fixture.clock.advance(60_000);
      assert.equal(brief(fixture.deltas.at(-1)!), 'replaced old@103');
      assert.equal(fixture.source.lists.at(-1)!.resourceVersion, undefined);
      await fixture.stop();
    }
  });

  it('lists again if the response to its check took as long as an outage', async () => {
    const fixture = await watching();
    fixture.source.listDelayMs = 2000;
    fixture.source.restore(3, [old]);
    fixture.source.skip(100);
    await fixture.clock.advance(4000);
    assert.equal(brief(fixture.deltas.at(-1)!), 'replaced old@103');
    await fixture.stop();
  });

  it('lists again if the outage came during another relist', async () => {
    const fixture = await watching();
    fixture.source.emit({ type: 'error', error: expired() });
    fixture.source.failNext('list', unreachable());
    fixture.source.restore(3, [old]);
    fixture.source.skip(100);
    await fixture.clock.advance(10_000);
    assert.equal(fixture.source.lists.at(-1)!.resourceVersion, undefined);
    assert.equal(brief(fixture.deltas.at(-1)!), 'replaced old@103');
    await fixture.stop();
  });

  it('only checks the server if a watch is rejected after the list that followed an outage', async () => {
    const fixture = await watching();
    const { clock, source } = fixture;
    source.listDelayMs = 2000;
    source.endWatches();
    source.failNext('watch', unreachable());
    await clock.advance(3000);
    source.listDelayMs = 0;
    await clock.advance(60_000);
    assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11', 'replaced a@11']);
    assert.equal(fixture.source.openWatches, 1);
    await fixture.stop();
  });

  it('lists again after three minutes without activity, as after a suspended process', async () => {
    const fixture = reflectorFixture();
    const activity = { lastMs: Infinity };
    fixture.source.activity = activity;
    fixture.source.put('a');
    await fixture.start();
    await fixture.clock.advance(190_000);
    // The stall timers were suspended too.
    activity.lastMs = 0;
    fixture.source.restore(3, [old]);
    fixture.source.skip(100);
    await fixture.clock.advance(2000);
    assert.equal(brief(fixture.deltas.at(-1)!), 'replaced old@103');
    await fixture.stop();
  });

  it('lists again on request in every state', async () => {
    const fixture = await watching();
    fixture.reflector.relist();
    await settle();
    assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11', 'replaced a@11']);
    fixture.source.failNext('watch', unreachable());
    fixture.source.resetWatches();
    await settle();
    fixture.reflector.relist();
    await fixture.clock.advance(2000);
    assert.deepEqual(fixture.source.lists.length, 3, 'the first, and one for each time');
    assert.equal(fixture.source.openWatches, 1);
    await fixture.stop();
  });
});

describe('a reflector whose relist is requested while it opens a watch', () => {
  it('closes the watch and lists again at once', async () => {
    const fixture = reflectorFixture();
    const { source } = fixture;
    const opened = new Deferred();
    const open = source.watch.bind(source);
    source.watch = async (request) => {
      await opened.promise;
      return open(request);
    };
    await fixture.start();
    fixture.reflector.relist();
    opened.resolve();
    await settle();
    assert.deepEqual([source.lists.length, source.openWatches], [2, 1]);
    await fixture.stop();
  });
});

describe('a reflector of a server that keeps its history', () => {
  it('sends no extra request while its watches run to their timeout', async () => {
    const fixture = reflectorFixture();
    await fixture.start();
    for (let minute = 1; minute <= 30; minute++) {
      await fixture.clock.advance(60_000);
      fixture.source.bookmark();
      await settle();
      if (minute % 5 === 0) fixture.source.endWatches();
      await settle();
    }
    assert.deepEqual([fixture.source.checks.length, fixture.source.lists.length], [0, 1]);
    await fixture.stop();
  });

  it('sends one small read for each lost connection, and resumes', async () => {
    const fixture = reflectorFixture();
    await fixture.start();
    for (let times = 0; times < 5; times++) {
      await fixture.clock.advance(10_000);
      fixture.source.resetWatches();
      fixture.source.put('a');
      await settle();
    }
    assert.deepEqual([fixture.source.checks.length, fixture.source.lists.length], [5, 1]);
    const { signal: _, ...check } = fixture.source.checks[0]!;
    assert.deepEqual(check, { verb: 'list', limit: 1, metadataOnly: true });
    await fixture.stop();
  });

  it('resumes after an absence of the server that is too short for a restore', async () => {
    const fixture = reflectorFixture();
    await fixture.start();
    await fixture.clock.advance(60_000);
    fixture.source.failNext('list', unreachable());
    fixture.source.resetWatches();
    fixture.source.put('a');
    await fixture.clock.advance(1999);
    assert.deepEqual(fixture.deltas.map(brief), ['replaced @10', 'changed a@11']);
    await fixture.stop();
  });

  it('resumes if resourceVersions have no order', async () => {
    const fixture = reflectorFixture();
    await fixture.start();
    fixture.source.emit({ type: 'modified', object: thing('a', 0, 'opaque') });
    await fixture.clock.advance(2000);
    fixture.source.resetWatches();
    await settle();
    assert.equal(fixture.source.watches.at(-1)!.resourceVersion, 'opaque');
    assert.equal(fixture.source.lists.length, 1);
    await fixture.stop();
  });
});
