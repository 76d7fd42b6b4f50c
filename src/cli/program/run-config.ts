import type { ClusterAccess } from './cluster-access.ts';
import { clusterAccess, namespaceName } from './cluster-access.ts';
import { UsageError } from '../common/errors.ts';
import type { FeatureGates, OptionValues } from '../flags/option.ts';
import { formatDuration } from '../../util/duration.ts';
import { goQuote } from '../../util/go-quote.ts';
import { selectNames } from '../../util/select-names.ts';
import { concurrencyFlag } from './run-options.ts';
import type { RunOptions, WEBHOOK_OPTIONS } from './run-options.ts';
import { defaultControllers } from './program.ts';
import type { ProgramOptions } from './program.ts';
import type { ClusterConfig } from '../../client/kube-config/cluster-config.ts';
import type { EventApiVersion } from '../../record/event-api.ts';
import { join } from 'node:path';
import { isLoopback } from '../../serving/bind-address.ts';
import type { CertificateFilesOptions } from '../../serving/serving-certificate.ts';

/** Validated configuration of the program, in the units of the program; frozen. */
export interface RunConfig {
  readonly cluster: ClusterAccess;
  /** Names of the controllers to run, in the order of the program. */
  readonly controllers: readonly string[];
  /** Empty: all namespaces. */
  readonly namespaces: readonly string[];
  /** Label selector for the objects to reconcile; empty: all. */
  readonly labelSelector: string;
  readonly features: FeatureGates;
  /** Whether writes are server-side dry runs. */
  readonly isDryRun: boolean;
  /** Whether the program exits after a single pass. */
  readonly isOnce: boolean;
  /** Number of concurrent syncs, by controller. */
  readonly concurrentSyncs: ReadonlyMap<string, number>;
  /** Values of the program's own flags. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** 0 disables resyncs. */
  readonly resyncPeriodMs: number;
  /** API in which events are written. */
  readonly eventApiVersion: EventApiVersion;
  /** Absent: leader election is disabled. */
  readonly leaderElection: LeaderElectionConfig | undefined;
  readonly requests: RequestLimits;
  readonly gracefulShutdownTimeoutMs: number;
  /** `HOST:PORT` or `:PORT`; absent: no server. */
  readonly healthProbeBindAddress: string | undefined;
  /** `HOST:PORT` or `:PORT`; absent: no server. */
  readonly metricsBindAddress: string | undefined;
  /** `HOST:PORT` or `:PORT`; absent: no server and no sync history. */
  readonly debugBindAddress?: string | undefined;
  /** `HOST:PORT` or `:PORT`; absent: no server and no profiler. */
  readonly profilerAddress?: string | undefined;
  readonly serving: ServingConfig;
  /** Absent: the program has no webhooks, or they are disabled. */
  readonly webhooks?: WebhooksConfig | undefined;
  /** Whether spans are created by the module `@opentelemetry/api`. */
  readonly isTraced: boolean;
  /** Absent: nothing is recorded. */
  readonly recording?: RecordingConfig | undefined;
}

/** The file that the program records for `replay`. */
export interface RecordingConfig {
  readonly file: string;
  readonly maxBytes: number;
  /** Resources of which only metadata and a hash are recorded, in addition to Secrets. */
  readonly redact: readonly string[];
}

/** Address and certificate of webhooks. */
export interface WebhooksConfig {
  /** `HOST:PORT` or `:PORT` */
  readonly bindAddress: string;
  /** Undefined without files. */
  readonly certificate: CertificateFilesOptions | undefined;
  /** File with the authorities of client certificates. */
  readonly clientCaFile: string | undefined;
}

/** Lease and timing of leader election. */
export interface LeaderElectionConfig {
  readonly name: string;
  /** Absent: the namespace of the ServiceAccount or of the kubeconfig context. */
  readonly namespace: string | undefined;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /**
   * Whether a clean stop releases the Lease.
   * @default true
   */
  readonly releaseOnCancel?: boolean;
  /**
   * Number of shards.
   * @default 1
   */
  readonly shards?: number;
  /**
   * Whether the process stands by again after it lost the Lease.
   * @default false
   */
  readonly stepDown?: boolean;
}

export interface RequestLimits {
  /** Requests per second; absent: no client-side limit. */
  readonly qps: number | undefined;
  readonly burst: number;
  /** Timeout in milliseconds of requests other than watches; absent: none. */
  readonly timeoutMs: number | undefined;
}

/**
 * Validates the flags of `run`.
 *
 * @throws {UsageError} if flags contradict each other or name an unknown controller
 */
export function runConfig(
  values: OptionValues<RunOptions>,
  program: Pick<ProgramOptions, 'controllers' | 'flags'>,
): RunConfig {
  const known = Object.keys(program.controllers);
  const webhooks = webhooksConfig(values);
  // With the flags of the program's controllers and its own.
  const all: Readonly<Record<string, unknown>> = values;
  const config: RunConfig = {
    cluster: clusterAccess(values),
    controllers: selectControllers(values.controllers, known, defaultControllers(program)),
    namespaces: [...new Set(values.namespaces.map((name) => namespaceName(name, '--namespaces')))],
    labelSelector: values['watch-label-selector'],
    features: values['feature-gates'],
    isDryRun: values['dry-run'],
    isOnce: values.once,
    concurrentSyncs: new Map(
      known.map((name) => [name, Number(all[concurrencyFlag(name)])] as const),
    ),
    flags: Object.freeze(
      Object.fromEntries(Object.keys(program.flags ?? {}).map((name) => [name, all[name]])),
    ),
    resyncPeriodMs: values['resync-period'],
    eventApiVersion: values['event-api-version'],
    // A dry run must not write a Lease, and a standby would show nothing.
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
    webhooks,
    isTraced: values.tracing,
    recording: recordingConfig(values),
  };
  for (const part of [config.requests, config.controllers, config.namespaces]) {
    Object.freeze(part);
  }
  return Object.freeze(config);
}

/** A resource with its group: `databases.example.com`. */
const RESOURCE = /^[a-z][a-z0-9]*(?:\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function recordingConfig(values: OptionValues<RunOptions>): RecordingConfig | undefined {
  const { record: file, 'record-redact': redact } = values;
  const malformed = redact.find((name) => !RESOURCE.test(name));
  if (malformed !== undefined) {
    throw new UsageError(
      `invalid value ${goQuote(malformed)} for --record-redact: must be a resource in lower case and plural, as in configmaps or databases.example.com`,
    );
  }
  if (file === '') return undefined;
  if (values['dry-run']) {
    throw new UsageError('--record requires --dry-run=false: a dry run changes nothing to replay');
  }
  return { file, maxBytes: values['record-max-size'] * 1024 * 1024, redact };
}

/** Applies the elector's validation with messages that name the flags. */
function leaderElection(values: OptionValues<RunOptions>): LeaderElectionConfig | undefined {
  const { shards } = values;
  if (!values['leader-elect']) {
    if (shards > 1)
      throw new UsageError('--shards requires --leader-elect: each shard has a Lease');
    return undefined;
  }
  const stepDown = values['leader-elect-step-down'];
  if (stepDown && shards > 1) {
    throw new UsageError('--leader-elect-step-down=true requires --shards=1');
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
    ...(stepDown && { stepDown }),
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
 * Selects controllers, as `selectNames` does.
 *
 * @throws {UsageError} on an unknown name, and if no controller is selected
 */
export function selectControllers(
  selectors: readonly string[],
  known: readonly string[],
  onByDefault?: readonly string[],
): readonly string[] {
  const { selected, unknown } = selectNames(selectors, known, onByDefault);
  if (unknown !== undefined) {
    throw new UsageError(
      `unknown controller ${goQuote(unknown)} in --controllers: must be *, or one of ${known.join(', ')}, with or without a leading "-"`,
    );
  }
  if (selected.length === 0) throw new UsageError('--controllers selects no controller');
  return selected;
}

/**
 * Returns the namespace of the Lease.
 *
 * @throws {UsageError} if no namespace is configured
 */
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

/** TLS and authorization of the endpoints. */
export interface ServingConfig {
  /** Whether /metrics needs TLS and authorization. */
  readonly isMetricsSecure: boolean;
  /** Undefined for a self-signed certificate. */
  readonly certificate: CertificateFilesOptions | undefined;
  readonly minVersion: (typeof TLS_VERSIONS)[keyof typeof TLS_VERSIONS];
  /** Cipher list in OpenSSL's format; undefined for the ciphers of Node.js. */
  readonly ciphers: string | undefined;
  readonly http2: boolean;
}

/**
 * Returns the serving configuration from the flags.
 *
 * @throws {UsageError} if flags contradict each other or have invalid values
 */
function servingConfig(values: OptionValues<RunOptions>): ServingConfig {
  const isMetricsSecure = values['metrics-secure'];
  for (const [flag, address] of [
    ['--debug-bind-address', values['debug-bind-address']],
    ['--profiler-address', profilerAddress(values)],
  ] as const) {
    const isShared = address !== undefined && address === values['metrics-bind-address'];
    if (isShared && !isMetricsSecure && !isLoopback(address)) {
      throw new UsageError(
        `invalid value ${goQuote(address)} for ${flag}: --metrics-secure=false disables authorization on this address`,
      );
    }
  }
  return Object.freeze({
    isMetricsSecure,
    certificate: certificateFiles(
      values['metrics-cert-path'],
      values['metrics-cert-name'],
      values['metrics-cert-key'],
    ),
    minVersion: TLS_VERSIONS[values['tls-min-version']],
    ciphers: cipherList(values['tls-cipher-suites']),
    http2: values['enable-http2'],
  });
}

function certificateFiles(
  folder: string,
  certificate: string,
  key: string,
): CertificateFilesOptions | undefined {
  if (!folder) return undefined;
  return Object.freeze({
    certificatePath: join(folder, certificate),
    privateKeyPath: join(folder, key),
  });
}

/** Returns the configuration of the webhooks from their flags, which only programs with webhooks have. */
function webhooksConfig(
  values: OptionValues<RunOptions> & Partial<OptionValues<typeof WEBHOOK_OPTIONS>>,
): WebhooksConfig | undefined {
  const bindAddress = values['webhook-bind-address'];
  const { 'webhook-cert-path': folder = '' } = values;
  const { 'webhook-cert-name': certificate = '', 'webhook-cert-key': key = '' } = values;
  const { 'webhook-client-ca-file': clientCaFile } = values;
  return bindAddress === undefined
    ? undefined
    : Object.freeze({
        bindAddress,
        certificate: certificateFiles(folder, certificate, key),
        clientCaFile: clientCaFile || undefined,
      });
}

/**
 * Returns the address of the profile endpoints, or undefined if profiling is disabled.
 *
 * @throws {UsageError} if profiling is enabled without an address
 */
export function profilerAddress(values: OptionValues<RunOptions>): string | undefined {
  if (!values['enable-profiling']) return undefined;
  const address = values['profiler-address'];
  if (address === undefined) throw new UsageError('--enable-profiling needs --profiler-address');
  return address;
}

/** TLS versions by their names in Go, with those of Node.js. Older versions are not secure. */
const TLS_VERSIONS = { VersionTLS12: 'TLSv1.2', VersionTLS13: 'TLSv1.3' } as const;

/** Cipher suites of TLS 1.3. OpenSSL and Go use the same names. */
const TLS13_SUITES: readonly string[] = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
];

/** Cipher suites of TLS 1.2 that Go considers secure, with their names in OpenSSL. */
const TLS12_SUITES: ReadonlyMap<string, string> = new Map([
  ['TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA', 'ECDHE-ECDSA-AES128-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA', 'ECDHE-ECDSA-AES256-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA', 'ECDHE-RSA-AES128-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA', 'ECDHE-RSA-AES256-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
]);

/**
 * Converts Go's names of cipher suites to OpenSSL's list. Returns undefined without names, which
 * selects the ciphers of Node.js. All suites of TLS 1.3 stay enabled unless the names include some of
 * them; in Go, those of TLS 1.3 cannot be configured.
 *
 * @throws {UsageError} if a suite is unknown or not secure
 */
export function cipherList(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const tls13 = names.filter((name) => TLS13_SUITES.includes(name));
  const tls12 = names
    .filter((name) => !TLS13_SUITES.includes(name))
    .map((name) => {
      const known = TLS12_SUITES.get(name);
      if (known !== undefined) return known;
      const all = [...TLS13_SUITES, ...TLS12_SUITES.keys()].join(', ');
      throw new UsageError(
        `invalid value ${goQuote(name)} for --tls-cipher-suites: must be among ${all}`,
      );
    });
  return [...(tls13.length > 0 ? tls13 : TLS13_SUITES), ...tls12].join(':');
}
