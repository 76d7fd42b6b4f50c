import { hostname } from 'node:os';
import { labelSelectorText } from '../../api/label-selector.ts';
import type { TweakListOptions } from '../../cache/list-options.ts';
import { WatchListSupport } from '../../cache/reflector-watch.ts';
import { connectCluster } from '../../client/cluster-connection.ts';
import { dryRunClient } from '../../client/dry-run.ts';
import type { Controller } from '../../manager/controller.ts';
import type { GivenElection } from '../../manager/coordination.ts';
import { withConcurrency } from '../../manager/controller-kit.ts';
import type { ProgramTap } from '../../manager/program-tap.ts';
import { runControllers } from '../../manager/run-controllers.ts';
import type { ControllerKit, ControllerManagerOptions } from '../../manager/run-controllers.ts';
import { SinglePass } from '../../manager/single-pass.ts';
import { SyncHistory } from '../../manager/sync-history.ts';
import { metricsOf } from '../../metrics/metrics.ts';
import { collectProcessMetrics } from '../../metrics/process-metrics.ts';
import { buildMetrics, createRegistry, expose, logMetrics } from '../../metrics/registry.ts';
import { systemClock } from '../../util/clock.ts';
import type { OpenTelemetryApi } from '../../util/open-telemetry.ts';
import { EXIT_FAILURE, EXIT_OK, UsageError } from '../common/errors.ts';
import { droppedLogLines } from '../logs/logging.ts';
import { loadCluster, userAgent, waitForCluster } from '../program/cluster-access.ts';
import { servingCertificate } from '../program/endpoints.ts';
import { isClusterScoped, loadBuilders } from '../program/program.ts';
import type { CommandContext, ControllerBuilder, ProgramOptions } from '../program/program.ts';
import { leaseNamespace } from '../program/run-config.ts';
import type { RecordingConfig, RunConfig } from '../program/run-config.ts';
import { programServers } from '../program/servers.ts';
import type { ServerOptions } from '../program/servers.ts';
import { collectStartGarbage } from '../program/start-garbage.ts';
import { webhookServerOptions } from '../program/webhook-server.ts';

/** The part of the context that `run` uses, and further debug pages. */
type RunContext = Pick<CommandContext, 'log' | 'signal' | 'environment'> &
  Pick<ProcessOptions, 'logLevel' | 'debugRoutes'>;

/**
 * Runs the controllers of a program until the signal of the context aborts, or until a single pass has ended.
 *
 * @returns the exit code
 */
export async function run(
  program: ProgramOptions,
  config: RunConfig,
  { log, logLevel, signal, environment, debugRoutes }: RunContext,
): Promise<number> {
  const clock = systemClock;
  const { name, version, revision } = program;
  const { isDryRun, isOnce, requests } = config;
  const registry = createRegistry();
  collectProcessMetrics(registry);
  const metrics = metricsOf(registry, { manager: name });
  buildMetrics(registry, { version, revision });
  logMetrics(registry, droppedLogLines);
  const access = { environment, log, signal, clock };
  // A single pass is a check of what exists now: it does not wait.
  const cluster = await (isOnce ? loadCluster : waitForCluster)(config.cluster, access);
  if (!cluster) return EXIT_OK;
  const agent = userAgent(program);
  const connection = connectCluster(cluster, {
    clock,
    log: log.named('client'),
    metrics: metrics.restClient,
    userAgent: agent,
    requestTimeoutMs: requests.timeoutMs ?? 0,
    qps: requests.qps,
    burst: requests.burst,
  });
  try {
    const host = environment['POD_NAME'] ?? hostname();
    const singlePass = isOnce ? new SinglePass({ clock, log }, { isDryRun }) : undefined;
    const options = managerOptions(program, config, {
      builders: await loadBuilders(program, config.controllers),
      client: isDryRun ? dryRunClient(connection.client, log.named('client')) : connection.client,
      clock,
      // Lines such as "Created Pod" must show that nothing was stored.
      log: isDryRun ? log.with({ dryRun: true }) : log,
      host,
      metrics,
      expose: () => expose(registry),
      singlePass,
      tracing: program.tracing ?? (config.isTraced ? await openTelemetry() : undefined),
      secure: {
        reviewer: connection.client.withOptions({
          userAgent: `${agent}/access-reviews`,
          requestTimeoutMs: undefined,
          qps: undefined,
        }),
        certificate: await servingCertificate(config.serving, { clock, log, host }),
      },
      leaderElection: config.leaderElection && {
        namespace: leaseNamespace(config.leaderElection, cluster),
      },
      recorder: config.recording && (await recorderOf(program, config, config.recording)),
      webhookServer: await webhookServerOptions(config, cluster, { clock, log }),
      logLevel,
      debugRoutes,
      environment,
    });
    log.info(`Starting ${name}`, {
      version: `v${version}`,
      node: process.version,
      server: connection.server,
      // The host has no user name and password.
      ...(cluster.proxyUrl !== undefined && { proxy: new URL(cluster.proxyUrl).host }),
      source: cluster.source,
    });
    if (isDryRun) log.info('Dry run: no object is changed, and no Lease is acquired');
    const cancelCollection = collectStartGarbage({ clock });
    try {
      await runControllers(options, signal);
    } finally {
      cancelCollection();
    }
    return singlePass?.hasConverged === false ? EXIT_FAILURE : EXIT_OK;
  } finally {
    await connection.close();
  }
}

/** Imported on demand, because few programs are recorded. */
async function recorderOf(
  { name, version }: ProgramOptions,
  { controllers, namespaces }: RunConfig,
  recording: RecordingConfig,
): Promise<ProgramTap> {
  const { FlightRecorder } = await import('../../replay/flight-recorder.ts');
  return new FlightRecorder({ ...recording, program: { name, version, controllers, namespaces } });
}

/** Options of a program that come from its process, in addition to those of its flags. */
export interface ProcessOptions
  extends
    Pick<
      ControllerManagerOptions,
      | 'client'
      | 'random'
      | 'host'
      | 'metrics'
      | 'singlePass'
      | 'tracing'
      | 'webhookServer'
      | 'freeze'
      | 'recorder'
    >,
    Pick<
      ServerOptions,
      'clock' | 'log' | 'expose' | 'logLevel' | 'debugRoutes' | 'environment' | 'secure'
    > {
  /** Builders of the configured controllers, by name. */
  readonly builders: ReadonlyMap<string, ControllerBuilder>;
  /** Overrides of the flags, and parts of the leader election that have no flag. */
  readonly leaderElection?: GivenElection | undefined;
}

/** The part of the configuration that does not concern the connection of the process. */
export type ManagerConfig = Omit<
  RunConfig,
  'cluster' | 'requests' | 'isDryRun' | 'isOnce' | 'isTraced' | 'recording'
>;

/** Returns the options of {@link runControllers} for the flags of a program. */
export function managerOptions(
  program: ProgramOptions,
  config: ManagerConfig,
  { builders, expose, logLevel, debugRoutes, environment, secure, ...options }: ProcessOptions,
): ControllerManagerOptions {
  const { client, clock, log } = options;
  const { webhooks } = program;
  const history = config.debugBindAddress ? new SyncHistory() : undefined;
  const served = {
    client,
    clock,
    log,
    history,
    expose,
    logLevel,
    debugRoutes,
    environment,
    secure,
  };
  return {
    ...options,
    history,
    name: program.name,
    eventApiVersion: config.eventApiVersion,
    resyncPeriodMs: config.resyncPeriodMs,
    gracefulShutdownTimeoutMs: config.gracefulShutdownTimeoutMs,
    leaderElection: config.leaderElection && {
      ...config.leaderElection,
      ...options.leaderElection,
    },
    informers: {
      watchList: new WatchListSupport(clock, { enabled: config.features.WatchListClient }),
      tweakListOptions: selectedOnly(program, config),
      namespaces: config.namespaces,
    },
    controllers: (kit) => buildControllers(program, builders, kit, config),
    ...(config.webhooks && {
      webhooks: typeof webhooks === 'function' ? (kit) => webhooks(kit, config.flags) : webhooks,
      webhookServer: {
        bindAddress: config.webhooks.bindAddress,
        minVersion: config.serving.minVersion,
        ciphers: config.serving.ciphers,
        ...options.webhookServer,
      },
    }),
    servers: (running) => programServers(program, config, served, running),
  };
}

/** Returns the configured controllers of a program. */
export function buildControllers(
  program: ProgramOptions,
  builders: ProcessOptions['builders'],
  kit: ControllerKit,
  {
    controllers,
    namespaces,
    concurrentSyncs,
    flags,
  }: Pick<ManagerConfig, 'controllers' | 'namespaces' | 'concurrentSyncs' | 'flags'>,
): Controller[] {
  return controllers.flatMap((name) => {
    const build = builders.get(name);
    if (!build) throw new RangeError(`Unknown controller "${name}"`);
    const controller = program.controllers[name];
    if (namespaces.length > 0 && controller && isClusterScoped(controller)) {
      kit.log.info('Skipping a cluster-scoped controller, because --namespaces is set', {
        controller: name,
      });
      return [];
    }
    return build(withConcurrency(kit, concurrentSyncs.get(name)), flags);
  });
}

/** Applies the label selector to the kinds of the controllers, and not to owned objects. */
function selectedOnly(
  program: ProgramOptions,
  { controllers, labelSelector }: ManagerConfig,
): TweakListOptions {
  const kinds = new Set(controllers.map((name) => program.controllers[name]?.resource));
  return (options, resource) => {
    if (labelSelector === '' || !kinds.has(resource)) return options;
    const own = labelSelectorText(options.labelSelector);
    return { ...options, labelSelector: own ? `${labelSelector},${own}` : labelSelector };
  };
}

/**
 * Loads the API of OpenTelemetry, which has no effect without an SDK.
 *
 * @throws {UsageError} if the package is not installed
 */
async function openTelemetry(): Promise<OpenTelemetryApi> {
  try {
    return await import('@opentelemetry/api');
  } catch (error) {
    throw new UsageError(
      '--tracing needs the package @opentelemetry/api: run npm install @opentelemetry/api',
      { cause: error },
    );
  }
}
