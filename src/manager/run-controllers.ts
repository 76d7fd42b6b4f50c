import { InformerSet } from '../cache/informer-set.ts';
import type { Client } from '../client/client.ts';
import { metricsOf } from '../metrics/metrics.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { createRegistry, expose } from '../metrics/registry.ts';
import type { Exposition } from '../metrics/registry.ts';
import { EventBroadcaster } from '../record/event-broadcaster.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { withSyncBarrier } from './sync-barrier.ts';
import { partOf } from './leadership.ts';
import type { LeaderElectionOptions } from './leadership.ts';
import { LeaseSightings } from './lease-sightings.ts';
import { Manager } from './manager.ts';
import { RunHistory } from './history/run-history.ts';
import { isLoopback } from './serving/bind-address.ts';
import { cachePage } from './serving/cache-page.ts';
import { debugPages } from './serving/debug-pages.ts';
import { HttpServer } from './serving/http-server.ts';
import { statusPage } from './serving/status-page.ts';
import type { StatusPageDeps } from './serving/status-page.ts';
import { terminationSignal } from './signals.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const MANAGER_OPTIONS: OptionNames<ControllerManagerOptions> = {
  client: true,
  controllers: true,
  log: true,
  clock: true,
  random: true,
  host: true,
  resyncPeriodMs: true,
  gracefulShutdownTimeoutMs: true,
  leaderElection: true,
  metrics: true,
  history: true,
  debug: true,
  freeze: true,
};

const DEBUG_OPTIONS: OptionNames<DebugOptions> = {
  bindAddress: true,
  version: true,
  expose: true,
  redact: true,
};

/** What controllers are built from: pass it on to `new Controller`, and take informers from it. */
export interface ControllerKit extends ControllerDeps {
  /** Shared: however many controllers ask for the informer of a kind, there is one. */
  readonly informers: InformerSet;
  /** `events.recorder('web-controller')` tells users what happened to their objects. */
  readonly events: EventBroadcaster;
}

export type { LeaderElectionOptions } from './leadership.ts';

/** The debug pages of a program: what `crd-controller top` shows. */
export interface DebugOptions {
  /** `127.0.0.1:6060`: loopback alone, since the pages show object names and messages of errors. */
  readonly bindAddress: string;
  /**
   * The program's version.
   * @default 'unknown'
   */
  readonly version?: string | undefined;
  /**
   * Returns the series of `metrics`: `() => expose(registry)`.
   * @default those of a registry of its own, if `metrics` is not given; else none are served
   */
  readonly expose?: (() => Promise<Exposition>) | undefined;
  /**
   * Masks credentials in texts.
   * @default nothing is masked
   */
  readonly redact?: ((text: string) => string) | undefined;
}

export interface ControllerManagerOptions {
  readonly client: Client;
  /** Builds the controllers. Called once; nothing has been sent to the server by then. */
  readonly controllers: (kit: ControllerKit) => readonly Controller[];
  /** @default silentLogger */
  readonly log?: Logger | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /**
   * Numbers in [0, 1), for jitter and the names of runs.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  /**
   * The machine or Pod that events come from.
   * @default none
   */
  readonly host?: string | undefined;
  /**
   * How often every object is looked at again although nothing happened, in milliseconds; 0: never.
   * @default 0
   */
  readonly resyncPeriodMs?: number | undefined;
  /**
   * How long stopping may take, in milliseconds; runs in flight get three quarters of it.
   * @default 30_000
   */
  readonly gracefulShutdownTimeoutMs?: number | undefined;
  /** @default none: this process is the only one */
  readonly leaderElection?: LeaderElectionOptions | undefined;
  /** @default none are counted */
  readonly metrics?: Metrics | undefined;
  /** @default none is kept, unless `debug` is set */
  readonly history?: RunHistory | undefined;
  /**
   * Serves `/debug/queues`, `/debug/why`, `/debug/status`, `/debug/cache` and `/metrics`.
   * @default not served
   */
  readonly debug?: DebugOptions | undefined;
  /**
   * Freeze what is cached, so that whoever changes a shared object is thrown at. For tests.
   * @default false
   */
  readonly freeze?: boolean;
}

/** Of the time to stop: what runs in flight get, and what is left for their events. */
const DRAIN_PART = 3 / 4;
const FLUSH_PART = 1 / 6;
const LONGEST_FLUSH_MS = 5000;

/**
 * Controllers and all they need, wired as they should be: shared informers that start once every
 * controller has added its handlers, events on their own lane, and, where asked for, a leadership
 * that is held before the first key runs. Add servers of your own to what it returns.
 */
export function controllerManager(options: ControllerManagerOptions): Manager {
  checkOptions(options, MANAGER_OPTIONS, 'controllerManager');
  const { client, clock = systemClock, log = silentLogger, random = Math.random } = options;
  const { host, leaderElection, freeze = false, resyncPeriodMs = 0 } = options;
  const { metrics, history, serveDebug } = debugging(options, clock, log);
  const { gracefulShutdownTimeoutMs = 30_000 } = options;
  const flushTimeoutMs = Math.min(LONGEST_FLUSH_MS, FLUSH_PART * gracefulShutdownTimeoutMs);
  const informers = new InformerSet(client, {
    clock,
    log: log.named('cache'),
    random,
    freeze,
    ...(metrics && { metrics: metrics.reflector }),
  });
  const events = new EventBroadcaster(
    { client, clock, log: log.named('events') },
    { host, random, flushTimeoutMs, metrics: metrics?.events },
  );
  const leases = new LeaseSightings(clock);
  const electing = { clock, log, random, metrics: metrics?.leaderElection, onLease: leases.saw };
  const part = leaderElection && partOf({ ...electing, events, flushTimeoutMs }, leaderElection);
  const controllers = options.controllers({
    client,
    clock,
    log,
    random,
    informers,
    events,
    metrics,
    history,
    sharding: part?.sharding,
    resyncPeriodMs,
    drainTimeoutMs: DRAIN_PART * gracefulShutdownTimeoutMs,
  });
  const election = leaderElection && {
    identity: leaderElection.identity,
    leases: () => leases.all,
  };
  return new Manager({ clock, log }, { gracefulShutdownTimeoutMs, leadership: part?.leadership })
    .add('servers', ...serveDebug({ controllers, informers, election }))
    .add('caches', informers)
    .add('events', events)
    .add(
      'controllers',
      ...controllers.map((controller) =>
        // Shards are caught up with one by one.
        part && !part.sharding ? withSyncBarrier(controller, { clock, log, random }) : controller,
      ),
    );
}

interface Debugged {
  readonly controllers: readonly Controller[];
  readonly informers: InformerSet;
  readonly election: StatusPageDeps['election'];
}

interface Debugging {
  readonly metrics: Metrics | undefined;
  readonly history: RunHistory | undefined;
  readonly serveDebug: (debugged: Debugged) => Runnable[];
}

/** What the debug pages show is collected from the start, and served once everything is built. */
function debugging(
  { debug, ...given }: ControllerManagerOptions,
  clock: Clock,
  log: Logger,
): Debugging {
  const { metrics, history } = given;
  if (!debug) return { metrics, history, serveDebug: () => [] };
  checkOptions(debug, DEBUG_OPTIONS, 'debug');
  const { bindAddress, version = 'unknown', redact } = debug;
  if (!isLoopback(bindAddress)) {
    throw new RangeError(
      `debug.bindAddress must be on loopback, as in 127.0.0.1:6060: got ${JSON.stringify(bindAddress)}. To serve others, add an HttpServer with a guard to controllerManager`,
    );
  }
  const registry = metrics ? undefined : createRegistry();
  const exposition = debug.expose ?? (registry && (() => expose(registry)));
  const kept = history ?? new RunHistory();
  return {
    metrics: registry ? metricsOf(registry) : metrics,
    history: kept,
    serveDebug: ({ controllers, informers, election }) => {
      const all = () => informers.informers;
      const pages = new Map([
        ...debugPages({ controllers: () => controllers, history: kept, clock, redact }),
        ...statusPage({ clock, version, informers: all, election, redact }),
        ...cachePage(all),
      ]);
      const routes = { pages, ...(exposition && { metrics: exposition }) };
      return [new HttpServer({ log }, { name: 'debug', bindAddress, routes })];
    },
  };
}

/**
 * Runs controllers until `signal` aborts; without one, until SIGTERM or SIGINT. Resolves after an
 * orderly stop, rejects with what made it impossible to go on.
 */
export async function runControllers(
  options: ControllerManagerOptions,
  signal?: AbortSignal,
): Promise<void> {
  const manager = controllerManager(options);
  if (signal) {
    await manager.run(signal);
    return;
  }
  const termination = terminationSignal(process, options.log ?? silentLogger);
  try {
    await manager.run(termination.signal);
  } finally {
    termination.dispose();
  }
}
