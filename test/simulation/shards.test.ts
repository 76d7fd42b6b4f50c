import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LEASES } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { shardOf } from '../../src/sharding/assignment.ts';
import { Replicas } from '../support/replicas.ts';
import type { Replica } from '../support/replicas.ts';

const OBJECTS = 450;
/** Number of Counts that are changed while replicas join and leave. */
const TOUCHED = 150;
const SHARDS = 3;
const LEASE_MS = 15_000;
const RETRY_MS = 2_000;
/** A large step, because every check lists all Counts. */
const POLL = { stepMs: 500 };

const leaderElection = {
  name: 'crd-controller',
  namespace: undefined,
  leaseDurationMs: LEASE_MS,
  renewDeadlineMs: 10_000,
  retryPeriodMs: RETRY_MS,
  shards: SHARDS,
};

/** Replicas that share Counts; records which replica wrote to which Count. */
class ShardedSimulation extends Replicas {
  /** Writes by a replica that was not the shard owner at that moment. */
  readonly unownedWrites: string[] = [];
  /** The last writer of each Count since the last change. */
  readonly #writers = new Map<string, string>();

  join(identity: string): Replica {
    const watched =
      (handler: HttpHandler): HttpHandler =>
      async (request) => {
        const name = /\/counts\/([^/?]+)\/status/.exec(request.path)?.[1];
        if (name === undefined || request.method === 'GET') return handler(request);
        const shard = shardOf(`default/${name}`, SHARDS);
        const lease = await this.client.get(LEASES, {
          namespace: 'default',
          name: `crd-controller-${shard}`,
        });
        const holder = lease.spec?.holderIdentity;
        if (holder !== identity)
          this.unownedWrites.push(`${name}: ${identity} instead of ${holder}`);
        this.#writers.set(name, identity);
        return handler(request);
      };
    const config = { controllers: ['count'], leaderElection };
    return this.startReplica(identity, { config, around: watched });
  }

  /** Changes the spec of some Counts. */
  async touchSome(name: string): Promise<void> {
    this.#writers.clear();
    for (let i = 0; i < OBJECTS; i += OBJECTS / TOUCHED) {
      const at = { namespace: 'default', name: `count-${i}` };
      await this.client.patch(COUNTS, at, { type: 'merge', body: { spec: { name } } });
    }
  }

  /** Returns whether `touched` Counts were written, and all Counts are up to date. */
  async isCurrent(touched: number): Promise<boolean> {
    if (this.#writers.size < touched) return false;
    const { items } = await this.client.list(COUNTS);
    return items.every(
      ({ metadata, status }) => status?.observedGeneration === metadata.generation,
    );
  }

  /** Returns the number of Counts that each replica wrote since the last change. */
  get loads(): Map<string, number> {
    const loads = new Map<string, number>();
    for (const writer of this.#writers.values()) loads.set(writer, (loads.get(writer) ?? 0) + 1);
    return loads;
  }
}

describe(`${OBJECTS} Counts that three replicas share`, { timeout: 120_000 }, () => {
  it('each replica reconciles a third of them alone; a killed or paused replica is replaced in time', async () => {
    const simulation = new ShardedSimulation();
    await simulation.installCrd(COUNTS);
    const [a, b] = [simulation.join('a'), simulation.join('b'), simulation.join('c')];
    await simulation.pass(40_000);
    for (let i = 0; i < OBJECTS; i++) await simulation.applyCount({ count: 0 }, `count-${i}`);
    await simulation.until('all Counts are synced', () => simulation.isCurrent(OBJECTS), POLL);
    assert.deepEqual([...simulation.loads.keys()].toSorted(), ['a', 'b', 'c']);
    for (const load of simulation.loads.values()) {
      assert.ok(Math.abs(load / (OBJECTS / 3) - 1) < 0.2, `${load} is a fair share`);
    }

    a.kill();
    b.pause();
    const sinceMs = simulation.elapsedMs();
    await simulation.touchSome('one');
    await simulation.until(
      'one replica has synced all changes',
      () => simulation.isCurrent(TOUCHED),
      POLL,
    );
    assert.ok(simulation.elapsedMs() - sinceMs <= LEASE_MS + RETRY_MS, 'no Count waited longer');
    assert.deepEqual(simulation.loads, new Map([['c', TOUCHED]]));

    b.resume();
    simulation.join('d');
    await simulation.pass(40_000);
    assert.ok(b.ending instanceof Error);
    await simulation.touchSome('two');
    await simulation.until(
      'both replicas have synced their share',
      () => simulation.isCurrent(TOUCHED),
      POLL,
    );
    assert.deepEqual([...simulation.loads.keys()].toSorted(), ['c', 'd']);

    assert.deepEqual(simulation.unownedWrites, []);
    assert.deepEqual(simulation.replicas.at(-1)?.errors, []);
    await simulation.end();
  });
});
