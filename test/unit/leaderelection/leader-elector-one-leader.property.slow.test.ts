import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { ApiError } from '../../../src/api/api-error.ts';
import type { ApiErrorKind } from '../../../src/api/api-error.ts';
import type { Lease } from '../../../src/api/builtin.ts';
import type { WatchEvent } from '../../../src/api/object.ts';
import { rejectOnAbort } from '../../../src/util/abort.ts';
import { LeaderElector } from '../../../src/leaderelection/leader-elector.ts';
import type { LeaseClient } from '../../../src/leaderelection/lease-lock.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { sleepOn } from '../../../src/util/clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { LocalClock } from '../../support/local-clock.ts';
import { seededRandom } from '../../../src/util/seeded-random.ts';

const TERMS = { leaseDurationMs: 3000, renewDeadlineMs: 2000, retryPeriodMs: 700 };
const AT = { namespace: 'default', name: 'lock' };
const SCHEDULES = 100;
const STEP_MS = 250;
const STEPS = 64;

/** Faults of a process or of its network, and their ends. */
const FAULTS = [
  'stop',
  'kill',
  'pause',
  'resume',
  'unplug',
  'hang',
  'lose responses',
  'plug in',
  'slow',
  'fast',
] as const;

/** Changes of the lease by a client that is no candidate. */
const INTERFERENCE = ['delete', 'empty', 'wipe', 'overwrite'] as const;

interface Incident {
  readonly step: number;
  readonly replica: number;
  readonly what: (typeof FAULTS)[number];
}

interface Interference {
  readonly step: number;
  readonly what: (typeof INTERFERENCE)[number];
}

interface Schedule {
  readonly seed: number;
  /** Speeds of the clocks. They differ by less than the ratio of lease duration and renew deadline. */
  readonly rates: readonly number[];
  readonly incidents: readonly Incident[];
  readonly interference: readonly Interference[];
}

const RATES = [0.85, 0.95, 1, 1.1, 1.25];

const schedule: fc.Arbitrary<Schedule> = fc.record({
  seed: fc.nat(),
  rates: fc.array(fc.constantFrom(...RATES), { minLength: 3, maxLength: 3 }),
  incidents: fc.array(
    fc.record({
      step: fc.nat(STEPS - 1),
      replica: fc.nat(2),
      what: fc.constantFrom(...FAULTS),
    }),
    { minLength: 6, maxLength: 24, size: 'max' },
  ),
  interference: fc.array(
    fc.record({ step: fc.nat(STEPS - 1), what: fc.constantFrom(...INTERFERENCE) }),
    { maxLength: 4 },
  ),
});

/** Clock that advances from timer to timer and calls a check after each. */
class Timeline implements Clock {
  #nowMs = 0;
  #order = 0;
  readonly #timers = new Map<number, { readonly dueMs: number; readonly callback: () => void }>();

  now(): number {
    return Date.UTC(2026, 0, 1) + Math.round(this.#nowMs);
  }

  monotonic(): number {
    return this.#nowMs;
  }

  after(ms: number, callback: () => void): () => void {
    const order = this.#order++;
    this.#timers.set(order, { dueMs: this.#nowMs + Math.max(0, ms), callback });
    return () => this.#timers.delete(order);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  async advance(ms: number, check: () => void): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      // Between two timers there are only promises, which have settled then.
      await new Promise((resolve) => setImmediate(resolve));
      check();
      let next: number | undefined;
      let dueMs = untilMs;
      for (const [order, timer] of this.#timers) {
        if (timer.dueMs < dueMs || (timer.dueMs === dueMs && next === undefined)) {
          next = order;
          dueMs = timer.dueMs;
        }
      }
      const timer = next === undefined ? undefined : this.#timers.get(next);
      if (next === undefined || !timer) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      timer.callback();
    }
    this.#nowMs = untilMs;
    check();
  }
}

/** A lease with optimistic locking and notifications of changes. */
class LeaseStore {
  #lease: Lease | undefined;
  #deleted: Lease | undefined;
  #version = 0;
  #changed = new Deferred();
  readonly holders = new Set<string>();

  get version(): number {
    return this.#version;
  }

  /** Resolves with the next change. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  get(): Lease {
    if (!this.#lease) throw apiError('notFound');
    return structuredClone(this.#lease);
  }

  /** Returns the last event of a watch. */
  get event(): WatchEvent<Lease> {
    if (this.#lease) return { type: 'modified', object: this.get() };
    assert.ok(this.#deleted);
    return { type: 'deleted', object: structuredClone(this.#deleted) };
  }

  create(spec: Lease['spec']): Lease {
    if (this.#lease) throw apiError('alreadyExists');
    return this.#store(spec, `uid-${this.#version}`);
  }

  update({ spec, metadata }: Lease): Lease {
    const { uid, resourceVersion } = this.get().metadata;
    if (metadata.resourceVersion !== resourceVersion) throw apiError('conflict');
    return this.#store(spec, uid);
  }

  interfere(what: Interference['what']): void {
    if (!this.#lease) return;
    const { metadata, spec } = this.#lease;
    switch (what) {
      case 'delete': {
        const resourceVersion = String(++this.#version);
        this.#deleted = { ...this.#lease, metadata: { ...metadata, resourceVersion } };
        this.#lease = undefined;
        this.#notify();
        return;
      }
      case 'empty':
        this.#store({ ...spec, holderIdentity: '' }, metadata.uid);
        return;
      case 'wipe':
        this.#store(undefined, metadata.uid);
        return;
      case 'overwrite':
        this.#store({ holderIdentity: 'other', leaseDurationSeconds: 1 }, metadata.uid);
    }
  }

  #store(spec: Lease['spec'], uid: string): Lease {
    if (spec?.holderIdentity) this.holders.add(spec.holderIdentity);
    this.#lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        ...AT,
        uid,
        creationTimestamp: '2026-01-01T00:00:00Z',
        resourceVersion: String(++this.#version),
      },
      ...(spec && { spec }),
    };
    this.#notify();
    return this.get();
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = new Deferred();
  }
}

/** Returns the name of a claim: its holder and the incarnation of the lease. */
function claimOf({ metadata, spec }: Lease): string {
  return `${metadata.uid} ${spec?.holderIdentity}`;
}

function apiError(kind: ApiErrorKind): ApiError {
  return new ApiError({ kind, message: kind });
}

/** A machine with one elector at a time; each runs in a new process. */
class Replica {
  elector: LeaderElector | undefined;
  /** The claim of the elector, its number in order, and the claims that it had seen before it. */
  claim:
    { readonly name: string; readonly atVersion: number; readonly after: Set<string> } | undefined;
  readonly #name: string;
  readonly #timeline: Timeline;
  readonly #store: LeaseStore;
  readonly #rate: number;
  readonly #random: () => number;
  #network: 'up' | 'down' | 'hanging' | 'losingResponses' = 'up';
  #latencyMs = 0;
  #clock: LocalClock;
  #stop = new AbortController();
  #generation = 0;

  constructor(
    name: string,
    deps: { timeline: Timeline; store: LeaseStore; rate: number; random: () => number },
  ) {
    this.#name = name;
    this.#timeline = deps.timeline;
    this.#store = deps.store;
    this.#rate = deps.rate;
    this.#random = deps.random;
    this.#clock = new LocalClock(this.#timeline);
    this.#boot();
  }

  inject(what: Incident['what']): void {
    switch (what) {
      case 'stop':
        return this.#stop.abort();
      case 'kill':
        // The process never continues. The new one has no state of it.
        this.#clock.pause();
        return this.#boot();
      case 'pause':
        return this.#clock.pause();
      case 'resume':
        return this.#clock.resume();
      case 'unplug':
        this.#network = 'down';
        return;
      case 'hang':
        this.#network = 'hanging';
        return;
      case 'lose responses':
        this.#network = 'losingResponses';
        return;
      case 'plug in':
        this.#network = 'up';
        return;
      case 'slow':
        this.#latencyMs = 1800;
        return;
      case 'fast':
        this.#latencyMs = 0;
    }
  }

  recover(): void {
    for (const what of ['resume', 'plug in', 'fast'] as const) this.inject(what);
  }

  #boot(): void {
    const clock = new LocalClock(this.#timeline, {
      rate: this.#rate,
      offsetMs: (this.#random() - 0.5) * 86_400_000,
    });
    this.claim = undefined;
    const elector = new LeaderElector(
      { client: this.#client(clock), clock, random: this.#random, log: silentLogger },
      { ...TERMS, ...AT, identity: `${this.#name}-${this.#generation++}` },
    );
    const stop = new AbortController();
    this.#clock = clock;
    this.#stop = stop;
    this.elector = elector;
    // Restarts the elector after any end, unless it was killed and has been replaced.
    const restart = async () => {
      await clock.sleep(100);
      if (this.elector === elector) this.#boot();
    };
    void elector.run(stop.signal).then(restart, restart);
  }

  #client(clock: LocalClock): LeaseClient {
    const seen = new Set<string>();
    const see = (lease: Lease) => seen.add(claimOf(lease));
    const request = <R>(operation: () => R, signal: AbortSignal | undefined): Promise<R> =>
      rejectOnAbort(this.#request(operation, clock), signal);
    const read = async (operation: () => Lease, signal: AbortSignal | undefined) => {
      const lease = await request(operation, signal);
      see(lease);
      return lease;
    };
    const claim = (operation: () => Lease, signal: AbortSignal | undefined) => {
      const after = new Set(seen);
      return read(() => {
        const lease = operation();
        const name = claimOf(lease);
        if (this.#clock === clock && name !== this.claim?.name) {
          this.claim = { name, atVersion: this.#store.version, after };
        }
        return lease;
      }, signal);
    };
    // The elector uses one resource only.
    const client = {
      get: (_: unknown, __: unknown, { signal }: { signal?: AbortSignal } = {}) =>
        read(() => this.#store.get(), signal),
      create: (_: unknown, { spec }: Lease, { signal }: { signal?: AbortSignal } = {}) =>
        claim(() => this.#store.create(spec), signal),
      watch: (_: unknown, { signal }: { signal?: AbortSignal } = {}) =>
        request(() => Object.assign(this.#observed(clock, see, signal), { lastByteMs: 0 }), signal),
      update: (_: unknown, lease: Lease, { signal }: { signal?: AbortSignal } = {}) =>
        claim(() => this.#store.update(lease), signal),
    };
    return client as LeaseClient;
  }

  /** Yields states of the lease with delay, and not all of them. Yields nothing while the network hangs; rejects when it is down. */
  async *#observed(
    clock: LocalClock,
    see: (lease: Lease) => void,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchEvent<Lease>> {
    for (let seen = 0; ;) {
      if (signal?.aborted) return;
      const { version } = this.#store;
      if (version > seen) {
        seen = version;
        const { event } = this.#store;
        await this.#delay();
        await clock.awake();
        if (this.#network === 'down') throw apiError('unreachable');
        if (this.#network === 'up' && !signal?.aborted) {
          if (event.type === 'modified') see(event.object);
          yield event;
        }
      } else {
        await rejectOnAbort(this.#store.changed, signal).catch(() => undefined);
      }
    }
  }

  async #request<R>(operation: () => R, clock: LocalClock): Promise<R> {
    await clock.awake();
    if (this.#network === 'down') throw apiError('unreachable');
    if (this.#network === 'hanging') await new Promise(() => undefined);
    await this.#delay();
    try {
      const response = operation();
      await this.#delay();
      if (this.#network === 'losingResponses') throw apiError('unreachable');
      return response;
    } finally {
      await clock.awake();
    }
  }

  async #delay(): Promise<void> {
    if (this.#latencyMs > 0) await this.#timeline.sleep(this.#latencyMs * this.#random());
  }
}

/** The longest time of two writers, if the second has never seen the claim of the first. */
const OVERLAP_MS = TERMS.renewDeadlineMs / Math.min(...RATES);

/**
 * Throws if two processes may write, unless another client changed the lease and the second has never seen the claim of the
 * first, so that it cannot wait for it. Then the first may write until its deadline.
 */
class WriterCheck {
  readonly #timeline: Timeline;
  readonly #replicas: readonly Replica[];
  #overlap: { readonly claims: string; readonly sinceMs: number } | undefined;
  overlaps = 0;

  constructor(timeline: Timeline, replicas: readonly Replica[]) {
    this.#timeline = timeline;
    this.#replicas = replicas;
  }

  get writers(): Replica[] {
    return this.#replicas.filter(({ elector }) => elector?.mayWrite());
  }

  readonly run = (): void => {
    const [first, second, third] = this.writers
      .flatMap(({ claim }) => claim ?? [])
      .toSorted((one, other) => one.atVersion - other.atVersion);
    if (!first || !second) {
      this.#overlap = undefined;
      return;
    }
    const nowMs = this.#timeline.monotonic();
    const claims = `${first.name}, ${second.name}, ${third?.name}`;
    assert.ok(!second.after.has(first.name), `two may write at ${nowMs} ms: ${claims}`);
    if (this.#overlap?.claims !== claims) {
      this.#overlap = { claims, sinceMs: nowMs };
      this.overlaps++;
    }
    assert.ok(nowMs - this.#overlap.sinceMs <= OVERLAP_MS, `for too long: ${claims}`);
  };
}

test(`in ${SCHEDULES} failure schedules of three processes, at most one may write at any time, and one leads in the end`, async () => {
  let handOvers = 0;
  let overlaps = 0;
  await fc.assert(
    fc.asyncProperty(schedule, async ({ seed, rates, incidents, interference }) => {
      const timeline = new Timeline();
      const store = new LeaseStore();
      const random = seededRandom(seed);
      const replicas = rates.map(
        (rate, index) => new Replica(`replica-${index}`, { timeline, store, rate, random }),
      );
      const check = new WriterCheck(timeline, replicas);
      for (let step = 0; step < STEPS; step++) {
        for (const { replica, what } of incidents.filter((incident) => incident.step === step)) {
          replicas[replica]?.inject(what);
        }
        for (const { what } of interference.filter((change) => change.step === step)) {
          store.interfere(what);
        }
        await timeline.advance(STEP_MS, check.run);
      }
      for (const replica of replicas) replica.recover();
      await timeline.advance(4 * TERMS.leaseDurationMs, check.run);
      assert.equal(check.writers.length, 1);
      if (interference.length === 0) assert.equal(check.overlaps, 0);
      overlaps += check.overlaps;
      handOvers += store.holders.size - 1;
    }),
    { numRuns: SCHEDULES, seed: 1 },
  );
  assert.ok(handOvers > SCHEDULES, `${handOvers} hand-overs`);
  assert.ok(overlaps < SCHEDULES / 20, `${overlaps} overlaps of processes that could not know`);
});
