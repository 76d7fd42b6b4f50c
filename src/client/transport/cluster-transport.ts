import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import type { Transport } from './transport.ts';
import { http1Transport } from './transport.ts';
import type { WatchConnectionsOptions } from './watch-connections.ts';
import { WatchConnections } from './watch-connections.ts';

/** Options of `clusterTransport`. */
export interface ClusterTransportOptions extends WatchConnectionsOptions {
  readonly headersTimeoutMs?: number | undefined;
}

/**
 * Creates a transport that sends watches over HTTP/2 connections with health checks and other requests over
 * HTTP/1.1. If the server does not support HTTP/2, all requests use HTTP/1.1.
 */
export function clusterTransport(options: ClusterTransportOptions): Transport {
  const watches = new WatchConnections(options);
  const ordinary = http1Transport(options);
  const watch = async (request: HttpRequest): Promise<HttpResponse> =>
    (await watches.send(request)) ?? ordinary.handle(request);
  return {
    server: ordinary.server,
    handle: (request) => (request.longRunning ? watch(request) : ordinary.handle(request)),
    async retire() {
      watches.retire();
      await ordinary.retire();
    },
    async close() {
      watches.close();
      await ordinary.close();
    },
  };
}
