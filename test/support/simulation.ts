import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { CustomResourceDefinition } from '../../src/api/builtin.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, EVENTS, PODS } from '../../src/api/builtin.ts';
import type { Event, Pod } from '../../src/api/builtin.ts';
import type { Count } from '../../src/api/generated/count.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { Draft } from '../../src/api/object.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { daemon } from '../../src/cli/daemon.ts';
import type { DaemonConfig } from '../../src/cli/daemon.ts';
import type { Client } from '../../src/client/client.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { Cluster } from '../../src/cluster/cluster.ts';
import type { ClusterOptions } from '../../src/cluster/cluster.ts';
import { FakeClock } from '../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { recordingLogger } from './recording-logger.ts';
import type { LogLine } from './recording-logger.ts';

export const IN_DEFAULT = { namespace: 'default', name: 'test-count' };

/** The server's address as far as messages go. */
const SERVER = 'https://simulated';

export const DAEMON_CONFIG: DaemonConfig = {
  controllers: ['count'],
  namespaces: [],
  concurrentSyncs: new Map(),
  resyncPeriodMs: 0,
  gracefulShutdownTimeoutMs: 30_000,
  healthProbeBindAddress: undefined,
  metricsBindAddress: undefined,
};

/**
 * An API server, the controllers of a cluster and any number of daemons in one process and one
 * virtual time, deterministic from a seed: everything random comes from it.
 */
export class Simulation {
  readonly clock = new FakeClock();
  readonly server: ApiServer;
  /** What daemons log, all of it. */
  readonly lines: LogLine[] = [];
  readonly #random: () => number;
  readonly #ends: (() => Promise<void>)[] = [];
  readonly client: Client;

  constructor(seed: number = 1) {
    this.#random = seeded(seed);
    let uids = 0;
    this.server = new ApiServer({
      clock: this.clock,
      random: this.#random,
      uid: () => `00000000-0000-4000-8000-${String(uids++).padStart(12, '0')}`,
    });
    this.client = this.clientOver(this.server.handler, 'test');
  }

  clientOver(handler: HttpHandler, userAgent: string): Client {
    return new HttpClient({ handler, server: SERVER, clock: this.clock, userAgent });
  }

  /** Starts what a cluster has besides its API server. */
  startCluster(options: ClusterOptions = {}): void {
    const client = this.clientOver(this.server.handler, 'cluster');
    const { log } = recordingLogger();
    const cluster = new Cluster({ client, clock: this.clock, log }, options);
    this.#start((signal) => cluster.run(signal));
  }

  /**
   * Starts a daemon; the returned function stops it as SIGTERM would and resolves once it has ended.
   * `around` is put around everything it sends.
   */
  startDaemon(
    config: Partial<DaemonConfig> = {},
    around: (handler: HttpHandler) => HttpHandler = (handler) => handler,
  ): () => Promise<void> {
    const client = this.clientOver(around(this.server.handler), 'daemon');
    const { log } = recordingLogger(this.lines);
    const deps = { client, clock: this.clock, log, random: this.#random, host: 'test' };
    const whole = daemon({ ...deps, freeze: true }, { ...DAEMON_CONFIG, ...config });
    return this.#start((signal) => whole.run(signal));
  }

  async installCrd(): Promise<void> {
    await this.client.create(CUSTOM_RESOURCE_DEFINITIONS, countCrd());
  }

  async applyCount(spec: Partial<Count['spec']> = {}, name: string = IN_DEFAULT.name) {
    await this.client.create(COUNTS, countDraft(spec, name));
  }

  async patchCount(spec: Partial<Count['spec']>): Promise<void> {
    await this.client.patch(COUNTS, IN_DEFAULT, { type: 'merge', body: { spec } });
  }

  count(): Promise<Count> {
    return this.client.get(COUNTS, IN_DEFAULT);
  }

  async pods(): Promise<Pod[]> {
    return (await this.client.list(PODS, { namespace: 'default' })).items;
  }

  async podNames(): Promise<string[]> {
    return (await this.pods()).map(({ metadata }) => metadata.name).toSorted();
  }

  /** `Reason message` of each event about Counts, once each, sorted. */
  async events(): Promise<string[]> {
    const { items } = await this.client.list(EVENTS);
    return items.map(describeEvent).toSorted();
  }

  errors(): string[] {
    return this.lines
      .filter(({ level }) => level === 'error')
      .map(({ message, error }) => `${message}: ${error instanceof Error ? error.message : ''}`);
  }

  /** Moves time on, a little at a time, until `condition` holds; fails after `withinMs`. */
  async until(
    what: string,
    condition: () => Promise<boolean>,
    { withinMs = 60_000, stepMs = 20 } = {},
  ): Promise<void> {
    const deadline = this.clock.monotonic() + withinMs;
    while (!(await condition())) {
      if (this.clock.monotonic() >= deadline) {
        throw new Error(`Not within ${withinMs} ms: ${what}\n${this.errors().join('\n')}`);
      }
      await this.clock.advance(stepMs);
    }
  }

  async untilReady(count: number): Promise<void> {
    await this.until(`${count} Pods ready`, async () => {
      const { metadata, status } = await this.count();
      return (
        status?.observedGeneration === metadata.generation &&
        status?.readyReplicas === count &&
        (status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ??
          false) &&
        (await this.pods()).length === count
      );
    });
  }

  /** Moves time on until `quietMs` pass in which nothing but reads reaches the server. */
  async settle(quietMs: number = 2000): Promise<void> {
    const writes = () =>
      this.server.requests.count() -
      ['get', 'list', 'watch'].reduce((sum, verb) => sum + this.server.requests.count({ verb }), 0);
    for (let before = -1; before !== writes();) {
      before = writes();
      await this.clock.advance(quietMs);
    }
  }

  /** Stops everything, daemons first. */
  async end(): Promise<void> {
    for (const stop of this.#ends.splice(0).toReversed()) await stop();
  }

  #start(run: (signal: AbortSignal) => Promise<void>): () => Promise<void> {
    const stop = new AbortController();
    const life = { ended: false };
    const running = run(stop.signal).finally(() => (life.ended = true));
    const end = async () => {
      stop.abort();
      for (let waitedMs = 0; !life.ended && waitedMs < 60_000; waitedMs += 100) {
        await this.clock.advance(100);
      }
      await running;
    };
    this.#ends.push(end);
    return end;
  }
}

export function countCrd(): Draft<CustomResourceDefinition> {
  const file = join(import.meta.dirname, '../../crds/counts.demo.mark8s.io.yaml');
  return parse(readFileSync(file, 'utf8')) as Draft<CustomResourceDefinition>;
}

export function countDraft(
  spec: Partial<Count['spec']> = {},
  name: string = IN_DEFAULT.name,
): Draft<Count> {
  return {
    apiVersion: 'demo.mark8s.io/v1',
    kind: 'Count',
    metadata: { name, namespace: 'default' },
    spec: { name: 'nginx', count: 3, ...spec },
  };
}

export function describeEvent(event: Event): string {
  return `${event.reason} ${event.message}`;
}

/** Mulberry32: small, and good enough to spread. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
