import type { LookupFunction } from 'node:net';
import type { Clock } from '../../util/clock.ts';
import type { HttpHandler, HttpRequest, HttpResponse } from '../../util/http.ts';
import { oncePerObject } from '../../util/memo.ts';
import { isCertificateRejected, unreachable } from './connection-error.ts';
import type { TlsMaterial } from './dial.ts';
import { dial } from './dial.ts';
import { rejectOnAbort } from '../../util/abort.ts';
import { exchange } from './exchange.ts';
import type { ExchangeOptions } from './exchange.ts';
import { headerLines } from './http1-connection.ts';
import { Http1Pool } from './http1-pool.ts';

/** Options of `http1Transport`. */
export interface TransportOptions {
  /** `https://10.0.0.1:6443`; if it has a path, that is prepended to every request's path. */
  readonly server: string;
  /**
   * Called before each request. If it returns another object, further requests use new connections, and requests
   * in flight end on the old ones.
   * @default the CAs that Node trusts, no client certificate
   */
  readonly tls?: (() => TlsMaterial | Promise<TlsMaterial>) | undefined;
  /** Called when either side rejected the other's certificate, so that `tls` can read the files again. */
  readonly onTlsRejected?: (() => void) | undefined;
  /**
   * Expected name in the server's certificate.
   * @default the host name
   */
  readonly serverName?: string | undefined;
  /**
   * Disables the verification of the server's certificate.
   * @default false
   */
  readonly insecure?: boolean | undefined;
  /** URL of the proxy, as in `DialOptions`. */
  readonly proxyUrl?: string | undefined;
  /** Additional headers of every request; names can repeat. */
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  /**
   * Timeout for the response headers, in milliseconds. It is above the server's own 60 s, so that a 504 of the
   * server arrives first. Does not apply to watches over HTTP/2.
   * @default 65000
   */
  readonly headersTimeoutMs?: number | undefined;
  /**
   * Timeout for each further part of a response, in milliseconds; 0 disables it.
   * @default 0
   */
  readonly bodyTimeoutMs?: number | undefined;
  /** Resolves host names, as in `DialOptions`. */
  readonly lookup?: LookupFunction | undefined;
  /** Timeout of the TCP connection, as in `DialOptions`. */
  readonly dialTimeoutMs?: number | undefined;
  /** Timeout of the TLS handshake, as in `DialOptions`. */
  readonly handshakeTimeoutMs?: number | undefined;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'after'> | undefined;
}

/** Connections to one API server. */
export interface Transport {
  readonly handle: HttpHandler;
  /** Address of the server without credentials, for messages and labels. */
  readonly server: URL;
  /** Rejects new requests; resolves when requests in flight have ended and all connections are closed. */
  retire(): Promise<void>;
  /** Closes all connections; requests in flight fail. */
  close(): Promise<void>;
}

/**
 * Creates a transport for HTTP/1.1, with one connection for each concurrent request. So no request
 * blocks another, and a broken connection fails one request. Watches use HTTP/2 (watch-connections.ts) because
 * of its pings.
 *
 * Failures below HTTP are `ApiError`s of kind `unreachable`.
 */
export function http1Transport(options: TransportOptions): Transport {
  const server = new URL(options.server);
  const prefix = server.pathname.replace(/\/+$/, '');
  const presentable = `${server.origin}${prefix}`;
  const { tls = () => NO_MATERIAL } = options;
  const extraHeaders = options.headers ?? [];
  let current: { readonly material: TlsMaterial; readonly pool: Http1Pool } | undefined;
  const retiring = new Set<Http1Pool>();

  const retire = (pool: Http1Pool) => {
    retiring.add(pool);
    void pool.close().then(() => retiring.delete(pool));
  };

  const poolFor = (material: TlsMaterial): Http1Pool => {
    if (current && current.material !== material) retire(current.pool);
    if (current?.material !== material) {
      current = { material, pool: newPool(server, material, options) };
    }
    return current.pool;
  };

  const headerLinesOf = oncePerObject((headers: HttpRequest['headers']) =>
    headerLines([...Object.entries(headers), ...extraHeaders]),
  );

  const explain: ExchangeOptions['explain'] = (error, signal) => {
    if (isCertificateRejected(error)) options.onTlsRejected?.();
    return signal?.aborted ? signal.reason : unreachable(error, presentable);
  };

  const handle = async (request: HttpRequest): Promise<HttpResponse> => {
    const { method, path, headers, body, signal, beforeSend } = request;
    signal?.throwIfAborted();
    const pending = tls();
    const material = pending instanceof Promise ? await rejectOnAbort(pending, signal) : pending;
    return exchange({
      pool: poolFor(material),
      request: { method, path: prefix + path, headerLines: headerLinesOf(headers), body },
      signal,
      beforeSend,
      explain,
    });
  };

  const pools = () => [...retiring, ...(current ? [current.pool] : [])];
  return {
    handle,
    server: new URL(presentable),
    async retire() {
      await Promise.all(pools().map((pool) => pool.close()));
    },
    async close() {
      for (const pool of pools()) pool.destroy();
    },
  };
}

const NO_MATERIAL: TlsMaterial = {};

function newPool(server: URL, tls: TlsMaterial, options: TransportOptions): Http1Pool {
  return new Http1Pool({
    host: server.host,
    headersTimeoutMs: options.headersTimeoutMs ?? 65_000,
    bodyTimeoutMs: options.bodyTimeoutMs ?? 0,
    dial: (signal) => dial(server, { ...options, tls, signal }),
  });
}
