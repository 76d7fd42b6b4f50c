import type { LookupFunction } from 'node:net';
import { ApiError } from '../api/api-error.ts';
import { noRestClientMetrics } from '../metrics/rest-client-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import type { HttpHandler } from '../util/http.ts';
import { silentLogger } from '../util/logger.ts';
import type { ClusterConfig } from './kube-config/cluster-config.ts';
import { impersonationHeaders } from './kube-config/cluster-config.ts';
import type { CredentialsOptions } from './kube-config/credentials.ts';
import { credentialsOf } from './kube-config/credentials.ts';
import { reloaderOf } from './kube-config/kube-config.ts';
import type { RequestTarget } from './exchanger.ts';
import type { HttpClientOptions } from './http-client.ts';
import { HttpClient } from './http-client.ts';
import type { ClusterTransportOptions } from './cluster-transport.ts';
import { clusterTransport } from './cluster-transport.ts';
import { TargetReloader } from './target-reloader.ts';
import type { OpenTarget } from './target-reloader.ts';
import { DialError } from './transport/connection-error.ts';
import { measuredLookup } from './transport/measured-lookup.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const CONFIG: OptionNames<ClusterConfig> = {
  source: true,
  server: true,
  ca: true,
  tlsServerName: true,
  insecureSkipTlsVerify: true,
  proxyUrl: true,
  credentials: true,
  impersonation: true,
  namespace: true,
  namespaceIsAssumed: true,
};

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
  around: true,
  reload: true,
};

export interface ClusterConnectionOptions
  extends
    CredentialsOptions,
    Pick<ClusterTransportOptions, 'headersTimeoutMs' | 'pingAfterMs' | 'pingTimeoutMs'>,
    Omit<HttpClientOptions, keyof RequestTarget | 'replaceTarget' | 'clock' | 'log' | 'metrics'> {
  readonly clock?: Clock | undefined;
  /** As in `DialOptions`. */
  readonly lookup?: LookupFunction | undefined;
  /**
   * Put around the transport: what every request passes last, a write fence for example. Called again
   * when `reload` returned another configuration.
   * @default nothing
   */
  readonly around?: ((handler: HttpHandler) => HttpHandler) | undefined;
  /**
   * Reads the configuration again. Called when the server cannot be reached, when it and the client do
   * not trust each other, and on a 401; at most every two seconds. If the configuration has changed,
   * new requests use it, and running watches are re-established with it.
   * @default reads the kubeconfig of a configuration that `loadClusterConfig` returned
   */
  readonly reload?: (() => Promise<ClusterConfig>) | undefined;
}

/** A client, and the connections under it. */
export interface ClusterConnection {
  readonly client: HttpClient;
  /** Where requests go now, without user and password. */
  readonly server: string;
  /** Ends all connections; what is in flight fails. */
  close(): Promise<void>;
}

/**
 * A client to the cluster `config` describes, with connections and credentials of its own: a lease's
 * client that shares neither with the rest is one more call. Nothing is sent before it is used.
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
    handler,
    server,
    credentials,
    replaceTarget: () => reloader.renewed(),
  });
  return {
    client,
    get server() {
      return reloader.target.server;
    },
    close: () => reloader.close(),
  };
}

/** Other libraries call other things a configuration; without TypeScript nothing else would say so. */
function requireClusterConfig(config: Partial<ClusterConfig> | null | undefined): void {
  if (config instanceof Promise) {
    throw new TypeError(
      'connectCluster: expected a ClusterConfig, got a Promise: connectCluster(await loadClusterConfig())',
    );
  }
  if (typeof config?.server !== 'string' || typeof config.credentials?.kind !== 'string') {
    const got = config?.constructor.name ?? typeof config;
    throw new TypeError(
      `connectCluster: expected a ClusterConfig, got ${got}. Read a kubeconfig with: connectCluster(await loadClusterConfig({ kubeconfig: 'FILE' }))`,
    );
  }
  checkOptions(config, CONFIG, 'ClusterConfig');
}

function openTarget(config: ClusterConfig, options: ClusterConnectionOptions): OpenTarget {
  const { server } = config;
  const { around = (handler) => handler, headersTimeoutMs, pingAfterMs, pingTimeoutMs } = options;
  const { clock = systemClock, metrics = noRestClientMetrics, lookup } = options;
  const credentials = credentialsOf(config, options);
  const transport = clusterTransport({
    server,
    tls: () => credentials.tls(),
    onTlsRefused: () => credentials.invalidateTls(),
    serverName: config.tlsServerName,
    insecure: config.insecureSkipTlsVerify,
    proxyUrl: config.proxyUrl,
    headers: impersonationHeaders(config.impersonation),
    lookup: measuredLookup({ metrics, clock, lookup }),
    ...(headersTimeoutMs === undefined ? {} : { headersTimeoutMs }),
    ...(pingAfterMs === undefined ? {} : { pingAfterMs }),
    ...(pingTimeoutMs === undefined ? {} : { pingTimeoutMs }),
    clock,
    log: options.log,
  });
  const retired = new AbortController();
  const handler: HttpHandler = async (request) => {
    retired.signal.throwIfAborted();
    if (!request.longRunning) return transport.handle(request);
    const signals = request.signal ? [request.signal, retired.signal] : [retired.signal];
    return transport.handle({ ...request, signal: AbortSignal.any(signals) });
  };
  return {
    handler: around(handler),
    server,
    credentials,
    retire() {
      retired.abort(
        new ApiError({
          kind: 'unreachable',
          message: `The connection to ${server} was given up: the kubeconfig has changed`,
          cause: new DialError('the kubeconfig has changed'),
        }),
      );
      return transport.retire();
    },
    close: () => transport.close(),
  };
}
