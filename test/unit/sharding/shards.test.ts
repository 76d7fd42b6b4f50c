import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { LEASES } from '../../../src/api/builtin.ts';
import { LeadershipLostError } from '../../../src/leaderelection/leader-elector.ts';
import { requesterOf, withRequest } from '../../../src/sharding/shard-request.ts';
import { Shards } from '../../../src/sharding/shards.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { Sharers } from './replicas.ts';

/** Lease duration and retry period: the longest that a shard is without a holder, and jitter. */
const TAKEOVER_MS = 15_000 + 2_000 * 2.2;

describe('Shards', () => {
  it('holds all shards while it is the only replica', async () => {
    const world = new Sharers();
    world.start('a');
    assert.deepEqual(await world.pass(1000), []);
    assert.equal(world.share, 'a: 0 1 2');
    assert.deepEqual(await world.leases(), ['shard-0', 'shard-1', 'shard-2']);
  });

  it('hands over shards until the numbers differ by at most one', async () => {
    const world = new Sharers();
    world.start('a', 6);
    assert.deepEqual(await world.pass(1000), []);
    world.start('b', 6);
    world.start('c', 6);
    assert.deepEqual(await world.pass(60_000), []);
    assert.deepEqual(world.loads, [2, 2, 2]);
    const settled = world.share;
    assert.deepEqual(await world.pass(60_000), []);
    assert.equal(world.share, settled);
  });

  it('ends the work of a shard before another replica starts it', async () => {
    const world = new Sharers();
    const a = world.start('a', 2);
    await world.pass(1000);
    a.work = new Deferred();
    world.start('b', 2);
    assert.deepEqual(await world.pass(60_000), []);
    assert.equal(world.share, 'a: 0 1');
    a.work.resolve();
    a.work = undefined;
    assert.deepEqual(await world.pass(10_000), []);
    assert.deepEqual(world.loads, [1, 1]);
  });

  it('holds a shard without a handler until it is stopped', async () => {
    const world = new Sharers();
    const options = { namespace: 'default', name: 'shard', identity: 'a', count: 1 };
    const shards = new Shards(
      {
        client: world.clientOver(world.clock),
        clock: world.clock,
        random: world.random,
        log: silentLogger,
      },
      options,
    );
    const stop = new AbortController();
    const running = shards.run(stop.signal);
    await world.clock.advance(10_000);
    const lease = await world.clientOver(world.clock).get(LEASES, { ...options, name: 'shard-0' });
    assert.deepEqual([lease.spec?.holderIdentity, lease.spec?.leaseTransitions], ['a', 0]);
    stop.abort();
    await world.clock.advance(1000);
    await running;
  });

  it('releases its shards when it is stopped', async () => {
    const world = new Sharers();
    const a = world.start('a');
    await world.pass(1000);
    world.start('b');
    await world.pass(30_000);
    a.stop();
    assert.deepEqual(await world.pass(5000), []);
    assert.equal(a.ending, 'ended');
    assert.equal(world.share, 'b: 0 1 2');
  });

  it('is replaced within lease duration plus retry period after a crash', async () => {
    const world = new Sharers();
    const a = world.start('a');
    await world.pass(1000);
    world.start('b');
    world.start('c');
    await world.pass(60_000);
    assert.deepEqual(world.loads, [1, 1, 1]);
    a.kill();
    assert.deepEqual(await world.pass(TAKEOVER_MS), []);
    assert.deepEqual(world.loads, [2, 1, 0]);
  });

  it('may not write after its deadline, and stops', async () => {
    const world = new Sharers();
    const a = world.start('a');
    await world.pass(1000);
    world.start('b');
    await world.pass(30_000);
    a.pause();
    assert.deepEqual(await world.pass(30_000), []);
    assert.equal(world.share, 'b: 0 1 2');
    a.resume();
    assert.equal(a.shards.mayWrite(), false);
    assert.deepEqual(await world.pass(1000), []);
    assert.ok(a.ending instanceof LeadershipLostError);
  });

  it('may not write while it holds no shard', async () => {
    const world = new Sharers();
    const a = world.start('a');
    assert.equal(a.shards.mayWrite(), false);
    await world.pass(1000);
    assert.equal(a.shards.mayWrite(), true);
    const b = world.start('b');
    await world.pass(1000);
    assert.equal(b.shards.mayWrite(), false);
    a.stop();
    await world.pass(5000);
    assert.equal(a.shards.mayWrite(), false);
    assert.equal(b.shards.mayWrite(), true);
  });

  it('requests no shard that another replica has requested', async () => {
    const world = new Sharers();
    const a = world.start('a', 2);
    await world.pass(1000);
    a.pause();
    const client = world.clientOver(world.clock);
    for (const name of await world.leases()) {
      const lease = await client.get(LEASES, { namespace: 'default', name });
      await client.update(LEASES, withRequest(lease, 'c'));
    }
    const b = world.start('b', 2);
    await world.pass(12_000);
    const { items } = await client.list(LEASES, { namespace: 'default' });
    assert.deepEqual(items.map(requesterOf), ['c', 'c']);
    assert.ok(!b.lines.includes('Requested shard'));
  });

  it('passes on every Lease that it observes', async () => {
    const world = new Sharers();
    const seen = new Map<string, string | undefined>();
    const shards = new Shards(
      {
        client: world.clientOver(world.clock),
        clock: world.clock,
        random: world.random,
        log: silentLogger,
        onLease: ({ metadata, spec }) => seen.set(metadata.name, spec?.holderIdentity),
      },
      { identity: 'a', namespace: 'default', name: 'shard', count: 2 },
    );
    shards.onShard((_, signal) => untilAborted(signal));
    const stop = new AbortController();
    const running = shards.run(stop.signal);
    await world.clock.advance(5000);
    assert.deepEqual(
      seen,
      new Map([
        ['shard-0', 'a'],
        ['shard-1', 'a'],
      ]),
    );
    stop.abort(new Error('SIGTERM'));
    await world.clock.advance(5000);
    await running;
  });

  it('loses all shards with one lost Lease', async () => {
    const world = new Sharers();
    const a = world.start('a');
    await world.pass(1000);
    a.network(false);
    await world.pass(10_000);
    assert.deepEqual(a.acting, []);
    await world.pass(1000);
    assert.ok(a.ending instanceof LeadershipLostError);
    assert.equal(a.shards.mayWrite(), false);
  });

  it('waits until no replica uses another number of shards', async () => {
    const world = new Sharers();
    const [a, b] = [world.start('a', 2), world.start('b', 2)];
    await world.pass(30_000);
    const c = world.start('c', 3);
    assert.deepEqual(await world.pass(30_000), []);
    a.stop();
    assert.deepEqual(await world.pass(30_000), []);
    assert.equal(world.share, 'b: 0 1');
    assert.equal(c.lines.filter((line) => line.startsWith('Other replicas use')).length, 1);
    b.stop();
    await world.pass(1000);
    assert.equal(world.share, '');
    await world.pass(2 * TAKEOVER_MS);
    assert.equal(world.share, 'c: 0 1 2');
    const d = world.start('d', 2);
    await world.pass(60_000);
    assert.deepEqual(d.acting, []);
    c.kill();
    await world.pass(4 * TAKEOVER_MS);
    assert.equal(world.share, 'd: 0 1');
  });
});

it('the constructor rejects an invalid number of shards', () => {
  for (const count of [0, -1, 1.5, NaN]) {
    assert.throws(() => new Sharers().start('a', count), /count must be a positive integer: got/);
  }
});

it('in random failures of four processes, no shard has two holders, and all shards are balanced in the end', async () => {
  const what = fc.constantFrom('stop', 'kill', 'pause', 'resume', 'unplug', 'plug in', 'start');
  const incident = fc.record({
    who: fc.nat(3),
    what,
    afterMs: fc.integer({ min: 0, max: 20_000 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(incident, { maxLength: 12, size: 'max' }), async (incidents) => {
      const world = new Sharers();
      const processes = [0, 1, 2, 3].map((i) => world.start(`${i}.0`, 5));
      for (const [i, { who, what, afterMs }] of incidents.entries()) {
        assert.deepEqual(await world.pass(afterMs), []);
        const victim = processes[who]!;
        if (what === 'stop') victim.stop();
        else if (what === 'kill') victim.kill();
        else if (what === 'pause') victim.pause();
        else if (what === 'resume') victim.resume();
        else if (what === 'unplug') victim.network(false);
        else if (what === 'plug in') victim.network(true);
        else if (victim.ending !== undefined) processes[who] = world.start(`${who}.${i}`, 5);
      }
      const last = world.start('last', 5);
      for (const one of processes) one.kill();
      assert.deepEqual(await world.pass(60_000), []);
      assert.deepEqual(last.acting, [0, 1, 2, 3, 4]);
    }),
    { numRuns: 6 },
  );
});
