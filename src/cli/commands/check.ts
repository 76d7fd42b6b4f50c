import { connectCluster } from '../../client/cluster-connection.ts';
import { CONTROLLERS, DEFAULT_CONTROLLERS } from '../../controllers/registry.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLogger } from '../../util/logger.ts';
import type { PreflightPlan } from '../check/preflight.ts';
import { preflight } from '../check/preflight.ts';
import { allPassed, formatResults, resultsJson } from '../check/check-result.ts';
import { ServerClock } from '../check/server-check.ts';
import { loadCluster, userAgent } from '../cluster-access.ts';
import type { CommandContext } from '../command.ts';
import { EXIT_FAILURE, EXIT_OK } from '../exit-codes.ts';
import type { ParsedFlags } from '../flags/flag-parser.ts';
import { leaseNamespace, runConfig } from '../run-config.ts';
import { isNonLoopback } from '../../serving/bind-address.ts';
import { readDeployed } from '../installation.ts';
import type { CHECK_OPTIONS } from '../flags/command-options.ts';
import { manifest } from '../package.ts';
import type { RunConfig } from '../run-config.ts';

/** Shorter than the daemon's timeout, because a user waits for the result. */
const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Checks whether a daemon with these flags could run, and prints the results. Changes nothing.
 *
 * @returns 1 if a check failed
 * @throws {UsageError} on flags that the daemon rejects too
 */
export async function check(
  flags: ParsedFlags<typeof CHECK_OPTIONS>,
  context: Pick<CommandContext, 'environment' | 'log' | 'print' | 'signal'>,
): Promise<number> {
  const config = runConfig(flags, {
    all: [...CONTROLLERS.keys()],
    onByDefault: DEFAULT_CONTROLLERS,
  });
  const clock = systemClock;
  const cluster = await loadCluster(config.cluster, context);
  const serverClock = new ServerClock(clock);
  const { timeoutMs = REQUEST_TIMEOUT_MS } = config.requests;
  const connection = connectCluster(cluster, {
    clock,
    // Failed requests are results with next steps. They are not logged in addition.
    log: context.log.v(4).enabled ? context.log.named('client') : silentLogger,
    userAgent: `${userAgent(manifest().version)}/check`,
    requestTimeoutMs: Math.min(timeoutMs, REQUEST_TIMEOUT_MS),
    wrapTransport: (handler) => serverClock.around(handler),
  });
  const leaseAt = config.leaderElection && leaseNamespace(config.leaderElection, cluster);
  try {
    const { client, server } = connection;
    const deps = { client, server, clock, serverClock, read: readDeployed };
    const results = await preflight(deps, planOf(config, leaseAt), context.signal);
    const print = flags.values.output === 'json' ? [resultsJson(results)] : formatResults(results);
    for (const line of print) context.print(line);
    return allPassed(results) ? EXIT_OK : EXIT_FAILURE;
  } finally {
    await connection.close();
  }
}

function planOf(
  {
    controllers,
    namespaces,
    leaderElection,
    metricsBindAddress,
    debugBindAddress,
    profilerAddress,
    serving,
  }: RunConfig,
  leaseAt: string | undefined,
): PreflightPlan {
  return {
    controllers: [...CONTROLLERS]
      .filter(
        ([name, { isClusterScoped }]) =>
          controllers.includes(name) && !(isClusterScoped && namespaces.length > 0),
      )
      .map(([name, { isOnByDefault, resource }]) => ({
        name,
        isOnByDefault,
        resource,
        isBuiltin: !resource.group.includes('.'),
      })),
    namespaces,
    hasProtectedEndpoints:
      (metricsBindAddress !== undefined && serving.isMetricsSecure) ||
      [debugBindAddress, profilerAddress].some(isNonLoopback),
    leases:
      leaderElection && leaseAt !== undefined
        ? { namespace: leaseAt, names: leaseNames(leaderElection) }
        : undefined,
  };
}

function leaseNames({ name, shards = 1 }: { name: string; shards?: number }): string[] {
  return shards === 1 ? [name] : Array.from({ length: shards }, (_, shard) => `${name}-${shard}`);
}
