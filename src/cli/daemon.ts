import { InformerSet } from '../cache/informer-set.ts';
import type { TweakListOptions } from '../cache/list-options.ts';
import { WatchListSupport } from '../cache/reflector-watch.ts';
import type { Client } from '../client/client.ts';
import { serverVersion } from '../client/discovery.ts';
import { CONTROLLERS } from '../controllers/registry.ts';
import type { LeaderElector } from '../leaderelection/leader-elector.ts';
import type { Controller } from '../manager/controller.ts';
import { cachePage } from '../manager/serving/cache-page.ts';
import { debugPages } from '../manager/serving/debug-pages.ts';
import { withSyncBarrier } from '../manager/sync-barrier.ts';
import type { HealthCheck } from '../manager/serving/health-probe.ts';
import { partOf } from '../manager/leadership.ts';
import type { Part, PartDeps } from '../manager/leadership.ts';
import { Manager } from '../manager/manager.ts';
import type { Pass } from '../manager/pass.ts';
import { LeaseSightings } from '../manager/lease-sightings.ts';
import type { Pages } from '../manager/serving/page.ts';
import { RunHistory } from '../manager/history/run-history.ts';
import { statusPage } from '../manager/serving/status-page.ts';
import type { ManagerMetrics } from '../metrics/reconcile-metrics.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Exposition } from '../metrics/registry.ts';
import { EventBroadcaster } from '../record/event-broadcaster.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { profilingOf } from './serving/profiling.ts';
import { debugFlags, endpoints } from './serving/endpoints.ts';
import type { EndpointRoutes, SecureServing } from './serving/endpoints.ts';
import type { LeadershipDeps } from './leadership.ts';
import { clockSkew, Heartbeat } from './serving/liveness.ts';
import type { LogLevel } from './logs/log-level.ts';
import { manifest } from './package.ts';
import { readiness } from './serving/readiness.ts';
import { reportPage } from './serving/report-page.ts';
import { redactText } from './logs/redact.ts';
import type { LeaderElectionConfig, RunConfig } from './run-config.ts';

export interface DaemonDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /** @default none are counted, none are served */
  readonly metrics?: { readonly metrics: Metrics; expose(): Promise<Exposition> };
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** What events say where they come from: the Pod or machine. */
  readonly host: string;
  /** What it takes to lead. Needed where `leaderElection` is configured: `client` must be fenced then. */
  readonly leadership?: LeadershipDeps | undefined;
  /** Ends the daemon when it is over, and knows then what is left to do. */
  readonly pass?: Pass | undefined;
  /** What it takes to serve what is not for everybody. Needed where `config` asks for that. */
  readonly secure?: SecureServing | undefined;
  /** What `/debug/flags/v` changes. */
  readonly logLevel?: LogLevel | undefined;
  /** Freeze what is cached; for tests. */
  readonly freeze?: boolean;
}

export type DaemonConfig = Pick<
  RunConfig,
  | 'controllers'
  | 'namespaces'
  | 'concurrentSyncs'
  | 'podCountEvents'
  | 'resyncPeriodMs'
  | 'leaderElection'
  | 'gracefulShutdownTimeoutMs'
  | 'healthProbeBindAddress'
  | 'metricsBindAddress'
  | 'debugBindAddress'
> &
  Partial<Pick<RunConfig, 'labelSelector' | 'features' | 'profilerAddress' | 'serving'>>;

/**
 * Parts of the time to stop: for runs in flight before they are told to hurry, and at most for the
 * events they have left. The rest is for those who hurry, and for what is quick.
 */
const DRAIN_PART = 3 / 4;
const FLUSH_PART = 1 / 6;
const LONGEST_FLUSH_MS = 5000;

/**
 * The daemon: the controllers that `config` names and all they need, over any client. Shared
 * informers start once, after every controller has added its handlers.
 */
export function daemon(deps: DaemonDeps, config: DaemonConfig): Runnable {
  const { client, clock, log, random, host, pass, freeze = false } = deps;
  const metrics = deps.metrics?.metrics;
  const { gracefulShutdownTimeoutMs, leaderElection } = config;
  const flushTimeoutMs = Math.min(LONGEST_FLUSH_MS, FLUSH_PART * gracefulShutdownTimeoutMs);
  const informers = new InformerSet(client, {
    clock,
    log: log.named('cache'),
    random,
    freeze,
    watchList: new WatchListSupport(clock, { enabled: config.features?.WatchListClient ?? true }),
    tweakListOptions: onlySelected(config),
    ...(metrics ? { metrics: metrics.reflector } : {}),
  });
  const events = new EventBroadcaster(
    { client, clock, log: log.named('events') },
    { host, random, metrics: metrics?.events, flushTimeoutMs },
  );
  const leases = new LeaseSightings(clock);
  const part =
    leaderElection && partIn(deps, leaderElection, { events, flushTimeoutMs, onLease: leases.saw });
  const history = config.debugBindAddress ? new RunHistory() : undefined;
  const debugged: Controller[] = [];
  const shared = {
    client,
    clock,
    log,
    random,
    informers,
    events,
    metrics,
    history,
    observe: pass?.observe,
    sharding: part?.sharding,
    drainTimeoutMs: DRAIN_PART * gracefulShutdownTimeoutMs,
    resyncPeriodMs: config.resyncPeriodMs,
  };
  const stopping = new AbortController();
  const heartbeat = new Heartbeat(clock);
  const health = {
    livez: [heartbeat.check, clockSkew(clock), ...(part ? [leads(part.leadership)] : [])],
    readyz: [...readiness(() => informers.informers, clock), stops(stopping.signal)],
  };
  const pages: Pages | undefined =
    history &&
    new Map([
      ...debugPages({ controllers: () => debugged, history, clock, redact: redactText }),
      ...statusPage({
        clock,
        version: `v${manifest().version}`,
        informers: () => informers.informers,
        election: deps.leadership && {
          identity: deps.leadership.identity,
          leases: () => leases.all,
        },
        redact: redactText,
      }),
      ...cachePage(() => informers.informers),
      ...reportPage(redactText),
    ]);
  const { profilerAddress } = config;
  const profiling =
    profilerAddress === undefined
      ? undefined
      : profilingOf({ clock, log: log.named('profiler') }, profilerAddress);
  const { metrics: exposed } = deps;
  const scrape = exposed && { metrics: () => exposed.expose() };
  const routes: EndpointRoutes = {
    health,
    metrics: scrape,
    debug: pages && {
      pages,
      // With all that a live view shows, metrics too.
      ...scrape,
      ...(deps.logLevel && { settings: debugFlags(deps.logLevel) }),
    },
    profiling: profiling && { downloads: profiling.downloads },
  };
  const manager = new Manager(
    { clock, log },
    { gracefulShutdownTimeoutMs, leadership: part?.leadership },
  )
    .add('servers', ...endpoints({ clock, log, routes, secure: deps.secure }, config))
    .add('servers', ...(config.healthProbeBindAddress ? [heartbeat] : []))
    .add('servers', ...(profiling ? [profiling.profiler] : []))
    .add('servers', greeting(client, log))
    .add('caches', informers)
    .add('events', events);
  for (const name of config.controllers) {
    const registered = CONTROLLERS.get(name);
    if (!registered) throw new RangeError(`No controller is called "${name}"`);
    const concurrency = config.concurrentSyncs.get(name) ?? 2;
    const selection = { namespaces: config.namespaces };
    if (registered.isClusterScoped && config.namespaces.length > 0) {
      log.info('Not started: it is about the whole cluster, and --namespaces is set', {
        controller: name,
      });
      continue;
    }
    const podEvents = config.podCountEvents;
    const controller = registered.build(shared, { name, selection, concurrency, podEvents });
    debugged.push(controller);
    // Shards are caught up with one by one.
    const isSole = part && !part.sharding;
    const fresh = isSole ? withSyncBarrier(controller, { clock, log, random }) : controller;
    manager.add('controllers', metrics ? told(fresh, metrics.manager) : fresh);
  }
  if (pass) manager.add('controllers', endedBy(pass, stopping));
  return {
    name: 'daemon',
    run: (signal) => {
      const stop = () => stopping.abort(signal.reason);
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { once: true });
      return manager.run(stopping.signal);
    },
  };
}

function partIn(
  { leadership, clock, random, log, metrics }: DaemonDeps,
  config: LeaderElectionConfig,
  rest: Pick<PartDeps, 'events' | 'flushTimeoutMs' | 'onLease'>,
): Part {
  if (!leadership) throw new TypeError('leadership must be given: leaderElection is configured');
  const counted = metrics?.metrics.leaderElection;
  return partOf({ clock, random, log, metrics: counted, ...rest }, { ...config, ...leadership });
}

function endedBy(pass: Pass, stopping: AbortController): Runnable {
  return {
    name: pass.name,
    run: async (signal) => {
      await pass.run(signal);
      stopping.abort(new Error('The pass is over'));
    },
  };
}

/** Of the kinds that controllers are for, what has the labels; of all others, everything. */
function onlySelected({ controllers, labelSelector = '' }: DaemonConfig): TweakListOptions {
  const subjects = new Set(controllers.map((name) => CONTROLLERS.get(name)?.resource));
  return (options, resource) => {
    if (labelSelector === '' || !subjects.has(resource)) return options;
    const others = options.labelSelector ? [options.labelSelector] : [];
    return { ...options, labelSelector: [labelSelector, ...others].join(',') };
  };
}

/** Asks the server for its version, for the log. Whether it can be reached is not told here. */
function greeting(client: Client, log: Logger): Runnable {
  return {
    name: 'greeting',
    run: async (signal) => {
      if (!log.v(1).enabled) return;
      try {
        const { gitVersion, platform } = await serverVersion(client, signal);
        log.v(1).info('API server', { version: gitVersion, platform });
      } catch (error) {
        log.v(4).info('The API server did not tell its version', { err: error });
      }
    },
  };
}

/** While it runs, the metrics say so. */
function told(controller: Runnable, metrics: ManagerMetrics): Runnable {
  const { name } = controller;
  metrics.running(name, false);
  return {
    name,
    run: async (signal) => {
      metrics.running(name, true);
      try {
        await controller.run(signal);
      } finally {
        metrics.running(name, false);
      }
    },
  };
}

/** A leader that neither renews nor gives up is restarted. A standby is as well as a leader. */
function leads(elector: Pick<LeaderElector, 'health'>): HealthCheck {
  return { name: 'leaderElection', check: () => elector.health() };
}

function stops(signal: AbortSignal): HealthCheck {
  return { name: 'shutdown', check: () => (signal.aborted ? 'shutting down' : undefined) };
}
