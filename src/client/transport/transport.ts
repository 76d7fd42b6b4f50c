import type { LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { Pool } from 'undici';
import type { Clock } from '../../util/clock.ts';
import type { HttpHandler, HttpRequest, HttpResponse } from '../../util/http.ts';
import { isCertificateRejected, unreachable } from './connection-error.ts';
import type { TlsMaterial } from './dial.ts';
import { dialer } from './dial.ts';
import { rejectOnAbort } from '../../util/abort.ts';
import { exchange } from './exchange.ts';
import type { ExchangeOptions } from './exchange.ts';

/** Options of `undiciTransport`. */
export interface TransportOptions {
  /** `https://10.0.0.1:6443`; if it has a path, that is prepended to every request's path. */
  readonly server: string;
  /**
   * Called before each request. If it returns another object, further requests use new connections, and requests
   * in flight end on the old ones.
   * @default the CAs that Node trusts, no client certificate
   */
  readonly tls?: () => TlsMaterial | Promise<TlsMaterial>;
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
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /**
   * Timeout for the response headers, in milliseconds. It is above the server's own 60 s, so that a 504 of the
   * server arrives first. Does not apply to watches over HTTP/2.
   * @default 65000
   */
  readonly headersTimeoutMs?: number;
  /** Resolves host names, as in `DialOptions`. */
  readonly lookup?: LookupFunction | undefined;
  /** Timeout of the TCP connection, as in `DialOptions`. */
  readonly dialTimeoutMs?: number;
  /** Timeout of the TLS handshake, as in `DialOptions`. */
  readonly handshakeTimeoutMs?: number;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'after'>;
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

/** Time for which idle connections are kept, in milliseconds: less than in load balancers and servers. */
const KEEP_ALIVE_MS = 30_000;

/**
 * Creates a transport for HTTP/1.1 over undici, with one connection for each concurrent request. So no request
 * blocks another, and a broken connection fails one request. Watches use HTTP/2 (watch-connections.ts) because
 * of its pings.
 *
 * Response bodies have no timeout. Failures below HTTP are `ApiError`s of kind `unreachable`.
 */
export function undiciTransport(options: TransportOptions): Transport {
  const server = new URL(options.server);
  const prefix = server.pathname.replace(/\/+$/, '');
  const { origin } = server;
  const presentable = `${origin}${prefix}`;
  const { tls = () => NO_MATERIAL } = options;
  const extraHeaders = (options.headers ?? []).flat();
  const headerLists = new WeakMap<HttpRequest['headers'], string[]>();
  let pool: { readonly material: TlsMaterial; readonly dispatcher: Dispatcher } | undefined;
  const retiring = new Set<Dispatcher>();

  const retire = (dispatcher: Dispatcher) => {
    retiring.add(dispatcher);
    const forget = () => retiring.delete(dispatcher);
    dispatcher.close().then(forget, forget);
  };

  const currentDispatcher = (material: TlsMaterial): Dispatcher => {
    if (pool && pool.material !== material) retire(pool.dispatcher);
    if (pool?.material !== material) {
      pool = { material, dispatcher: newDispatcher(server, material, options) };
    }
    return pool.dispatcher;
  };

  const headersOf = ({ headers }: HttpRequest): string[] => {
    const known = headerLists.get(headers);
    if (known) return known;
    const list = headerList(headers, extraHeaders);
    headerLists.set(headers, list);
    return list;
  };

  const explain: ExchangeOptions['explain'] = (error, signal) => {
    if (isCertificateRejected(error)) options.onTlsRejected?.();
    return signal?.aborted ? signal.reason : unreachable(error, presentable);
  };

  const handle = async (request: HttpRequest): Promise<HttpResponse> => {
    const { method, path, body, signal, beforeSend } = request;
    signal?.throwIfAborted();
    const pending = tls();
    const material = pending instanceof Promise ? await rejectOnAbort(pending, signal) : pending;
    return exchange({
      dispatcher: currentDispatcher(material),
      request: {
        origin,
        path: prefix + path,
        method,
        headers: headersOf(request),
        ...(body !== undefined && { body }),
      },
      signal,
      beforeSend,
      explain,
    });
  };

  const dispatchers = () => [...retiring, ...(pool ? [pool.dispatcher] : [])];
  return {
    handle,
    server: new URL(presentable),
    async retire() {
      await Promise.all(dispatchers().map((dispatcher) => dispatcher.close()));
    },
    async close() {
      await Promise.all(dispatchers().map((dispatcher) => dispatcher.destroy()));
    },
  };
}

const NO_MATERIAL: TlsMaterial = {};

function newDispatcher(server: URL, tls: TlsMaterial, options: TransportOptions): Dispatcher {
  return new Pool(server.origin, {
    headersTimeout: options.headersTimeoutMs ?? 65_000,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
    allowH2: false,
    connect: dialer({ ...options, tls }),
  });
}

/** Returns headers in the form that undici passes on unchanged: names and values in turn. */
function headerList(headers: Readonly<Record<string, string>>, more: readonly string[]): string[] {
  const list: string[] = [];
  for (const name of Object.keys(headers)) list.push(name, headers[name] ?? '');
  return more.length === 0 ? list : list.concat(more);
}
