import assert from 'node:assert/strict';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import type { ApiServerOptions } from '../../src/apiserver/api-server-options.ts';
import type { ManagerConfig } from '../../src/cli/commands/run.ts';
import type { Client } from '../../src/client/client.ts';
import { dryRunClient } from '../../src/client/dry-run.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { Cluster } from '../../src/cluster/cluster.ts';
import type { ClusterOptions } from '../../src/cluster/cluster.ts';
import { SinglePass } from '../../src/manager/single-pass.ts';
import { runControllers } from '../../src/manager/run-controllers.ts';
import type { ControllerManagerOptions } from '../../src/manager/run-controllers.ts';
import type { Clock } from '../../src/util/clock.ts';
import { FakeClock } from '../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { seededRandom } from '../../src/util/seeded-random.ts';
import { recordingLogger } from './recording-logger.ts';
import type { LogLine } from './recording-logger.ts';
import { CLUSTER_AGENT, TEST_AGENT } from './wire-rules.ts';
import type { RateLimit, WireRules } from './wire-rules.ts';
import { newDaemon, TestCluster } from './test-cluster.ts';

const WEEK_MS = 7 * 24 * 3_600_000;

/**
 * An API server, cluster controllers and any number of daemons in one process with virtual time.
 * Deterministic: a seed determines all random numbers.
 */
export class Simulation extends TestCluster {
  readonly isVirtual = true;
  readonly namespace = 'default';
  readonly server: ApiServer;
  readonly client: Client;
  /** Log lines of the cluster controllers, without those of a verbosity. */
  readonly clusterLines: LogLine[] = [];
  protected readonly daemonClient: Client;
  protected readonly quietMs = 2000;
  protected readonly clock = new FakeClock();
  protected readonly random: () => number;
  #leavesTimers = false;

  constructor(seed: number = 1) {
    super();
    this.random = seededRandom(seed);
    let uids = 0;
    this.server = new CheckedServer(this.wire, {
      clock: this.clock,
      random: this.random,
      storageProtection: true,
      uid: () => `00000000-0000-4000-8000-${String(uids++).padStart(12, '0')}`,
    });
    this.client = this.clientOver(this.server.handler, TEST_AGENT);
    this.daemonClient = this.clientOver(this.server.handler, 'daemon');
  }

  /** Rejects, too, if a timer is left after everything has stopped. */
  override async end(): Promise<void> {
    await super.end();
    if (!this.#leavesTimers) assert.equal(this.clock.pending, 0, 'timers are left');
  }

  /** A process was killed, whose timers are left. */
  protected leaveTimers(): void {
    this.#leavesTimers = true;
  }

  /** Clock of the daemons. */
  get time(): Clock {
    return this.clock;
  }

  pass(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Resolves after `ms` milliseconds, which others advance. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.clock.sleep(ms, signal);
  }

  elapsedMs(): number {
    return this.clock.monotonic();
  }

  /** Moves the wall clock forward or back. Timers are not affected. */
  jump(ms: number): void {
    this.clock.jump(ms);
  }

  /** Starts the cluster controllers, whose requests pass through `around`. Returns a function that stops them. */
  startCluster(
    options: ClusterOptions = {},
    around: (handler: HttpHandler) => HttpHandler = (handler) => handler,
  ): () => Promise<void> {
    const client = this.clientOver(around(this.server.handler), CLUSTER_AGENT);
    const { log } = recordingLogger(this.clusterLines, 0);
    const cluster = new Cluster(
      { client, clock: this.clock, log, random: () => 0.5 },
      // Tests that pass hours count the events of the whole time.
      { events: { ttlMs: WEEK_MS }, ...options },
    );
    return this.start((signal) => cluster.run(signal));
  }

  /** Starts a daemon whose requests pass through `around`. */
  startDaemonBehind(
    around: (handler: HttpHandler) => HttpHandler,
    config: Partial<ManagerConfig> = {},
  ): () => Promise<void> {
    return this.startDaemon(config, this.clientOver(around(this.server.handler), 'daemon'));
  }

  /** Returns a client for daemons with a rate limit. */
  limitedClient(limit: RateLimit): Client {
    const handler = this.wire.limited(this.server.handler, limit, this.clock);
    return this.clientOver(handler, 'daemon', limit);
  }

  /**
   * Runs a single pass of a daemon.
   *
   * @returns whether nothing is left to do
   */
  async singlePass(
    config: Partial<ManagerConfig> = {},
    { isDryRun = false } = {},
  ): Promise<boolean> {
    const { clock, random } = this;
    const { log } = recordingLogger(this.lines);
    const own = this.clientOver(this.server.handler, 'daemon');
    const client = isDryRun ? dryRunClient(own, log) : own;
    const singlePass = new SinglePass({ clock, log }, { isDryRun });
    const whole = newDaemon(
      { client, clock, log, random, host: 'test', singlePass, freeze: true },
      config,
    );
    let isOver = false;
    this.start((signal) => whole.run(signal).finally(() => (isOver = true)));
    await this.until('the pass is over', () => Promise.resolve(isOver), { withinMs: 120_000 });
    return singlePass.hasConverged;
  }

  /** Starts controllers like a program that uses the library. */
  startControllers(controllers: ControllerManagerOptions['controllers']): () => Promise<void> {
    const { daemonClient: client, clock, random } = this;
    const { log } = recordingLogger(this.lines);
    const options = { client, clock, random, log, freeze: true, controllers };
    return this.start((signal) => runControllers(options, signal));
  }

  private clientOver(
    handler: HttpHandler,
    userAgent: string,
    limit: Partial<RateLimit> = {},
  ): Client {
    const { clock } = this;
    return this.wire.follow(
      new HttpClient({ handler, server: 'https://simulated', clock, userAgent, ...limit }),
    );
  }
}

/** Checks the requests of all clients. */
class CheckedServer extends ApiServer {
  declare readonly handler: HttpHandler;

  constructor(rules: WireRules, options: ApiServerOptions) {
    super(options);
    this.handler = rules.around(this.handler);
  }
}
