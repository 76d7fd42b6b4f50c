import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { LEASES } from '../../../src/api/builtin.ts';
import type { Client } from '../../../src/client/client.ts';
import { requesterOf, withRequest } from '../../../src/sharding/shard-request.ts';
import { Shards } from '../../../src/sharding/shards.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { ShardReplicas } from './replicas.ts';
import type { ShardReplica } from './replicas.ts';
import { isAbruptStop } from '../../../src/util/runnable.ts';

/** Maximum time that a shard has no holder: the lease duration and a retry period with jitter. */
const TAKEOVER_MS = 15_000 + 2_000 * 2.2;

const SHARD_0 = { namespace: 'default', name: 'shard-0' };

describe('Shards', () => {
  it('holds all shards while it is the only replica', async () => {
    const replicas = new ShardReplicas();
    replicas.start('a');
    assert.deepEqual(await replicas.advance(1000), []);
    assert.equal(replicas.owners, 'a: 0 1 2');
    assert.deepEqual(await replicas.leases(), ['shard-0', 'shard-1', 'shard-2']);
  });

  it('hands over shards until the numbers differ by at most one', async () => {
    const replicas = new ShardReplicas();
    replicas.start('a', 6);
    assert.deepEqual(await replicas.advance(1000), []);
    replicas.start('b', 6);
    replicas.start('c', 6);
    assert.deepEqual(await replicas.advance(60_000), []);
    assert.deepEqual(replicas.shardCounts, [2, 2, 2]);
    const settled = replicas.owners;
    assert.deepEqual(await replicas.advance(60_000), []);
    assert.equal(replicas.owners, settled);
  });

  it('hands over no more shards while the work of others ends', async () => {
    const replicas = new ShardReplicas();
    const a = replicas.start('a', 4);
    await replicas.advance(1000);
    a.work = new Deferred();
    replicas.start('b', 4);
    await replicas.advance(60_000);
    assert.equal(a.lines.filter((line) => line === 'Handing over shard').length, 2);
    a.work.resolve();
    await replicas.advance(5000);
    assert.deepEqual(replicas.shardCounts, [2, 2]);
  });

  it('ends the work of a shard before another replica starts it', async () => {
    const replicas = new ShardReplicas();
    const a = replicas.start('a', 2);
    await replicas.advance(1000);
    a.work = new Deferred();
    replicas.start('b', 2);
    assert.deepEqual(await replicas.advance(60_000), []);
    assert.equal(replicas.owners, 'a: 0 1');
    a.work.resolve();
    a.work = undefined;
    assert.deepEqual(await replicas.advance(10_000), []);
    assert.deepEqual(replicas.shardCounts, [1, 1]);
  });

  it('creates a deleted Lease of its shard again', async () => {
    const replicas = new ShardReplicas();
    replicas.start('a');
    await replicas.advance(1000);
    await replicas.clientOver(replicas.clock).delete(LEASES, SHARD_0);
    assert.deepEqual(await replicas.advance(5000), []);
    assert.equal(replicas.owners, 'a: 0 1 2');
  });

  const losses = {
    deleted: (client: Client) => client.delete(LEASES, SHARD_0),
    emptied: (client: Client) =>
      client.patch(LEASES, SHARD_0, {
        type: 'merge',
        body: { spec: { holderIdentity: '' } },
      }),
  };
  for (const [what, lose] of Object.entries(losses)) {
    it(`has no second holder of a shard whose Lease is ${what} while its holder cannot see it`, async () => {
      const replicas = new ShardReplicas();
      const client = replicas.clientOver(replicas.clock);
      const holderOfShard = async () => {
        const { items } = await client.list(LEASES, { namespace: 'default' });
        return items.find(({ metadata }) => metadata.name === SHARD_0.name)?.spec?.holderIdentity;
      };
      replicas.start('a');
      await replicas.advance(1000);
      replicas.start('b');
      await replicas.advance(20_000);
      replicas.replicas.forEach((replica) => replica.network(!replica.served.includes(0)));
      await lose(client);
      // The other replica waits until the claim expires.
      assert.deepEqual(await replicas.advance(5000), []);
      assert.ok(!(await holderOfShard()));
      assert.deepEqual(await replicas.advance(2 * TAKEOVER_MS), []);
      assert.deepEqual(replicas.shardCounts, [3, 0]);
    });
  }

  it('holds a shard without a handler until it is stopped', async () => {
    const replicas = new ShardReplicas();
    const options = { namespace: 'default', name: 'shard', identity: 'a', count: 1 };
    const shards = new Shards(
      {
        client: replicas.clientOver(replicas.clock),
        clock: replicas.clock,
        random: replicas.random,
        log: silentLogger,
      },
      options,
    );
    const stop = new AbortController();
    const running = shards.run(stop.signal);
    await replicas.clock.advance(10_000);
    const lease = await replicas
      .clientOver(replicas.clock)
      .get(LEASES, { ...options, name: 'shard-0' });
    assert.deepEqual([lease.spec?.holderIdentity, lease.spec?.leaseTransitions], ['a', 0]);
    stop.abort();
    await replicas.clock.advance(1000);
    await running;
  });

  it('releases its shards when it is stopped', async () => {
    const replicas = new ShardReplicas();
    const a = replicas.start('a');
    await replicas.advance(1000);
    replicas.start('b');
    await replicas.advance(30_000);
    a.stop();
    assert.deepEqual(await replicas.advance(5000), []);
    assert.equal(a.ending, 'ended');
    assert.equal(replicas.owners, 'b: 0 1 2');
  });

  it('is replaced within lease duration plus retry period after a crash', async () => {
    const replicas = new ShardReplicas();
    const a = replicas.start('a');
    await replicas.advance(1000);
    replicas.start('b');
    replicas.start('c');
    await replicas.advance(60_000);
    assert.deepEqual(replicas.shardCounts, [1, 1, 1]);
    a.kill();
    assert.deepEqual(await replicas.advance(TAKEOVER_MS), []);
    assert.deepEqual(replicas.shardCounts, [2, 1, 0]);
  });

  it('may not write after its deadline, and stops', async () => {
    const replicas = new ShardReplicas();
    const a = replicas.start('a');
    await replicas.advance(1000);
    replicas.start('b');
    await replicas.advance(30_000);
    a.pause();
    assert.deepEqual(await replicas.advance(30_000), []);
    assert.equal(replicas.owners, 'b: 0 1 2');
    a.resume();
    assert.deepEqual([a.shards.mayWrite(), a.shards.mayWriteEvents()], [false, false]);
    assert.deepEqual(await replicas.advance(1000), []);
    assert.ok(isAbruptStop(a.ending, 'leadershipLost'));
  });

  it('may not write while it holds no shard, except events after it held one', async () => {
    const replicas = new ShardReplicas();
    const may = ({ shards }: ShardReplica) => [shards.mayWrite(), shards.mayWriteEvents()];
    const a = replicas.start('a');
    assert.deepEqual(may(a), [false, false]);
    await replicas.advance(1000);
    assert.deepEqual(may(a), [true, true]);
    const b = replicas.start('b');
    await replicas.advance(1000);
    assert.deepEqual(may(b), [false, false]);
    a.stop();
    await replicas.advance(5000);
    assert.deepEqual(may(a), [false, true], 'events of the stop');
    assert.deepEqual(may(b), [true, true]);
  });

  it('requests no shard that another replica has requested', async () => {
    const replicas = new ShardReplicas();
    const a = replicas.start('a', 2);
    await replicas.advance(1000);
    a.pause();
    const client = replicas.clientOver(replicas.clock);
    for (const name of await replicas.leases()) {
      const lease = await client.get(LEASES, { namespace: 'default', name });
      await client.update(LEASES, withRequest(lease, 'c'));
    }
    const b = replicas.start('b', 2);
    await replicas.advance(12_000);
    const { items } = await client.list(LEASES, { namespace: 'default' });
    assert.deepEqual(items.map(requesterOf), ['c', 'c']);
    assert.ok(!b.lines.includes('Requested shard'));
  });

  it('logs a rejected request for a shard and repeats it; a conflict is no error', async () => {
    const replicas = new ShardReplicas();
    replicas.start('a');
    await replicas.advance(1000);
    let failure: number | undefined = 409;
    replicas.server.faults.beforeRequest(({ method, userAgent }) =>
      method === 'PUT' && userAgent === 'b' ? failure : undefined,
    );
    const b = replicas.start('b');
    await replicas.advance(12_000);
    assert.deepEqual(b.errors, []);
    failure = 403;
    await replicas.advance(12_000);
    assert.match(b.errors[0] ?? '', /"default\/shard-\d"/);
    failure = undefined;
    await replicas.advance(30_000);
    assert.deepEqual(replicas.shardCounts, [2, 1]);
  });

  it('calls onLease with each observed Lease', async () => {
    const replicas = new ShardReplicas();
    const seen = new Map<string, string | undefined>();
    const shards = new Shards(
      {
        client: replicas.clientOver(replicas.clock),
        clock: replicas.clock,
        random: replicas.random,
        log: silentLogger,
        onLease: ({ metadata, spec }) => seen.set(metadata.name, spec?.holderIdentity),
      },
      { identity: 'a', namespace: 'default', name: 'shard', count: 2 },
    );
    shards.onShard((_, signal) => untilAborted(signal));
    const stop = new AbortController();
    const running = shards.run(stop.signal);
    await replicas.clock.advance(5000);
    assert.deepEqual(
      seen,
      new Map([
        ['shard-0', 'a'],
        ['shard-1', 'a'],
      ]),
    );
    stop.abort(new Error('SIGTERM'));
    await replicas.clock.advance(5000);
    await running;
  });

  it('loses all shards with one lost Lease', async () => {
    const replicas = new ShardReplicas();
    const a = replicas.start('a');
    await replicas.advance(1000);
    a.network(false);
    await replicas.advance(10_000);
    assert.deepEqual(a.served, []);
    await replicas.advance(1000);
    assert.ok(isAbruptStop(a.ending, 'leadershipLost'));
    assert.equal(a.shards.mayWrite(), false);
  });

  it('may not write after another process acquired the Lease of one shard, while others end', async () => {
    const replicas = new ShardReplicas();
    const a = replicas.start('a');
    await replicas.advance(1000);
    a.work = new Deferred();
    const client = replicas.clientOver(replicas.clock);
    const lease = await client.get(LEASES, SHARD_0);
    await client.update(LEASES, { ...lease, spec: { ...lease.spec, holderIdentity: 'b' } });
    await replicas.advance(1000);
    assert.deepEqual(
      [a.ending, a.shards.holds('shard 1'), a.shards.mayWrite(), a.shards.mayWriteEvents()],
      [undefined, true, false, false],
    );
  });

  it('keeps a shard whose requester would have more', async () => {
    const replicas = new ShardReplicas();
    const a = replicas.start('a', 1);
    await replicas.advance(1000);
    const client = replicas.clientOver(replicas.clock);
    await client.update(LEASES, withRequest(await client.get(LEASES, SHARD_0), 'b'));
    await replicas.advance(1000);
    assert.deepEqual(a.served, [0]);
  });

  it('waits until no replica uses another number of shards', async () => {
    const replicas = new ShardReplicas();
    const [a, b] = [replicas.start('a', 2), replicas.start('b', 2)];
    await replicas.advance(30_000);
    const c = replicas.start('c', 3);
    assert.deepEqual(await replicas.advance(30_000), []);
    a.stop();
    assert.deepEqual(await replicas.advance(30_000), []);
    assert.equal(replicas.owners, 'b: 0 1');
    assert.equal(c.lines.filter((line) => line.startsWith('Other replicas use')).length, 1);
    b.stop();
    await replicas.advance(1000);
    assert.equal(replicas.owners, '');
    await replicas.advance(2 * TAKEOVER_MS);
    assert.equal(replicas.owners, 'c: 0 1 2');
    const d = replicas.start('d', 2);
    await replicas.advance(60_000);
    assert.deepEqual(d.served, []);
    c.kill();
    await replicas.advance(4 * TAKEOVER_MS);
    assert.equal(replicas.owners, 'd: 0 1');
  });
});

it('the constructor rejects an invalid number of shards', () => {
  for (const count of [0, -1, 1.5, NaN]) {
    assert.throws(
      () => new ShardReplicas().start('a', count),
      /^RangeError: count must be a positive integer: got/,
    );
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
      const replicas = new ShardReplicas();
      const started = [0, 1, 2, 3].map((i) => replicas.start(`${i}.0`, 5));
      for (const [i, { who, what, afterMs }] of incidents.entries()) {
        assert.deepEqual(await replicas.advance(afterMs), []);
        const victim = started[who]!;
        if (what === 'stop') victim.stop();
        else if (what === 'kill') victim.kill();
        else if (what === 'pause') victim.pause();
        else if (what === 'resume') victim.resume();
        else if (what === 'unplug') victim.network(false);
        else if (what === 'plug in') victim.network(true);
        else if (victim.ending !== undefined) started[who] = replicas.start(`${who}.${i}`, 5);
      }
      const last = replicas.start('last', 5);
      for (const one of started) one.kill();
      assert.deepEqual(await replicas.advance(60_000), []);
      assert.deepEqual(last.served, [0, 1, 2, 3, 4]);
    }),
    { numRuns: 6 },
  );
});
