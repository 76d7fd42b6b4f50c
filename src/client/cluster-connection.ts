import type { LookupFunction } from 'node:net';
import { ApiError } from '../api/api-error.ts';
import { noRestClientMetrics } from '../metrics/no-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import type { HttpHandler } from '../util/http.ts';
import { silentLogger } from '../util/logger.ts';
import type { ClusterConfig } from './kube-config/cluster-config.ts';
import { impersonationHeaders } from './kube-config/cluster-config.ts';
import type { CredentialsOptions } from './kube-config/credentials.ts';
import { credentialsOf } from './kube-config/credentials.ts';
import { reloaderOf } from './kube-config/kube-config.ts';
import type { RequestTarget } from './request-executor.ts';
import type { HttpClientOptions } from './http-client.ts';
import { HttpClient } from './http-client.ts';
import type { ClusterTransportOptions } from './transport/cluster-transport.ts';
import { clusterTransport } from './transport/cluster-transport.ts';
import { DialError } from './transport/connection-error.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/values.ts';
import { lookup as systemLookup } from 'node:dns';
import type { RestClientMetrics } from '../metrics/rest-client-metrics.ts';

const OPTIONS: OptionNames<ClusterConnectionOptions> = {
  clock: true,
  log: true,
  metrics: true,
  readFile: true,
  headersTimeoutMs: true,
  pingAfterMs: true,
  pingTimeoutMs: true,
  userAgent: true,
  requestTimeoutMs: true,
  qps: true,
  burst: true,
  onWarning: true,
  keepManagedFields: true,
  maxLineBytes: true,
  lookup: true,
  wrapTransport: true,
  reload: true,
  reachability: true,
};

/** Options of {@link connectCluster}. */
export interface ClusterConnectionOptions
  extends
    CredentialsOptions,
    Pick<ClusterTransportOptions, 'headersTimeoutMs' | 'pingAfterMs' | 'pingTimeoutMs'>,
    Omit<
      HttpClientOptions,
      keyof RequestTarget | 'replaceTarget' | 'clock' | 'log' | 'metrics' | 'namespace'
    > {
  readonly clock?: Clock | undefined;
  /** Resolves host names, as in `DialOptions`. */
  readonly lookup?: LookupFunction | undefined;
  /**
   * Wraps the transport, as client-go's `WrapTransport` does, for example with a write fence. Called again when
   * `reload` has returned another configuration.
   * @default the transport itself
   */
  readonly wrapTransport?: ((handler: HttpHandler) => HttpHandler) | undefined;
  /**
   * Reads the configuration again. Called when the server cannot be reached, when either side rejects the
   * other's certificate, and on a 401; at most every two seconds. If the configuration has changed,
   * new requests use it, and running watches are re-established with it.
   * @default reads the kubeconfig of a configuration that `loadClusterConfig` returned
   */
  readonly reload?: (() => Promise<ClusterConfig>) | undefined;
}

/** A client and its connections. */
export interface ClusterConnection {
  readonly client: HttpClient;
  /** Current address of the server, without user and password. */
  readonly server: string;
  /** Closes all connections; requests in flight fail. */
  close(): Promise<void>;
}

/**
 * Creates a client for a cluster. Each call creates connections and credentials that are not shared with other
 * clients. Sends nothing before the client is used.
 */
export function connectCluster(
  config: ClusterConfig,
  options: ClusterConnectionOptions = {},
): ClusterConnection {
  requireClusterConfig(config);
  checkOptions(options, OPTIONS, 'connectCluster');
  const { clock = systemClock, log = silentLogger, reload = reloaderOf(config) } = options;
  const open = (current: ClusterConfig) => openTarget(current, options);
  const reloader = new TargetReloader({ clock, log, open, reload }, config);
  const { handler, server, credentials } = reloader.target;
  const { userAgent, requestTimeoutMs, qps, burst, onWarning } = options;
  const client = new HttpClient({
    userAgent,
    requestTimeoutMs,
    qps,
    burst,
    onWarning,
    keepManagedFields: options.keepManagedFields,
    maxLineBytes: options.maxLineBytes,
    clock: options.clock,
    log: options.log,
    metrics: options.metrics,
    reachability: options.reachability,
    handler,
    server,
    credentials,
    namespace: config.namespaceIsAssumed ? undefined : config.namespace,
    replaceTarget: () => reloader.refresh(),
  });
  return {
    client,
    get server() {
      return reloader.target.server;
    },
    close: () => reloader.close(),
  };
}

/** Detects configurations of other libraries in programs without TypeScript. */
function requireClusterConfig(config: Partial<ClusterConfig> | null | undefined): void {
  if (config instanceof Promise) {
    throw new TypeError(
      'connectCluster: expected a ClusterConfig, got a Promise: connectCluster(await loadClusterConfig())',
    );
  }
  if (typeof config?.server !== 'string' || typeof config.credentials?.kind !== 'string') {
    const got = config?.constructor.name ?? typeof config;
    throw new TypeError(
      `connectCluster: expected a ClusterConfig, got ${got}. Read a kubeconfig with: connectCluster(await loadClusterConfig({ kubeconfig: 'FILE' })), or convert a KubeConfig of client-node with fromKubeConfig`,
    );
  }
}

function openTarget(config: ClusterConfig, options: ClusterConnectionOptions): OpenTarget {
  const { server } = config;
  const {
    wrapTransport = (handler) => handler,
    headersTimeoutMs,
    pingAfterMs,
    pingTimeoutMs,
  } = options;
  const { clock = systemClock, metrics = noRestClientMetrics, lookup } = options;
  const credentials = credentialsOf(config, options);
  const transport = clusterTransport({
    server,
    tls: () => credentials.tls(),
    onTlsRejected: () => credentials.invalidateTls(),
    serverName: config.tlsServerName,
    insecure: config.insecureSkipTlsVerify,
    proxyUrl: config.proxyUrl,
    headers: impersonationHeaders(config.impersonation),
    lookup: measuredLookup({ metrics, clock, lookup }),
    headersTimeoutMs,
    pingAfterMs,
    pingTimeoutMs,
    clock,
    log: options.log,
  });
  const retired = new AbortController();
  const handler: HttpHandler = (request) => {
    if (retired.signal.aborted) return Promise.reject(retired.signal.reason);
    if (!request.longRunning) return transport.handle(request);
    const signals = request.signal ? [request.signal, retired.signal] : [retired.signal];
    return transport.handle({ ...request, signal: AbortSignal.any(signals) });
  };
  return {
    handler: wrapTransport(handler),
    server,
    credentials,
    retire() {
      retired.abort(
        new ApiError({
          kind: 'unreachable',
          message: `The connection to ${server} was closed because the kubeconfig has changed`,
          cause: new DialError('the kubeconfig has changed'),
        }),
      );
      return transport.retire();
    },
    close: () => transport.close(),
  };
}

/** A target and its connections. */
interface OpenTarget extends RequestTarget {
  /**
   * Ends watches at once, waits for the responses of other requests and rejects new requests. Resolves when all
   * connections are closed.
   */
  retire(): Promise<void>;
  /** Closes all connections; requests in flight fail. */
  close(): Promise<void>;
}

interface TargetReloaderDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
  readonly open: (config: ClusterConfig) => OpenTarget;
  /** Reads the configuration again. Absent: the configuration never changes. */
  readonly reload: (() => Promise<ClusterConfig>) | undefined;
}

/** Minimum interval between two reads of the configuration, in milliseconds. */
const RELOAD_INTERVAL_MS = 2000;

/**
 * Holds the target of a configuration and replaces it as a whole when the configuration has changed: server, CA
 * and credentials of two versions are never mixed. It reads the configuration on demand, one read at a time and
 * at most every two seconds. If a read fails, the target stays.
 */
class TargetReloader {
  readonly #deps: TargetReloaderDeps;
  #config: ClusterConfig;
  #target: OpenTarget;
  readonly #retiring = new Set<OpenTarget>();
  #reading: Promise<void> | undefined;
  #readAgainAtMs = Number.NEGATIVE_INFINITY;
  #failure: string | undefined;
  #isClosed = false;

  constructor(deps: TargetReloaderDeps, config: ClusterConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#target = deps.open(config);
  }

  get target(): OpenTarget {
    return this.#target;
  }

  /** Reads the configuration again after a failed request; returns the target of further requests. */
  async refresh(): Promise<OpenTarget> {
    const { reload, clock } = this.#deps;
    if (reload && !this.#isClosed && clock.monotonic() >= this.#readAgainAtMs) {
      this.#reading ??= this.#read(reload).finally(() => {
        this.#readAgainAtMs = clock.monotonic() + RELOAD_INTERVAL_MS;
        this.#reading = undefined;
      });
    }
    await this.#reading;
    return this.#target;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#target, ...this.#retiring].map((target) => target.close()));
  }

  async #read(reload: () => Promise<ClusterConfig>): Promise<void> {
    const { log, open } = this.#deps;
    const former = this.#target;
    try {
      const config = await reload();
      this.#failure = undefined;
      if (this.#isClosed || isSameTarget(config, this.#config)) return;
      this.#target = open(config);
      this.#config = config;
    } catch (error) {
      const failure = messageOf(error);
      if (failure !== this.#failure) {
        log.error(error, 'Failed to read the kubeconfig again; using the previous configuration');
      }
      this.#failure = failure;
      return;
    }
    const { source, server } = this.#config;
    log.info('Kubeconfig changed; reconnecting', { source, server });
    this.#retiring.add(former);
    const forget = () => this.#retiring.delete(former);
    former.retire().then(forget, forget);
  }
}

/** Compares two configurations without the namespace, which is not part of a target. */
function isSameTarget(one: ClusterConfig, other: ClusterConfig): boolean {
  const namespace = '';
  return isDeepStrictEqual(
    { ...one, namespace, namespaceIsAssumed: false },
    { ...other, namespace, namespaceIsAssumed: false },
  );
}

interface MeasuredLookupDeps {
  readonly metrics: Pick<RestClientMetrics, 'resolved'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** @default the machine's resolver */
  readonly lookup?: LookupFunction | undefined;
}

/**
 * Returns a lookup that measures the duration of each name resolution, also if it fails, so that resolver
 * timeouts are visible. Sockets look up names only, not addresses.
 */
function measuredLookup({
  metrics,
  clock,
  lookup = systemLookup,
}: MeasuredLookupDeps): LookupFunction {
  return (host, options, callback) => {
    const sinceMs = clock.monotonic();
    lookup(host, options, (...result) => {
      metrics.resolved({ host, seconds: (clock.monotonic() - sinceMs) / 1000 });
      callback(...result);
    });
  };
}
