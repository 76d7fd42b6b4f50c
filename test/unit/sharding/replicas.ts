import { LEASES } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Shards } from '../../../src/sharding/shards.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { LocalClock } from '../../support/local-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { seeded } from '../../support/simulation.ts';

/** Between two looks at who acts on what. */
const STEP_MS = 200;

/** Processes that share out shards, on machines of their own, in one virtual time. */
export class Sharers {
  readonly clock = new FakeClock();
  readonly server = new ApiServer({ clock: this.clock });
  readonly random: () => number = seeded(1);
  readonly sharers: Sharer[] = [];

  start(identity: string, count = 3): Sharer {
    const sharer = new Sharer(this, identity, count);
    this.sharers.push(sharer);
    return sharer;
  }

  /**
   * Lets time pass in small steps.
   *
   * @returns what was ever acted on by two at a time
   */
  async pass(ms: number): Promise<string[]> {
    const doubled: string[] = [];
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      await this.clock.advance(Math.min(STEP_MS, ms - passed));
      const actors = this.sharers.flatMap((sharer) =>
        sharer.acting.map((shard) => ({ shard, of: sharer.identity })),
      );
      for (const { shard, of } of actors) {
        const others = actors.filter((other) => other.shard === shard && other.of !== of);
        if (others.length > 0) doubled.push(`${shard} by ${of} at ${this.clock.monotonic()}`);
      }
    }
    return doubled;
  }

  /** Shards by who acts on them: `a: 0 2, b: 1`. */
  get share(): string {
    return this.sharers
      .filter(({ acting }) => acting.length > 0)
      .map(({ identity, acting }) => `${identity}: ${acting.join(' ')}`)
      .join(', ');
  }

  /** How many shards each acts on, the most first. */
  get loads(): number[] {
    return this.sharers.map(({ acting }) => acting.length).toSorted((a, b) => b - a);
  }

  async leases(): Promise<string[]> {
    const { items } = await this.clientOver(this.clock).list(LEASES, { namespace: 'default' });
    return items.map(({ metadata }) => metadata.name);
  }

  clientOver(clock: LocalClock | FakeClock, isUp: () => boolean = () => true): HttpClient {
    return new HttpClient({
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

export class Sharer {
  readonly identity: string;
  readonly shards: Shards;
  /** How it ended, once it has. */
  ending: 'ended' | Error | undefined;
  /** What holds up the end of what is done for a shard. */
  work: Deferred | undefined;
  readonly #serving = new Set<number>();
  readonly #clock: LocalClock;
  readonly #stop = new AbortController();
  readonly #recording = recordingLogger();
  #isUp = true;
  #isDead = false;

  constructor(world: Sharers, identity: string, count: number) {
    this.identity = identity;
    const clock = (this.#clock = new LocalClock(world.clock));
    const client = world.clientOver(clock, () => this.#isUp);
    const { random } = world;
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

  /** What it does something for, and what it writes would be sent. */
  get acting(): number[] {
    const acts = !this.#isDead && this.ending === undefined && this.shards.mayWrite();
    return acts ? [...this.#serving].toSorted((a, b) => a - b) : [];
  }

  get lines(): string[] {
    return this.#recording.lines
      .filter(({ level }) => level === 'error' || level === 0)
      .map(({ message }) => message);
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
