import type { LookupFunction } from 'node:net';
import { noRestClientMetrics } from '../metrics/rest-client-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import type { HttpHandler } from '../util/http.ts';
import type { ClusterConfig } from './kube-config/cluster-config.ts';
import { impersonationHeaders } from './kube-config/cluster-config.ts';
import type { CredentialsOptions } from './kube-config/credentials.ts';
import { credentialsOf } from './kube-config/credentials.ts';
import type { HttpClientOptions } from './http-client.ts';
import { HttpClient } from './http-client.ts';
import type { ClusterTransportOptions } from './cluster-transport.ts';
import { clusterTransport } from './cluster-transport.ts';
import { measuredLookup } from './transport/measured-lookup.ts';

export interface ClusterConnectionOptions
  extends
    CredentialsOptions,
    Pick<ClusterTransportOptions, 'headersTimeoutMs' | 'pingAfterMs' | 'pingTimeoutMs'>,
    Omit<HttpClientOptions, 'handler' | 'server' | 'credentials' | 'clock' | 'log' | 'metrics'> {
  readonly clock?: Clock | undefined;
  /** As in `DialOptions`. */
  readonly lookup?: LookupFunction | undefined;
  /**
   * Put around the transport: what every request passes last, a write fence for example.
   * @default nothing
   */
  readonly around?: ((handler: HttpHandler) => HttpHandler) | undefined;
}

/** A client, and the connections under it. */
export interface ClusterConnection {
  readonly client: HttpClient;
  /** Without user and password. */
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
  const { around = (handler) => handler, headersTimeoutMs, pingAfterMs, pingTimeoutMs } = options;
  const { clock = systemClock, metrics = noRestClientMetrics, lookup } = options;
  const credentials = credentialsOf(config, options);
  const transport = clusterTransport({
    server: config.server,
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
  const client = new HttpClient({
    ...options,
    handler: around(transport.handle),
    server: config.server,
    credentials,
  });
  return { client, server: config.server, close: () => transport.close() };
}
