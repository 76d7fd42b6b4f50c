import { labelSelectorText } from '../../api/label-selector.ts';
import type { TweakListOptions } from '../../cache/list-options.ts';
import { WatchListSupport } from '../../cache/reflector-watch.ts';
import type { Client } from '../../client/client.ts';
import { serverVersion } from '../../client/discovery.ts';
import type { Controller } from '../../manager/controller.ts';
import { withConcurrency } from '../../manager/controller-kit.ts';
import { SyncHistory } from '../../manager/sync-history.ts';
import type { SinglePass } from '../../manager/single-pass.ts';
import type { OpenTelemetryApi } from '../../util/open-telemetry.ts';
import { controllerManager } from '../../manager/run-controllers.ts';
import { programPages } from '../../manager/program-pages.ts';
import type { ControllerProgram } from '../../manager/program-pages.ts';
import type { ControllerKit, ControllerManagerOptions } from '../../manager/run-controllers.ts';
import type { WebhookServingOptions } from '../../manager/webhook-serving.ts';
import type { HealthCheck } from '../../serving/health-checks.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { MetricsText } from '../../metrics/registry.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { Runnable } from '../../util/runnable.ts';
import type { LeadershipDeps, RunConfig } from './run-config.ts';
import type { LogLevel } from '../logs/log-level.ts';
import { redactText } from '../../util/redact.ts';
import type { ControllerBuilder, ProgramOptions } from './program.ts';
import { debugFlags, endpoints } from './endpoints.ts';
import type { EndpointRoutes, SecureServing } from './endpoints.ts';
import {
  clockSkewCheck,
  EventLoopMonitor,
  informerHealthChecks,
} from '../../serving/health-checks.ts';
import type { HttpServerRoutes } from '../../serving/routes.ts';
import { newProfiling } from '../../serving/profiling.ts';
import { reportPage } from '../../serving/debug-pages.ts';

/** Dependencies of `daemon`. */
export interface DaemonDeps {
  readonly program: ProgramOptions;
  /** Those of the configured controllers, by name. */
  readonly builders: ReadonlyMap<string, ControllerBuilder>;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /** @default none */
  readonly metrics?: { readonly metrics: Metrics; expose(): Promise<MetricsText> };
  /** Random numbers in [0, 1). */
  readonly random: () => number;
  /** The host or Pod in the source of events. */
  readonly host: string;
  /** Required if `config.leaderElection` is set; `client` must then be fenced. */
  readonly leadership?: LeadershipDeps | undefined;
  /** Creates spans of syncs. */
  readonly tracing?: OpenTelemetryApi | undefined;
  /** Stops the daemon when every object has been synced once. */
  readonly singlePass?: SinglePass | undefined;
  /** Required if `config` has an endpoint with authentication. */
  readonly secure?: SecureServing | undefined;
  /** Namespace, certificate, and a client behind no fence. Required if `config.webhooks` is set. */
  readonly webhookServer?: Pick<
    WebhookServingOptions,
    'certificate' | 'clientCa' | 'namespace' | 'client'
  >;
  /** Changed by `/debug/flags/v`. */
  readonly logLevel?: LogLevel | undefined;
  /**
   * Further debug pages and settings.
   * @default none
   */
  readonly debugRoutes?: Required<Pick<HttpServerRoutes, 'pages' | 'settings'>> | undefined;
  /** Freezes cached objects; for tests. */
  readonly freeze?: boolean;
}

export type DaemonConfig = Pick<
  RunConfig,
  | 'controllers'
  | 'namespaces'
  | 'concurrentSyncs'
  | 'flags'
  | 'resyncPeriodMs'
  | 'leaderElection'
  | 'gracefulShutdownTimeoutMs'
  | 'healthProbeBindAddress'
  | 'metricsBindAddress'
  | 'debugBindAddress'
> &
  Partial<
    Pick<
      RunConfig,
      'labelSelector' | 'features' | 'profilerAddress' | 'serving' | 'webhooks' | 'eventApiVersion'
    >
  >;

/**
 * Returns the daemon: the configured controllers, with the endpoints of the flags. It is a program on
 * `controllerManager`, like a user's program.
 */
export function daemon(deps: DaemonDeps, config: DaemonConfig): Runnable {
  const { client, clock, log, random, host, singlePass, leadership, freeze = false } = deps;
  const { leaderElection } = config;
  if (leaderElection && !leadership) {
    throw new TypeError('leadership must be given: leaderElection is configured');
  }
  const history = config.debugBindAddress ? new SyncHistory() : undefined;
  const manager = controllerManager({
    client,
    name: deps.program.name,
    clock,
    log,
    random,
    host,
    eventApiVersion: config.eventApiVersion,
    tracing: deps.tracing,
    singlePass,
    history,
    freeze,
    metrics: deps.metrics?.metrics,
    resyncPeriodMs: config.resyncPeriodMs,
    gracefulShutdownTimeoutMs: config.gracefulShutdownTimeoutMs,
    leaderElection: leaderElection && leadership && { ...leaderElection, ...leadership },
    informers: {
      watchList: new WatchListSupport(clock, { enabled: config.features?.WatchListClient ?? true }),
      tweakListOptions: selectedOnly(deps.program, config),
      namespaces: config.namespaces,
    },
    controllers: (kit) => buildControllers(deps, kit, config),
    ...webhooks(deps, config),
    servers: (program) => servers(deps, config, program, history),
  });
  return { name: 'daemon', run: (signal) => manager.run(signal) };
}

function buildControllers(
  { program, builders }: Pick<DaemonDeps, 'program' | 'builders'>,
  kit: ControllerKit,
  { controllers, namespaces, concurrentSyncs, flags }: DaemonConfig,
): Controller[] {
  return controllers.flatMap((name) => {
    const build = builders.get(name);
    if (!build) throw new RangeError(`Unknown controller "${name}"`);
    if (program.controllers[name]?.isClusterScoped && namespaces.length > 0) {
      kit.log.info('Skipping a cluster-scoped controller, because --namespaces is set', {
        controller: name,
      });
      return [];
    }
    return build(withConcurrency(kit, concurrentSyncs.get(name)), flags);
  });
}

/** Returns the options of `controllerManager` for the webhooks of the program. */
function webhooks(
  { program: { webhooks: declared }, webhookServer }: DaemonDeps,
  { webhooks, serving, flags }: DaemonConfig,
): Pick<ControllerManagerOptions, 'webhooks' | 'webhookServer'> {
  if (!declared || !webhooks) return {};
  const { minVersion = 'TLSv1.2', ciphers } = serving ?? {};
  const { bindAddress } = webhooks;
  return {
    webhooks: typeof declared === 'function' ? (kit) => declared(kit, flags) : declared,
    webhookServer: { bindAddress, minVersion, ciphers, ...webhookServer },
  };
}

/** Returns the endpoints of the flags, and what they need to run. */
function servers(
  deps: DaemonDeps,
  config: DaemonConfig,
  program: ControllerProgram,
  history: SyncHistory | undefined,
): Runnable[] {
  const { client, clock, log, metrics, logLevel, secure } = deps;
  const { profilerAddress } = config;
  const eventLoop = new EventLoopMonitor(clock);
  const profiling =
    profilerAddress === undefined
      ? undefined
      : newProfiling({ clock, log: log.named('profiler') }, profilerAddress);
  const exposition = metrics && { metrics: () => metrics.expose() };
  const routes: EndpointRoutes = {
    health: {
      livez: [eventLoop.check, clockSkewCheck(clock), ...leaderElectionChecks(program)],
      readyz: [
        ...informerHealthChecks(() => program.informers.informers, clock),
        ...(program.webhooks?.readiness ?? []),
        { name: 'shutdown', check: () => (program.stopping.aborted ? 'shutting down' : undefined) },
      ],
    },
    metrics: exposition,
    debug: history && {
      pages: new Map([
        ...programPages(program, {
          clock,
          history,
          identity: deps.leadership?.identity,
          name: deps.program.name,
          version: `v${deps.program.version}`,
          redact: redactText,
        }),
        ...reportPage(redactText),
        ...(deps.debugRoutes?.pages ?? []),
      ]),
      // `top` reads the metrics from the same address.
      ...exposition,
      settings: new Map([
        ...(logLevel ? debugFlags(logLevel) : []),
        ...(deps.debugRoutes?.settings ?? []),
      ]),
    },
    profiling: profiling && { downloads: profiling.downloads },
  };
  return [
    ...endpoints({ clock, log, routes, secure }, config),
    ...(config.healthProbeBindAddress ? [eventLoop] : []),
    ...(profiling ? [profiling.profiler] : []),
    logServerVersion(client, log),
  ];
}

/** Applies the label selector to the kinds of the controllers, and not to owned objects. */
function selectedOnly(
  program: ProgramOptions,
  { controllers, labelSelector = '' }: DaemonConfig,
): TweakListOptions {
  const kinds = new Set(controllers.map((name) => program.controllers[name]?.resource));
  return (options, resource) => {
    if (labelSelector === '' || !kinds.has(resource)) return options;
    const own = labelSelectorText(options.labelSelector);
    return { ...options, labelSelector: own ? `${labelSelector},${own}` : labelSelector };
  };
}

/** Logs the version of the API server. Failures are logged elsewhere. */
function logServerVersion(client: Client, log: Logger): Runnable {
  return {
    name: 'server-version',
    run: async (signal) => {
      if (!log.v(1).enabled) return;
      try {
        const { gitVersion, platform } = await serverVersion(client, signal);
        log.v(1).info('Read the version of the API server', { version: gitVersion, platform });
      } catch (error) {
        log.v(4).info('Could not read the version of the API server', { err: error });
      }
    },
  };
}

/** Fails for a leader that neither renewed its lease nor exited. A standby is healthy. */
function leaderElectionChecks({ leadership }: ControllerProgram): HealthCheck[] {
  return leadership ? [{ name: 'leaderElection', check: () => leadership.health() }] : [];
}
