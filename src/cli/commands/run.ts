import { X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import { connectCluster } from '../../client/cluster-connection.ts';
import { ServerReachability } from '../../client/server-reachability.ts';
import { dryRunClient } from '../../client/dry-run.ts';
import { WriteFence } from '../../client/write-fence.ts';
import { metricsOf } from '../../metrics/metrics.ts';
import { buildMetrics, createRegistry, expose, logMetrics } from '../../metrics/registry.ts';
import { systemClock } from '../../util/clock.ts';
import type { OpenTelemetryApi } from '../../util/open-telemetry.ts';
import { SinglePass } from '../../manager/single-pass.ts';
import { loadCluster, userAgent } from '../program/cluster-access.ts';
import { daemon } from '../program/daemon.ts';
import type { DaemonDeps } from '../program/daemon.ts';
import { readTextFile } from '../../client/kube-config/read-file.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/values.ts';
import { certificateFiles, servingCertificate } from '../program/endpoints.ts';
import { EXIT_FAILURE, EXIT_OK, onPath, UsageError } from '../common/errors.ts';
import { leaseTimeoutMs, newIdentity } from '../../leaderelection/leader-elector-options.ts';
import { leaseNamespace } from '../program/run-config.ts';
import { droppedLogLines } from '../logs/logging.ts';
import { loadBuilders } from '../program/program.ts';
import type { CommandContext, ProgramOptions } from '../program/program.ts';
import type { RunConfig, WebhooksConfig } from '../program/run-config.ts';
import type { ClusterConfig } from '../../client/kube-config/cluster-config.ts';
import type { WebhookServingOptions } from '../../manager/webhook-serving.ts';
import { collectStartGarbage } from '../program/start-garbage.ts';

/** Time after which the start is over, in milliseconds. */
const START_MS = 10_000;

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

/**
 * Returns the certificate in the configured files, or the namespace of a certificate of its own.
 *
 * @throws {UsageError} if there is neither
 */
async function webhookIdentity(
  { certificate }: WebhooksConfig,
  { namespace, namespaceIsAssumed, source }: ClusterConfig,
  deps: Parameters<typeof certificateFiles>[1],
): Promise<Pick<WebhookServingOptions, 'certificate' | 'namespace'>> {
  if (certificate) {
    return { certificate: await certificateFiles(certificate, deps, '--webhook-cert-path') };
  }
  if (!namespaceIsAssumed) return { namespace };
  throw new UsageError(
    `the webhooks need a namespace for the Secret of their certificate, and ${source} has none: set --webhook-cert-path, or disable them with --webhook-bind-address=0`,
  );
}

/**
 * Returns the certificates of the authorities of clients, if they are configured.
 *
 * @throws {UsageError} if the file cannot be read or has none
 */
async function clientAuthorities(
  { clientCaFile: file }: WebhooksConfig,
  log: Logger,
): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const what = `--webhook-client-ca-file: unable to load the authorities in ${file}`;
  const pem = await onPath(what, () => readTextFile(file));
  try {
    const { fingerprint256: fingerprint, subject } = new X509Certificate(pem);
    log.info('Requiring client certificates for webhooks', { file, subject, fingerprint });
    return pem;
  } catch (cause) {
    throw new UsageError(`${what}: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Runs the daemon until the signal of the context aborts, or until a single pass has ended. All parts of the
 * daemon are created here.
 *
 * @returns the exit code
 */
export async function runController(
  program: ProgramOptions,
  config: RunConfig,
  {
    log,
    logLevel,
    signal,
    environment,
    debugRoutes,
  }: Pick<CommandContext, 'log' | 'signal' | 'environment'> &
    Partial<Pick<CommandContext, 'logLevel'>> &
    Pick<DaemonDeps, 'debugRoutes'>,
): Promise<number> {
  const clock = systemClock;
  const registry = createRegistry({ processMetrics: true });
  const metrics = metricsOf(registry, { manager: program.name });
  const cluster = await loadCluster(config.cluster, { environment, log });
  const { name, version, revision } = program;
  buildMetrics(registry, { version, revision });
  logMetrics(registry, droppedLogLines);
  const { qps, burst, timeoutMs } = config.requests;
  const { leaderElection } = config;
  const fence = new WriteFence();
  const reachability = new ServerReachability();
  const common = { clock, log: log.named('client'), metrics: metrics.restClient, reachability };
  const agent = userAgent(program);
  const connection = connectCluster(cluster, {
    ...common,
    userAgent: agent,
    requestTimeoutMs: timeoutMs ?? 0,
    qps,
    burst,
    ...(leaderElection && { wrapTransport: (handler) => fence.wrap(handler) }),
  });
  const host = environment['POD_NAME'] ?? hostname();
  const certificate = await servingCertificate(config.serving, { clock, log, host });
  const reviews = connectCluster(cluster, { ...common, userAgent: `${agent}/access-reviews` });
  const webhookServer =
    config.webhooks && !config.isDryRun && !config.isOnce
      ? {
          client: reviews.client,
          clientCa: await clientAuthorities(config.webhooks, log),
          ...(await webhookIdentity(config.webhooks, cluster, { clock, log })),
        }
      : undefined;
  const lease = leaderElection && {
    namespace: leaseNamespace(leaderElection, cluster),
    // A connection of its own: client-side rate limits and slow responses must not delay renewals.
    connection: connectCluster(cluster, {
      ...common,
      userAgent: `${agent}/leader-election`,
      requestTimeoutMs: leaseTimeoutMs(leaderElection.renewDeadlineMs),
    }),
  };
  const { server } = connection;
  const client = config.isDryRun
    ? dryRunClient(connection.client, log.named('client'))
    : connection.client;
  const singlePass = config.isOnce
    ? new SinglePass({ clock, log }, { isDryRun: config.isDryRun })
    : undefined;
  log.info(`Starting ${name}`, {
    version: `v${version}`,
    node: process.version,
    server,
    // The host has no user name and password.
    ...(cluster.proxyUrl !== undefined && { proxy: new URL(cluster.proxyUrl).host }),
    source: cluster.source,
  });
  if (config.isDryRun) log.info('Dry run: no object is changed, and no Lease is acquired');
  const whole = daemon(
    {
      program,
      builders: await loadBuilders(program, config.controllers),
      client,
      clock,
      // Lines such as "Created Pod" must show that nothing was stored.
      log: config.isDryRun ? log.with({ dryRun: true }) : log,
      metrics: { metrics, expose: () => expose(registry) },
      random: Math.random,
      host,
      logLevel,
      debugRoutes,
      secure: {
        reviewer: reviews.client,
        certificate,
      },
      ...(webhookServer && { webhookServer }),
      singlePass,
      tracing: program.tracing ?? (config.isTraced ? await openTelemetry() : undefined),
      leadership: lease && {
        client: lease.connection.client,
        fence,
        identity: newIdentity(host),
        namespace: lease.namespace,
      },
    },
    config,
  );
  const cancelCollection = clock.after(START_MS, collectStartGarbage);
  try {
    await whole.run(signal);
    return singlePass?.hasConverged === false ? EXIT_FAILURE : EXIT_OK;
  } finally {
    cancelCollection();
    await connection.close();
    await reviews.close();
    await lease?.connection.close();
  }
}
