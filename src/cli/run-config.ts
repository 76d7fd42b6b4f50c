import type { ClusterAccess } from './cluster-access.ts';
import { clusterAccess, namespaceName } from './cluster-access.ts';
import { UsageError } from './exit-codes.ts';
import type { FeatureGates } from './flags/feature-gates.ts';
import type { ParsedFlags } from './flags/flag-parser.ts';
import { formatDuration } from '../util/duration.ts';
import { goQuote } from '../util/go-quote.ts';
import type { OptionValues } from './flags/option.ts';
import type { RUN_OPTIONS } from './flags/run-options.ts';
import type { ServingConfig } from './serving/serving-config.ts';
import { profilerAddress, servingConfig } from './serving/serving-config.ts';
import type { ClusterConfig } from '../client/kube-config/cluster-config.ts';
import type { WriteFence } from '../client/write-fence.ts';
import type { LeaseClient } from '../leaderelection/lease-lock.ts';

/** What the daemon runs on: every flag checked, in the units of the program, and frozen. */
export interface RunConfig {
  readonly cluster: ClusterAccess;
  /** Names of the controllers to run, in the order of the registry. */
  readonly controllers: readonly string[];
  /** Empty: all namespaces. */
  readonly namespaces: readonly string[];
  /** Labels of the objects that controllers are for; empty: any. */
  readonly labelSelector: string;
  readonly features: FeatureGates;
  /** Nothing is to be changed. */
  readonly isDryRun: boolean;
  /** One pass over everything, and no more. */
  readonly isOnce: boolean;
  /** How many keys of a controller are worked on at the same time, by its name. */
  readonly concurrentSyncs: ReadonlyMap<string, number>;
  /** Whether pod-count records an event on each new Pod. */
  readonly podCountEvents: boolean;
  /** 0: never. */
  readonly resyncPeriodMs: number;
  /** Absent: this is the only replica. */
  readonly leaderElection: LeaderElectionConfig | undefined;
  readonly requests: RequestLimits;
  readonly gracefulShutdownTimeoutMs: number;
  /** `HOST:PORT` or `:PORT`; absent: no server. */
  readonly healthProbeBindAddress: string | undefined;
  /** `HOST:PORT` or `:PORT`; absent: no server. */
  readonly metricsBindAddress: string | undefined;
  /** `HOST:PORT` or `:PORT`; absent: no server, and no history of runs. */
  readonly debugBindAddress?: string | undefined;
  /** `HOST:PORT` or `:PORT`; absent: no server, and no samples. */
  readonly profilerAddress?: string | undefined;
  readonly serving: ServingConfig;
  /** The flags that are not at their default, as text, secrets masked: for the log. */
  readonly changedFlags: Readonly<Record<string, string>>;
}

/** The Lease to hold, and the times of it. */
export interface LeaderElectionConfig {
  readonly name: string;
  /** Absent: where this process belongs. */
  readonly namespace: string | undefined;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /**
   * Whether an orderly stop gives the Lease back.
   * @default true
   */
  readonly releaseOnCancel?: boolean;
  /**
   * Into how many shards the work is split.
   * @default 1, one replica does everything
   */
  readonly shards?: number;
}

export interface RequestLimits {
  /** Requests a second; absent: no limit on our side. */
  readonly qps: number | undefined;
  readonly burst: number;
  /** How long a request other than a watch may take; absent: for ever. */
  readonly timeoutMs: number | undefined;
}

/** The controllers there are, by name. */
export interface KnownControllers {
  readonly all: readonly string[];
  readonly onByDefault: readonly string[];
}

/** @throws {UsageError} if flags contradict each other or name what is not there */
export function runConfig(
  { values, changed }: ParsedFlags<typeof RUN_OPTIONS>,
  known: KnownControllers,
): RunConfig {
  const config: RunConfig = {
    cluster: clusterAccess(values),
    controllers: selectControllers(values.controllers, known.all, known.onByDefault),
    namespaces: [...new Set(values.namespaces.map((name) => namespaceName(name, '--namespaces')))],
    labelSelector: values['watch-label-selector'],
    features: values['feature-gates'],
    isDryRun: values['dry-run'],
    isOnce: values.once,
    concurrentSyncs: new Map([
      ['count', values['concurrent-count-syncs']],
      ['webapp', values['concurrent-webapp-syncs']],
      ['at', values['concurrent-at-syncs']],
      ['foo', values['concurrent-foo-syncs']],
    ]),
    podCountEvents: values['pod-count-events'],
    resyncPeriodMs: values['resync-period'],
    // To lead is to write, and to stand by would be to see nothing.
    leaderElection: values['dry-run'] ? undefined : leaderElection(values),
    requests: {
      qps: queriesPerSecond(values['kube-api-qps']),
      burst: values['kube-api-burst'],
      timeoutMs: values['kube-api-request-timeout'] || undefined,
    },
    gracefulShutdownTimeoutMs: values['graceful-shutdown-timeout'],
    healthProbeBindAddress: values['health-probe-bind-address'],
    metricsBindAddress: values['metrics-bind-address'],
    debugBindAddress: values['debug-bind-address'],
    profilerAddress: profilerAddress(values),
    serving: servingConfig(values),
    changedFlags: changed,
  };
  for (const part of [config.requests, config.controllers, config.namespaces]) {
    Object.freeze(part);
  }
  return Object.freeze(config);
}

/** As the elector checks them, in the words of the command line. */
function leaderElection(
  values: OptionValues<typeof RUN_OPTIONS>,
): LeaderElectionConfig | undefined {
  const { shards } = values;
  if (!values['leader-elect']) {
    if (shards > 1)
      throw new UsageError('--shards requires --leader-elect: each shard has a Lease');
    return undefined;
  }
  const name = values['leader-elect-resource-name'];
  const namespace = values['leader-elect-resource-namespace'];
  const leaseDurationMs = values['leader-elect-lease-duration'];
  const renewDeadlineMs = values['leader-elect-renew-deadline'];
  const retryPeriodMs = values['leader-elect-retry-period'];
  if (name.length > 253 || !/^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(name)) {
    throw new UsageError(
      `invalid value ${goQuote(name)} for --leader-elect-resource-name: the name of a Lease consists of lower-case letters, digits, "-" and ".", at most 253 characters`,
    );
  }
  if (retryPeriodMs === 0) {
    throw new UsageError('invalid value "0" for --leader-elect-retry-period: must be more than 0');
  }
  if (renewDeadlineMs <= 1.2 * retryPeriodMs) {
    throw new UsageError(
      `--leader-elect-renew-deadline must exceed 1.2 times --leader-elect-retry-period: got ${formatDuration(renewDeadlineMs)} and ${formatDuration(retryPeriodMs)}`,
    );
  }
  if (leaseDurationMs <= renewDeadlineMs) {
    throw new UsageError(
      `--leader-elect-lease-duration must exceed --leader-elect-renew-deadline: got ${formatDuration(leaseDurationMs)} and ${formatDuration(renewDeadlineMs)}`,
    );
  }
  return Object.freeze({
    name,
    namespace: namespace
      ? namespaceName(namespace, '--leader-elect-resource-namespace')
      : undefined,
    leaseDurationMs,
    renewDeadlineMs,
    retryPeriodMs,
    releaseOnCancel: values['leader-elect-release-on-cancel'],
    ...(shards > 1 && { shards }),
  });
}

function queriesPerSecond(qps: number): number | undefined {
  if (qps === 0) {
    throw new UsageError(
      'invalid value "0" for --kube-api-qps: must be 1 or more, or -1 to disable the limit',
    );
  }
  return qps < 0 ? undefined : qps;
}

/**
 * The controllers that `--controllers` asks for: `*` is all that are on by default, `name` turns one
 * on, `-name` takes one away, wherever it stands. Nothing but `-name`s means `*` without those.
 *
 * @returns names in the order of `known`
 * @throws {UsageError} on a name that is not in `known`, and if none is left
 */
export function selectControllers(
  selectors: readonly string[],
  known: readonly string[],
  onByDefault: readonly string[] = known,
): readonly string[] {
  const disabled = new Set(
    selectors.filter((selector) => selector.startsWith('-')).map((selector) => selector.slice(1)),
  );
  const enabled = new Set(selectors.filter((selector) => !selector.startsWith('-')));
  const unknown = [...enabled, ...disabled].find((name) => name !== '*' && !known.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(
      `unknown controller ${goQuote(unknown)} in --controllers: must be *, or one of ${known.join(', ')}, with or without a leading "-"`,
    );
  }
  const all = enabled.has('*') || enabled.size === 0;
  const selected = known.filter(
    (name) => ((all && onByDefault.includes(name)) || enabled.has(name)) && !disabled.has(name),
  );
  if (selected.length === 0) throw new UsageError('--controllers selects no controller');
  return selected;
}

/** What a daemon needs to be one of several. */
export interface LeadershipDeps {
  /** Of a connection of its own, not behind the fence. */
  readonly client: LeaseClient;
  /** What every write of the daemon's own client passes. */
  readonly fence: WriteFence;
  /** What the Lease calls this process: no other may ever be called so. */
  readonly identity: string;
  /** Where the Lease is. */
  readonly namespace: string;
}

/** Half the time that a renewal may take, so that one request that hangs is not the end of it. */
export function leaseTimeoutMs({ renewDeadlineMs }: LeaderElectionConfig): number {
  return Math.max(1000, renewDeadlineMs / 2);
}

/** @throws {UsageError} if nobody has said where the Lease is to be */
export function leaseNamespace(
  { namespace }: LeaderElectionConfig,
  cluster: Pick<ClusterConfig, 'namespace' | 'namespaceIsAssumed' | 'source'>,
): string {
  if (namespace !== undefined) return namespace;
  if (!cluster.namespaceIsAssumed) return cluster.namespace;
  throw new UsageError(
    `--leader-elect requires a namespace for its Lease, and ${cluster.source} has none: set --leader-elect-resource-namespace`,
  );
}
