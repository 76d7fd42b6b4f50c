import type { LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { Pool } from 'undici';
import type { Clock } from '../../util/clock.ts';
import type { HttpHandler, HttpRequest, HttpResponse } from '../../util/http.ts';
import { isCertificateRefused, unreachable } from './connection-error.ts';
import type { TlsMaterial } from './dial.ts';
import { dialer } from './dial.ts';
import { rejectOnAbort } from '../../util/abort.ts';
import type { WatchConnectionsOptions } from './watch-connections.ts';
import { WatchConnections } from './watch-connections.ts';

/** Options of `Transport`. */
export interface TransportOptions {
  /** `https://10.0.0.1:6443`; a path is put before every request's. */
  readonly server: string;
  /**
   * Asked before each request. A new object (not an equal one) makes the requests from then on use
   * new connections; those in flight end on the old ones.
   * @default what Node trusts, and no client certificate
   */
  readonly tls?: () => TlsMaterial | Promise<TlsMaterial>;
  /** Called when one side did not trust the other's certificate: `tls` may have newer material. */
  readonly onTlsRefused?: (() => void) | undefined;
  /** Name to expect in the server's certificate instead of the host's. */
  readonly serverName?: string | undefined;
  /**
   * Accept any certificate of the server.
   * @default false
   */
  readonly insecure?: boolean | undefined;
  /** As in `DialOptions`. */
  readonly proxyUrl?: string | undefined;
  /** Sent with every request, in addition to its own: names may repeat. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /**
   * Bound on the wait for an answer's headers, in milliseconds. Above the server's own 60 s, so
   * that its 504 comes first.
   * @default 65000
   */
  readonly headersTimeoutMs?: number;
  /** As in `DialOptions`. */
  readonly lookup?: LookupFunction | undefined;
  /** As in `DialOptions`. */
  readonly dialTimeoutMs?: number;
  /** As in `DialOptions`. */
  readonly handshakeTimeoutMs?: number;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'after'>;
}

/** Connections to one API server. */
export interface Transport {
  readonly handle: HttpHandler;
  /** Where requests go, without credentials: for messages and labels. */
  readonly server: URL;
  /** Takes no new requests; resolves when those in flight have ended and all connections are closed. */
  retire(): Promise<void>;
  /** Ends all connections; what is in flight fails. */
  close(): Promise<void>;
}

/** An idle connection is kept for less long than balancers and servers keep theirs. */
const KEEP_ALIVE_MS = 30_000;

/**
 * HTTP/1.1 over undici, with as many connections as there are requests at once: none holds up
 * another, and one that is half open fails one request. HTTP/2 is left to what is endless
 * (watch-lane.ts), which needs its pings.
 *
 * Bodies have no timeout here; who reads one that may be silent keeps a clock on it. Failures below
 * HTTP are `ApiError`s of kind `unreachable`.
 */
export function undiciTransport(options: TransportOptions): Transport {
  const server = new URL(options.server);
  const prefix = server.pathname.replace(/\/+$/, '');
  const presentable = `${server.origin}${prefix}`;
  const { tls = () => NO_MATERIAL } = options;
  const extraHeaders = (options.headers ?? []).flat();
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

  const handle = async (request: HttpRequest): Promise<HttpResponse> => {
    const { signal, body, beforeSend } = request;
    signal?.throwIfAborted();
    const material = await rejectOnAbort(Promise.resolve(tls()), signal);
    try {
      const dispatcher = currentDispatcher(material);
      const sender = beforeSend ? dispatcher.compose(asking(beforeSend)) : dispatcher;
      const answer = await sender.request({
        origin: server.origin,
        path: prefix + request.path,
        method: request.method,
        headers: [...Object.entries(request.headers).flat(), ...extraHeaders],
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
      });
      return {
        status: answer.statusCode,
        headers: flatten(answer.headers),
        body: readBody(answer.body, signal, presentable),
      };
    } catch (error) {
      if (isCertificateRefused(error)) options.onTlsRefused?.();
      signal?.throwIfAborted();
      throw unreachable(error, presentable);
    }
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

/** Calls `beforeSend` when there is a connection and the first byte is about to be written to it. */
function asking(beforeSend: () => void): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) =>
    dispatch(options, {
      onRequestStart(controller, context) {
        beforeSend();
        handler.onRequestStart?.(controller, context);
      },
      onRequestUpgrade: (...event) => handler.onRequestUpgrade?.(...event),
      onResponseStart: (...event) => handler.onResponseStart?.(...event),
      onResponseData: (...event) => handler.onResponseData?.(...event),
      onResponseEnd: (...event) => handler.onResponseEnd?.(...event),
      onResponseError: (...event) => handler.onResponseError?.(...event),
    });
}

/** Leaving early destroys the stream, which closes its connection. */
async function* readBody(
  body: Dispatcher.ResponseData['body'],
  signal: AbortSignal | undefined,
  server: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* body as AsyncIterable<Uint8Array>;
  } catch (error) {
    signal?.throwIfAborted();
    throw unreachable(error, server);
  }
}

function flatten(
  headers: Record<string, string | string[] | undefined>,
): Readonly<Record<string, string>> {
  const flat: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

/** Options of `ClusterTransport`. */
export interface ClusterTransportOptions extends WatchConnectionsOptions {
  /** As in `TransportOptions`; of what is not endless. */
  readonly headersTimeoutMs?: number;
}

/**
 * What is endless goes over HTTP/2 connections that are asked for signs of life, everything else over
 * HTTP/1.1; where the server does not speak HTTP/2, all of it does.
 */
export function clusterTransport({ clock, ...options }: ClusterTransportOptions): Transport {
  const lane = new WatchConnections({ ...options, clock });
  const ordinary = undiciTransport({ ...options, ...(clock === undefined ? {} : { clock }) });
  return {
    server: ordinary.server,
    handle: async (request) =>
      (request.longRunning ? await lane.send(request) : undefined) ?? ordinary.handle(request),
    async retire() {
      lane.retire();
      await ordinary.retire();
    },
    async close() {
      lane.close();
      await ordinary.close();
    },
  };
}
