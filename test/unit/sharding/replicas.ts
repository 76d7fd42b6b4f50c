import { LEASES } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Shards } from '../../../src/sharding/shards.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { LocalClock } from '../../support/local-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { seededRandom } from '../../../src/util/seeded-random.ts';

/** Interval between two checks for shards with two owners, in milliseconds. */
const CHECK_MS = 200;

/** Replicas that share shards, each with its own clock, against an embedded API server. */
export class ShardReplicas {
  readonly clock = new FakeClock();
  readonly server = new ApiServer({ clock: this.clock });
  readonly random: () => number = seededRandom(1);
  readonly replicas: ShardReplica[] = [];

  start(identity: string, count = 3): ShardReplica {
    const replica = new ShardReplica(this, identity, count);
    this.replicas.push(replica);
    return replica;
  }

  /**
   * Advances the clock in small steps.
   *
   * @returns the shards that two replicas owned at the same time
   */
  async advance(ms: number): Promise<string[]> {
    const conflicts: string[] = [];
    for (let passed = 0; passed < ms; passed += CHECK_MS) {
      await this.clock.advance(Math.min(CHECK_MS, ms - passed));
      const owners = this.replicas.flatMap((replica) =>
        replica.served.map((shard) => ({ shard, of: replica.identity })),
      );
      for (const { shard, of } of owners) {
        const others = owners.filter((other) => other.shard === shard && other.of !== of);
        if (others.length > 0) conflicts.push(`${shard} by ${of} at ${this.clock.monotonic()}`);
      }
    }
    return conflicts;
  }

  /** Shards by owner: `a: 0 2, b: 1`. */
  get owners(): string {
    return this.replicas
      .filter(({ served }) => served.length > 0)
      .map(({ identity, served }) => `${identity}: ${served.join(' ')}`)
      .join(', ');
  }

  /** Number of shards of each replica, in descending order. */
  get shardCounts(): number[] {
    return this.replicas.map(({ served }) => served.length).toSorted((a, b) => b - a);
  }

  async leases(): Promise<string[]> {
    const { items } = await this.clientOver(this.clock).list(LEASES, { namespace: 'default' });
    return items.map(({ metadata }) => metadata.name);
  }

  clientOver(
    clock: LocalClock | FakeClock,
    isUp: () => boolean = () => true,
    userAgent?: string,
  ): HttpClient {
    return new HttpClient({
      userAgent,
      handler: async (request) => {
        if (clock instanceof LocalClock) await clock.awake();
        if (!isUp()) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
        const response = await this.server.handler(request);
        if (clock instanceof LocalClock) await clock.awake();
        return response;
      },
      server: 'https://test',
      clock,
      requestTimeoutMs: 5000,
    });
  }
}

/** A replica with its own clock and connection. */
export class ShardReplica {
  readonly identity: string;
  readonly shards: Shards;
  /** Result of `run`; undefined while it runs. */
  ending: 'ended' | Error | undefined;
  /** Delays the release of shards until it is resolved. */
  work: Deferred | undefined;
  readonly #serving = new Set<number>();
  readonly #clock: LocalClock;
  readonly #stop = new AbortController();
  readonly #recording = recordingLogger();
  #isUp = true;
  #isDead = false;

  constructor(fixture: ShardReplicas, identity: string, count: number) {
    this.identity = identity;
    const clock = (this.#clock = new LocalClock(fixture.clock));
    const client = fixture.clientOver(clock, () => this.#isUp, identity);
    const { random } = fixture;
    this.shards = new Shards(
      { client, clock, random, log: this.#recording.log },
      { identity, namespace: 'default', name: 'shard', count },
    );
    this.shards.onShard(async (shard, signal) => {
      this.#serving.add(shard);
      await untilAborted(signal);
      await this.work?.promise;
      this.#serving.delete(shard);
    });
    void this.shards.run(this.#stop.signal).then(
      () => (this.ending = 'ended'),
      (error: unknown) => (this.ending = error as Error),
    );
  }

  /** Shards that it serves and may write for. */
  get served(): number[] {
    const mayWrite = !this.#isDead && this.ending === undefined && this.shards.mayWrite();
    return mayWrite ? [...this.#serving].toSorted((a, b) => a - b) : [];
  }

  get lines(): string[] {
    return this.#recording.lines
      .filter(({ level }) => level === 'error' || level === 0)
      .map(({ message }) => message);
  }

  get errors(): string[] {
    return this.#recording.lines
      .filter(({ level }) => level === 'error')
      .map(({ message, fields }) => `${message} ${JSON.stringify(fields)}`);
  }

  /** SIGTERM */
  stop(): void {
    this.#stop.abort(new Error('SIGTERM'));
  }

  /** SIGKILL */
  kill(): void {
    this.#isDead = true;
    this.#clock.pause();
  }

  /** SIGSTOP */
  pause(): void {
    this.#clock.pause();
  }

  /** SIGCONT */
  resume(): void {
    this.#clock.resume();
  }

  network(isUp: boolean): void {
    this.#isUp = isUp;
  }
}
