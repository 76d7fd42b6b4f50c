import { InformerSet } from '../cache/informer-set.ts';
import type { InformerSetOptions } from '../cache/informer-set.ts';
import { WatchListSupport } from '../cache/reflector-watch.ts';
import type { Client } from '../client/client.ts';
import type { ClusterConnection } from '../client/cluster-connection.ts';
import { customMetrics } from '../metrics/custom-metrics.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { ManagerMetrics } from '../metrics/reconcile-metrics.ts';
import type { EventApiVersion } from '../record/event-api.ts';
import { EventBroadcaster } from '../record/event-broadcaster.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { textLogger } from '../util/text-logger.ts';
import type { Controller } from './controller.ts';
import { withSyncBarrier } from './sync-barrier.ts';
import { newCoordination } from './coordination.ts';
import type { GivenElection } from './coordination.ts';
import { ObservedLeases } from '../serving/debug-pages.ts';
import type { LeaderTerms } from '../leaderelection/leader-terms.ts';
import { fenced, withElectionDefaults } from './leader-election-defaults.ts';
import { Manager } from './manager.ts';
import { RemoteClusters } from './controller-kit.ts';
import type { ClusterParts, ControllerKit } from './controller-kit.ts';
import { termClient } from './term-client.ts';
import type { ProgramTap } from './program-tap.ts';
import type { SyncHistory } from './sync-history.ts';
import type { SinglePass } from './single-pass.ts';
import type { OpenTelemetryApi } from '../util/open-telemetry.ts';
import { terminationSignal } from './signals.ts';
import { webhookServing } from './webhook-serving.ts';
import type { WebhookServing, WebhookServingOptions } from './webhook-serving.ts';
import type { Webhooks } from '../webhook/webhooks.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import { debugging } from './program-pages.ts';
import type { ControllerProgram, DebugOptions } from './program-pages.ts';

const MANAGER_OPTIONS: OptionNames<ControllerManagerOptions> = {
  client: true,
  name: true,
  controllers: true,
  log: true,
  clock: true,
  fetch: true,
  random: true,
  host: true,
  eventApiVersion: true,
  resyncPeriodMs: true,
  gracefulShutdownTimeoutMs: true,
  leaderElection: true,
  metrics: true,
  history: true,
  informers: true,
  tracing: true,
  singlePass: true,
  servers: true,
  debug: true,
  webhooks: true,
  webhookServer: true,
  recorder: true,
  freeze: true,
};

export type { ControllerKit } from './controller-kit.ts';
export type { LeaderElectionOptions } from './coordination.ts';

/** Options of {@link controllerManager}. */
export interface ControllerManagerOptions {
  readonly client: Client;
  /**
   * Name of the program: `backup-operator`. It names the Lease, and the program in `top`.
   * @default none; required by `leaderElection: true`
   */
  readonly name?: string | undefined;
  /** Builds the controllers: a function for each, or one for all. Called once, before any request is sent. */
  readonly controllers:
    | readonly ((kit: ControllerKit) => Controller)[]
    | ((kit: ControllerKit) => readonly Controller[]);
  /** @default silentLogger */
  readonly log?: Logger | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /**
   * Sends the requests of `callService`. Pass that of a `FakeFetch` in tests.
   * @default the global `fetch`
   */
  readonly fetch?: typeof fetch | undefined;
  /**
   * Random numbers in [0, 1), for jitter and IDs of syncs.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  /**
   * The host or Pod in the source of events.
   * @default none
   */
  readonly host?: string | undefined;
  /**
   * API in which Events are written: `v1` or `events.k8s.io/v1`, which has series instead of counts.
   * @default 'v1'
   */
  readonly eventApiVersion?: EventApiVersion | undefined;
  /**
   * Period after which every object is synced again without a change, in milliseconds; 0 disables resyncs.
   * @default 0
   */
  readonly resyncPeriodMs?: number | undefined;
  /**
   * Time to stop, in milliseconds. Running syncs have three quarters of it to finish, and events what is left.
   * @default 30_000
   */
  readonly gracefulShutdownTimeoutMs?: number | undefined;
  /**
   * Elects a leader, or distributes shards, among several replicas. `true` has these defaults, which an object can
   * replace: a Lease with the name of the program in the namespace of the kubeconfig or Pod, an identity of its own,
   * and the durations of `LeaderElectorOptions`. Writes of the kit's clients are fenced, and `client` itself is not.
   * @default false: this process is the only one
   */
  readonly leaderElection?: boolean | GivenElection | undefined;
  /** @default none */
  readonly metrics?: Metrics | undefined;
  /** @default none, unless `debug` is set */
  readonly history?: SyncHistory | undefined;
  /** Options of all informers. */
  readonly informers?:
    Pick<InformerSetOptions, 'namespaces' | 'tweakListOptions' | 'watchList'> | undefined;
  /**
   * Creates an OpenTelemetry span for each sync and each of its requests. Pass the module:
   * `import * as opentelemetry from '@opentelemetry/api'`.
   * @default none
   */
  readonly tracing?: OpenTelemetryApi | undefined;
  /**
   * Stops the program when every object has been synced once.
   * @default the program runs until its signal aborts
   */
  readonly singlePass?: SinglePass | undefined;
  /**
   * Builds servers, such as probes and metrics, that start first and stop last. Called once, after `controllers`.
   * @default none
   */
  readonly servers?: ((program: ControllerProgram) => readonly Runnable[]) | undefined;
  /**
   * Serves the page `/debug/` for a browser, `/debug/queues`, `/debug/keys`, `/debug/why`, `/debug/status`,
   * `/debug/cache` and `/metrics`.
   * @default none
   */
  readonly debug?: DebugOptions | undefined;
  /**
   * Declaration of webhooks, or a function that declares them with the kit, called once, after `controllers`. Every
   * replica serves them, also a standby. A dry run and a single pass do not serve them.
   * @default none
   */
  readonly webhooks?: Webhooks | ((kit: ControllerKit) => Webhooks) | undefined;
  /**
   * Address and certificate of the webhooks.
   * @default port 9443, with a certificate of its own in a Secret, which needs `name`
   */
  readonly webhookServer?: WebhookServingOptions | undefined;
  /**
   * Records what the controllers see and do: a `FlightRecorder`.
   * @default none
   */
  readonly recorder?: ProgramTap | undefined;
  /**
   * Freezes cached objects, so that changing one throws. For tests.
   * @default false
   */
  readonly freeze?: boolean | undefined;
}

/** Shares of the time to stop: for running syncs, and for caches and servers. Lease and events have the rest. */
const DRAIN_SHARE = 3 / 4;
const LAST_STAGES_SHARE = 1 / 30;

/** Number of events kept for the debug pages. */
const RECENT_EVENTS = 500;

/**
 * Connects controllers with everything they need: shared informers that start when all event handlers are
 * registered, an event broadcaster, leader election or shards, and servers. Programs of
 * `runProgram` are built by this function, too.
 */
export function controllerManager(given: ControllerManagerOptions): Manager {
  checkOptions(given, MANAGER_OPTIONS, 'controllerManager');
  const options = { ...given, ...withElectionDefaults(given) };
  const { client, log = silentLogger, recorder: tap } = options;
  const { clock: time = systemClock, random: numbers = Math.random } = options;
  const clock = tap?.clock(time) ?? time;
  const random = tap?.random(numbers) ?? numbers;
  const { host, leaderElection, freeze = false, resyncPeriodMs = 0, singlePass } = options;
  const { gracefulShutdownTimeoutMs = 30_000, eventApiVersion: apiVersion } = options;
  const { metrics, history, serveDebug } = debugging(options, clock, log);
  const flushTimeoutMs = () =>
    Math.max(0, manager.timeToStopMs - LAST_STAGES_SHARE * gracefulShutdownTimeoutMs);
  const open = (given: Client, cluster?: string): ClusterParts => {
    const client = tap?.client(given, cluster) ?? given;
    return {
      client,
      informers: new InformerSet(client, {
        ...options.informers,
        ...(cluster !== undefined && { cluster, watchList: new WatchListSupport(clock) }),
        clock,
        log: log.named('cache'),
        random,
        freeze,
        metrics: metrics?.reflector,
        onInformer: tap && ((informer, selection) => tap.informer(informer, selection)),
      }),
      events: new EventBroadcaster(
        { client, clock, log: log.named('events') },
        {
          host,
          random,
          flushTimeoutMs,
          apiVersion,
          metrics: metrics?.events,
          recent: history ? RECENT_EVENTS : 0,
          onEvent: tap && ((event) => tap.event(event)),
        },
      ),
    };
  };
  const { informers, events, client: own } = open(client);
  const leases = new ObservedLeases(clock);
  const coordination =
    leaderElection &&
    newCoordination(
      {
        clock,
        log,
        random,
        metrics: metrics?.leaderElection,
        onLease: leases.observe,
        events,
        stepDownTimeoutMs: gracefulShutdownTimeoutMs,
      },
      leaderElection,
    );
  const terms = coordination?.terms;
  const guarded = (one: Client) => (terms ? termClient(one, () => terms.term) : one);
  const remotes = new RemoteClusters((name, remote) => {
    const parts = open(leaderElection ? fenced(remote, leaderElection.fence) : remote, name);
    return { ...parts, client: guarded(parts.client) };
  });
  const kit: ControllerKit = {
    client: guarded(own),
    clock,
    log,
    random,
    informers,
    events,
    metrics,
    history,
    tracing: options.tracing,
    fetch: tap ? tap.fetch(options.fetch) : options.fetch,
    tap,
    observe: singlePass?.observe,
    sharding: coordination?.sharding,
    resyncPeriodMs,
    drainTimeoutMs: DRAIN_SHARE * gracefulShutdownTimeoutMs,
    customMetrics: metrics?.custom ?? customMetrics(),
    forCluster: (name, remote) => remotes.kit(kit, name, remote),
  };
  const { controllers: build } = options;
  const controllers = typeof build === 'function' ? build(kit) : build.map((each) => each(kit));
  const webhooks = servingOf(options, kit, given.client);
  const clusters = remotes.close();
  const leadership = coordination?.leadership;
  const manager = new Manager({ clock, log }, { gracefulShutdownTimeoutMs, leadership });
  const program: ControllerProgram = {
    controllers,
    informers,
    remoteInformers: clusters.map((cluster) => cluster.informers),
    get recentEvents() {
      return [events, ...clusters.map((cluster) => cluster.events)].flatMap(({ recent }) => recent);
    },
    leadership,
    identity: leaderElection?.identity,
    get leases() {
      return leases.all;
    },
    stopping: manager.stopping,
    webhooks,
  };
  if (tap) {
    const term = tap.term(leadership !== undefined);
    manager.add('servers', tap);
    manager.add('controllers', terms ? inTerms(term, terms) : term);
  }
  // Shards have a barrier of their own, one for each shard.
  const needsBarrier = coordination && !coordination.sharding;
  manager
    .add('servers', ...(options.servers?.(program) ?? []), ...serveDebug(program))
    .add('servers', ...(webhooks?.servers ?? []))
    .add('caches', informers, ...clusters.map((cluster) => cluster.informers))
    .add('events', events, ...clusters.map((cluster) => cluster.events));
  for (const controller of controllers) {
    const runnable = needsBarrier
      ? withSyncBarrier(controller, { clock, log, random })
      : controller;
    const measured = metrics ? withRunningMetric(runnable, metrics.manager) : runnable;
    const restart = () => controller.restart();
    manager.add('controllers', terms ? inTerms(measured, terms, restart) : measured);
  }
  for (const runnable of webhooks?.leader ?? []) {
    manager.add('controllers', terms ? inTerms(runnable, terms) : runnable);
  }
  if (singlePass) manager.add('controllers', stopAfterPass(singlePass, manager));
  return manager;
}

/** Returns the server of the program's webhooks, if it has any. */
function servingOf(
  { webhooks, webhookServer, singlePass, name }: ControllerManagerOptions,
  kit: ControllerKit,
  client: Client,
): WebhookServing | undefined {
  if (!webhooks) return undefined;
  // The API server must not get answers of a program that only shows what it would do, or that ends.
  if (kit.client.isDryRun || singlePass) {
    kit.log.info('Not serving webhooks in a dry run or single pass');
    return undefined;
  }
  const declared = typeof webhooks === 'function' ? webhooks(kit) : webhooks;
  return webhookServing(declared, webhookServer ?? {}, { kit, name, client });
}

/** Sets the metric of running controllers while `controller` runs. */
function withRunningMetric(controller: Runnable, metrics: ManagerMetrics): Runnable {
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

/**
 * Runs `runnable` in each term.
 *
 * @param restart called at the end of a term, if the program does not stop
 */
function inTerms(runnable: Runnable, terms: LeaderTerms, restart?: () => void): Runnable {
  return {
    name: runnable.name,
    run: (signal) =>
      terms.during((end) => {
        const ended = () => void (signal.aborted || restart?.());
        end.addEventListener('abort', ended, { once: true });
        return runnable.run(end);
      }, signal),
  };
}

function stopAfterPass(pass: SinglePass, manager: Manager): Runnable {
  return {
    name: pass.name,
    run: async (signal) => {
      await pass.run(signal);
      manager.stop(new Error('The single pass is complete'));
    },
  };
}

/** Options of `runControllers`: those of `controllerManager`, with a connection by default. */
export interface RunControllersOptions extends Omit<ControllerManagerOptions, 'client' | 'log'> {
  /**
   * Client of the controllers.
   * @default a connection to the cluster of the kubeconfig or the Pod, which is closed at the end
   */
  readonly client?: Client | undefined;
  /** @default klog's text format on standard error; with a `client`, silentLogger */
  readonly log?: Logger | undefined;
}

/**
 * Runs controllers until `signal` aborts, or without a signal until SIGTERM or SIGINT. Resolves after a clean stop;
 * rejects with the error that ended the program.
 *
 * @example
 * ```ts
 * import { Controller, done, HttpClient, runControllers } from 'crd-controller';
 * import type { ControllerKit } from 'crd-controller';
 * import { NAMESPACES } from 'crd-controller/kinds';
 * import { ApiServer } from 'crd-controller/testing';
 *
 * const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
 * const stop = new AbortController();
 * const controllers = (kit: ControllerKit) => [
 *   new Controller(kit, {
 *     name: 'greeting',
 *     kind: 'Namespace',
 *     sync: async (key) => {
 *       if (key === 'default') {
 *         console.log(`Hello, ${key}`); // prints: Hello, default
 *         stop.abort();
 *       }
 *       return done();
 *     },
 *   }).for(kit.informers.for(NAMESPACES)),
 * ];
 * await runControllers({ client, controllers }, stop.signal);
 * ```
 *
 * @throws {KubeConfigError} without a `client`, if there is neither a usable kubeconfig nor the ServiceAccount of a Pod
 */
export async function runControllers(
  options: RunControllersOptions,
  signal?: AbortSignal,
): Promise<void> {
  if ('signal' in options) {
    throw new TypeError(
      'runControllers: pass the signal as the second parameter, not as an option',
    );
  }
  const { client, log = client ? silentLogger : textLogger() } = options;
  if (client) {
    await runManager(controllerManager({ ...options, client }), log, signal);
    return;
  }
  const connection = await connectToCluster(options.name, log);
  try {
    const manager = controllerManager({ ...options, client: connection.client, log });
    await runManager(manager, log, signal);
  } finally {
    await connection.close();
  }
}

/** Imported on demand, because programs with a client of their own do not need it. */
async function connectToCluster(
  userAgent: string | undefined,
  log: Logger,
): Promise<ClusterConnection> {
  const { loadClusterConfig } = await import('../client/kube-config/kube-config.ts');
  const { connectCluster } = await import('../client/cluster-connection.ts');
  return connectCluster(await loadClusterConfig(), { log: log.named('client'), userAgent });
}

async function runManager(manager: Manager, log: Logger, signal?: AbortSignal): Promise<void> {
  if (signal) {
    await manager.run(signal);
    return;
  }
  const termination = terminationSignal(process, log);
  try {
    await manager.run(termination.signal);
  } finally {
    termination.dispose();
  }
}
