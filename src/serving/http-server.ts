import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import type {
  Http2SecureServer,
  Http2ServerRequest,
  Http2ServerResponse,
  IncomingHttpHeaders,
} from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { Server as HttpsServer } from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SecureContextOptions, SecureVersion } from 'node:tls';
import { settledBeforeAbort } from '../util/abort.ts';
import { Deferred } from '../util/deferred.ts';
import type { Logger } from '../util/logger.ts';
import { SlowBodyError } from '../util/body-memory.ts';
import { OverloadedError } from '../util/memory-budget.ts';
import { printableLine } from '../util/printable.ts';
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { ServerConnections } from '../util/server-connections.ts';
import { currentAnchors } from '../util/server-trust.ts';
import type { Certificate } from '../util/x509.ts';
import { formatAddress, isLoopback, parseBindAddress } from './bind-address.ts';
import type { RequestAuthorizer } from './delegated-access.ts';
import type { HealthCheck } from './health-checks.ts';
import { probeResponse } from './health-checks.ts';
import { changeSetting, MAX_SETTING_BYTES } from './routes.ts';
import type { RouteCall, HttpServerRoutes, Page } from './routes.ts';
import { RequestBodies } from './request-body.ts';
import type { CertificateSource } from './serving-certificate.ts';

/** Options of {@link HttpServer}. */
export interface HttpServerOptions {
  readonly name: string;
  /** Address to listen on: `:8081`, `127.0.0.1:8081` or `[::1]:8081`. */
  readonly bindAddress: string;
  readonly routes: HttpServerRoutes;
  /** @default plain HTTP */
  readonly tls?: ServerTls | undefined;
  /**
   * Authorizes every request except health probes, also requests for unknown paths.
   * @default every request is allowed
   */
  readonly authorizer?: RequestAuthorizer | undefined;
  /**
   * Maximum number of open connections. At the limit, a new connection replaces an idle one.
   * @default 1000
   */
  readonly maxConnections?: number;
  /**
   * Timeout of a TLS handshake, and timeout for receiving a request with its body, in milliseconds.
   * @default 10_000
   */
  readonly requestTimeoutMs?: number;
  /**
   * Time for requests in progress to end when the server stops, in milliseconds. Clients can use open connections once
   * more within the first second.
   * @default 0
   */
  readonly drainTimeoutMs?: number;
  /** Called when the server itself refuses a request, other than a route. */
  readonly onRefused?: (refusal: Refusal) => void;
}

/** A request that the server refused. */
export interface Refusal {
  readonly path: string;
  readonly status: number;
  readonly reason: string;
  /** Remote address of the client. */
  readonly address: string;
}

/** The certificate and the TLS settings of a server. */
export interface ServerTls {
  readonly certificate: CertificateSource;
  /** @default 'TLSv1.2' */
  readonly minVersion?: Extract<SecureVersion, 'TLSv1.2' | 'TLSv1.3'>;
  /**
   * Cipher suites in OpenSSL's format, those of TLS 1.3 first.
   * @default the ciphers of Node.js
   */
  readonly ciphers?: string | undefined;
  /**
   * Offers HTTP/2 in addition to HTTP/1.1.
   * @default false
   */
  readonly http2?: boolean;
  /**
   * Certificates of authorities, PEM. Connections without a client certificate of one of them are closed, also those of
   * health probes.
   * @default every client is accepted
   */
  readonly clientCa?: string | undefined;
}

/** Idle timeout of a connection, in milliseconds, as in Go servers. */
const KEEP_ALIVE_MS = 90_000;

/** Time for clients to use their idle connections once more when the server stops, in milliseconds. */
const LINGER_MS = 1000;
const POLL_MS = 20;

/** Maximum number of requests in progress on an HTTP/2 connection, as in Go servers. */
const maxConcurrentStreams = 250;

/** Maximum size of the headers, in bytes: four times the maximum length of a bearer token. */
const MAX_HEADER_BYTES = 64 * 1024;

const PLAIN_TEXT = 'text/plain; charset=utf-8';

type AnyServer = Server | HttpsServer | Http2SecureServer;
type Incoming = IncomingMessage | Http2ServerRequest;
type Outgoing = ServerResponse | Http2ServerResponse;

interface Reply {
  readonly status: number;
  readonly contentType?: string;
  readonly body: string | Readable;
  readonly fileName?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Closes the connection, because the client is not authenticated. */
  readonly close?: boolean;
  /** The reply of a call, which reports its failures itself. */
  readonly isAnswer?: true;
}

/** Values of `Sec-Fetch-Site` of the server's own pages, and of addresses that a user typed. */
const OWN_SITES: ReadonlySet<unknown> = new Set(['same-origin', 'none']);

/** Returns why a request may come from a web page of another origin, or undefined if it does not. */
function crossOriginReason(
  headers: IncomingHttpHeaders,
  scheme: 'http' | 'https',
): string | undefined {
  const host = hostOf(headers);
  const { origin } = headers;
  if (origin !== undefined && origin.toLowerCase() !== `${scheme}://${host}`.toLowerCase()) {
    return 'The Origin header must be absent or name this server';
  }
  const site = headers['sec-fetch-site'];
  if (site !== undefined && !OWN_SITES.has(site)) {
    return 'The Sec-Fetch-Site header must be absent, same-origin or none';
  }
  return undefined;
}

/**
 * HTTP server for health probes, metrics and debug pages: plain HTTP, or TLS with a certificate that
 * can be renewed without a restart.
 *
 * Health probes are served without authorization, in kube-apiserver's format: `ok`, or one line per
 * check with `?verbose`; `?exclude=NAME` and `/readyz/NAME` select checks; status 500 on failure.
 * Other requests get status 403 if a web page of another origin may have sent them.
 */
export class HttpServer implements Runnable {
  readonly name: string;
  readonly #options: HttpServerOptions;
  readonly #address: { readonly host?: string; readonly port: number };
  readonly #log: Logger;
  /** The server listens on a loopback address and does not authorize requests. */
  readonly #checksHost: boolean;
  readonly #listening = new Deferred<string>();
  readonly #bodies = new RequestBodies();

  constructor(deps: { log: Logger }, options: HttpServerOptions) {
    this.name = options.name;
    this.#options = options;
    this.#address = parseBindAddress(options.bindAddress);
    this.#log = deps.log;
    this.#checksHost = !options.authorizer && isLoopback(options.bindAddress);
  }

  /** Resolves to `HOST:PORT` once the server listens, with the actual port if port 0 is configured. */
  get listening(): Promise<string> {
    return this.#listening.promise;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { tls } = this.#options;
    const limits = limitsOf(this.#options);
    if (!tls) return this.#serve(createServer(limits), signal);
    const loading = tls.certificate.load();
    // The certificate may come from an API server that is not reachable.
    if (!(await settledBeforeAbort(loading, signal))) return;
    const server = secureServer(tls, await loading, limits);
    const renew = (renewed: Certificate) => server.setSecureContext(contextOf(tls, renewed));
    await runAll(
      [(signal) => this.#serve(server, signal), (signal) => tls.certificate.watch(signal, renew)],
      signal,
    );
  }

  async #serve(server: AnyServer, signal: AbortSignal): Promise<void> {
    const { maxConnections = 1000, requestTimeoutMs = 10_000, drainTimeoutMs = 0 } = this.#options;
    const connections = new ServerConnections(server, {
      maxConnections,
      firstRequestMs: requestTimeoutMs,
      idleMs: KEEP_ALIVE_MS,
    });
    const responses = new Set<Promise<void>>();
    server.on('request', (request: Incoming, response: Outgoing) => {
      const responding = this.#respond(request, response, signal);
      responses.add(responding);
      void responding.finally(() => responses.delete(responding));
    });
    await new Promise<void>((resolve, reject) => {
      const close = async () => {
        await emptied(connections, Math.min(LINGER_MS, drainTimeoutMs));
        server.close(() => resolve());
        await drained(responses, drainTimeoutMs);
        connections.destroy();
      };
      server.once('error', (cause) => {
        const address = this.#options.bindAddress;
        const message = `Unable to listen on ${address} for ${this.name}: ${cause.message}`;
        reject(new Error(message, { cause }));
      });
      server.listen(this.#address, () => {
        const address = formatAddress(server.address());
        this.#log.v(1).info('Listening', { server: this.name, address });
        this.#listening.resolve(address);
        if (signal.aborted) void close();
        signal.addEventListener('abort', () => void close(), { once: true });
      });
    });
    await Promise.all(responses);
  }

  /** Responds to a request. Never rejects; errors are logged. */
  async #respond(request: Incoming, response: Outgoing, signal: AbortSignal): Promise<void> {
    const closed = new AbortController();
    // The stop of the server closes all connections.
    response.once('close', () => closed.abort());
    let reply: Reply;
    try {
      reply = await this.#handle(request, signal, closed.signal);
    } catch (error) {
      if (error instanceof OverloadedError) reply = { ...OVERLOADED, close: !request.complete };
      else if (error instanceof SlowBodyError) reply = TOO_SLOW;
      else if (!request.complete) {
        this.#log.v(2).info('Request was interrupted', { server: this.name, err: error });
        return;
      } else {
        this.#log.error(error, 'Unable to handle request', { server: this.name });
        reply = { status: 500, body: 'internal error\n' };
      }
    }
    this.#reportRefusal(request, reply);
    const { status, contentType = PLAIN_TEXT, body, fileName, headers = {}, close } = reply;
    response.statusCode = status;
    response.setHeader('content-type', contentType);
    response.setHeader('x-content-type-options', 'nosniff');
    if (fileName !== undefined) {
      response.setHeader('content-disposition', `attachment; filename="${fileName}"`);
    }
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (close || signal.aborted) closeConnectionAfter(response);
    if (typeof body === 'string') response.end(body);
    else await this.#stream(body, response);
  }

  #reportRefusal({ url = '', socket }: Incoming, { status, body, isAnswer }: Reply): void {
    if (status < 400 || isAnswer) return;
    const [path = ''] = url.split('?', 1);
    const reason = typeof body === 'string' ? body.trim() : '';
    this.#options.onRefused?.({ path, status, reason, address: socket.remoteAddress ?? '' });
  }

  async #stream(body: Readable, response: Outgoing): Promise<void> {
    try {
      await pipeline(body, response);
    } catch (error) {
      this.#log.v(2).info('Response was interrupted', { server: this.name, err: error });
    }
  }

  async #handle(request: Incoming, signal: AbortSignal, closed: AbortSignal): Promise<Reply> {
    const { method = '' } = request;
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    const [, probe = '', only, ...more] = path.split('/');
    const checks = more.length === 0 ? this.#checksOf(probe) : undefined;
    if (checks) {
      if (!isRead(method)) return NOT_ALLOWED;
      const probeRequest = { probe, checks, only, query: new URLSearchParams(query) };
      return { ...probeResponse(probeRequest, this.#log), close: true };
    }
    const crossOrigin = crossOriginReason(request.headers, this.#options.tls ? 'https' : 'http');
    if (crossOrigin !== undefined) return rejected(403, crossOrigin);
    const { authorization } = request.headers;
    const { authorizer, routes } = this.#options;
    const address = request.socket.remoteAddress ?? '';
    const decision = await authorizer?.authorize({ method, path, authorization, address, signal });
    if (decision && !decision.allowed) return rejected(decision.status, decision.reason);
    const { metrics, pages, downloads, settings, calls } = routes;
    const isForBrowsers = [pages, downloads, settings].some((paths) => paths && paths.size > 0);
    const isForProxies = calls?.has(path) || (metrics && path === '/metrics');
    if (this.#checksHost && isForBrowsers && !isForProxies) {
      if (!isLoopback(hostOf(request.headers))) return FOREIGN_HOST;
    }
    const call = calls?.get(path);
    if (call) return this.#call(call, request, new URLSearchParams(query), closed);
    if (calls && method === 'POST') return NOT_FOUND;
    const setting = settings?.get(path);
    if (setting && method === 'PUT') {
      const change = (body: Buffer) => changeSetting(setting, body.toString());
      const { 'content-length': contentLength } = request.headers;
      const maxBytes = MAX_SETTING_BYTES;
      const body = { request, contentLength, maxBytes, address, signal: closed };
      return (await this.#bodies.read(body, change)) ?? TOO_LARGE;
    }
    if (!isRead(method)) return NOT_ALLOWED;
    if (setting) return { status: 200, body: setting.get() };
    const page = pages?.get(path);
    if (page) return page(new URLSearchParams(query));
    const download = downloads?.get(path);
    if (download && method !== 'GET') return NOT_ALLOWED;
    if (download) return download({ query: new URLSearchParams(query), signal: closed });
    if (!metrics || path !== '/metrics') return NOT_FOUND;
    const { contentType, text } = await metrics();
    return { status: 200, contentType, body: text };
  }

  async #call(
    { maxBytes, respond }: RouteCall,
    request: Incoming,
    query: URLSearchParams,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { method, headers } = request;
    if (method !== 'POST') return NOT_ALLOWED;
    const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
    if (type.trim().toLowerCase() !== 'application/json') return NOT_JSON;
    const { 'content-length': contentLength } = headers;
    const address = request.socket.remoteAddress ?? '';
    const body = { request, contentLength, maxBytes, address, signal };
    const use = async (body: Buffer): Promise<Reply> => {
      const page = await respond({ query, headers, body, signal });
      return { ...page, isAnswer: true };
    };
    return (await this.#bodies.read(body, use)) ?? TOO_LARGE;
  }

  #checksOf(probe: string): readonly HealthCheck[] | undefined {
    switch (probe) {
      case 'livez':
      case 'healthz':
        return this.#options.routes.livez;
      case 'readyz':
        return this.#options.routes.readyz;
      default:
        return undefined;
    }
  }
}

/**
 * Response to a page in a browser on this machine whose host name resolves to a loopback address (DNS rebinding). Only
 * the Host header distinguishes its requests. Metrics and webhooks are not checked: a proxy in the same Pod, a Service or
 * an API server names other hosts.
 */
const FOREIGN_HOST: Reply = rejected(
  403,
  'The Host header must be localhost or a loopback address such as 127.0.0.1',
);
const NOT_FOUND: Reply = { status: 404, body: '404 not found\n' };
const NOT_ALLOWED: Reply = { status: 405, body: '405 method not allowed\n' };
const TOO_LARGE: Reply = { status: 413, body: '413 too large\n', close: true };
/** API servers retry such a call within its timeout. The connection stays open, and the body is discarded. */
export const OVERLOADED: Page = {
  status: 429,
  contentType: PLAIN_TEXT,
  body: '429 too many requests\n',
  headers: { 'retry-after': '1' },
};
const NOT_JSON: Reply = { status: 415, body: 'The content type must be application/json\n' };

/** Response to a client that sends its body too slowly. */
const TOO_SLOW: Reply = { status: 408, body: '408 request timeout\n', close: true };

function hostOf(headers: IncomingHttpHeaders): string {
  return headers.host ?? headers[':authority'] ?? '';
}

function rejected(status: number, reason: string): Reply {
  const headers = status === 401 ? { 'www-authenticate': 'Bearer' } : {};
  return { status, body: `${printableLine(reason)}\n`, headers, close: true };
}

/** Closes the connection after the response, for HTTP/2 after all responses in progress. */
function closeConnectionAfter(response: Outgoing): void {
  if ('stream' in response) response.stream.session?.close();
  else response.setHeader('connection', 'close');
}

function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Resolves when there are no connections, or after a timeout. Meanwhile each response closes its connection. An idle
 * connection must not be closed at once, because the client may be sending its next request. The time in which the event
 * loop is blocked does not count, because no request is read in it.
 */
async function emptied(connections: ServerConnections, timeoutMs: number): Promise<void> {
  for (let left = timeoutMs; connections.size > 0 && left > 0; left -= POLL_MS) {
    await sleep(POLL_MS);
  }
}

/** Resolves when there are no responses in progress, or after a timeout. */
async function drained(responses: ReadonlySet<Promise<void>>, timeoutMs: number): Promise<void> {
  const limit = timeoutMs === 0 ? AbortSignal.abort() : AbortSignal.timeout(timeoutMs);
  // Open connections can send further requests.
  while (responses.size > 0 && !limit.aborted) {
    await settledBeforeAbort(Promise.all(responses), limit);
  }
}

type Limits = ReturnType<typeof limitsOf>;

function limitsOf({ requestTimeoutMs = 10_000 }: HttpServerOptions) {
  return {
    handshakeTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: requestTimeoutMs / 5,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
  };
}

function secureServer(
  tls: ServerTls,
  certificate: Certificate,
  limits: Limits,
): HttpsServer | Http2SecureServer {
  const requestCert = tls.clientCa !== undefined;
  const options = { ...limits, ...contextOf(tls, certificate), requestCert };
  return tls.http2
    ? createSecureServer({ ...options, allowHTTP1: true, settings: { maxConcurrentStreams } })
    : createHttpsServer(options);
}

function contextOf(
  { minVersion = 'TLSv1.2', ciphers, clientCa: ca }: ServerTls,
  { certificatePem, privateKeyPem }: Certificate,
): SecureContextOptions {
  const cert = certificatePem;
  return {
    cert,
    key: privateKeyPem,
    minVersion,
    ...(ciphers !== undefined && { ciphers }),
    // Each given certificate is an anchor, also an intermediate, as in Go.
    ...(ca !== undefined && { ca: currentAnchors(ca), allowPartialTrustChain: true }),
  };
}
