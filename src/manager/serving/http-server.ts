import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { Http2SecureServer, Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { Server as HttpsServer } from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { SecureContextOptions, SecureVersion } from 'node:tls';
import type { Exposition } from '../../metrics/registry.ts';
import type { Logger } from '../../util/logger.ts';
import { Deferred } from '../../util/deferred.ts';
import { runAll } from '../../util/runnable.ts';
import type { Runnable } from '../../util/runnable.ts';
import { ServerConnections } from '../../util/server-connections.ts';
import type { Certificate } from '../../util/x509.ts';
import { formatAddress, isLoopback, parseBindAddress } from './bind-address.ts';
import type { RequestGuard } from './delegated-access.ts';
import type { Downloads } from './download.ts';
import type { HealthCheck } from './health-probe.ts';
import { probeAnswer } from './health-probe.ts';
import type { Pages } from './page.ts';
import type { ServedAt } from './request-origin.ts';
import { foreignOrigin } from './request-origin.ts';
import type { CertificateSource } from './serving-certificate.ts';
import type { Settings } from './settings.ts';
import { LONGEST_SETTING, settingAnswer } from './settings.ts';
import { checkOptions } from '../../util/check-options.ts';
import type { OptionNames } from '../../util/check-options.ts';

const SERVER_OPTIONS: OptionNames<HttpServerOptions> = {
  name: true,
  bindAddress: true,
  routes: true,
  tls: true,
  guard: true,
  maxConnections: true,
  requestTimeoutMs: true,
};

const ROUTES: OptionNames<HttpServerRoutes> = {
  livez: true,
  readyz: true,
  metrics: true,
  pages: true,
  downloads: true,
  settings: true,
};

const TLS_OPTIONS: OptionNames<ServerTls> = {
  certificate: true,
  minVersion: true,
  ciphers: true,
  http2: true,
};

/** What a server serves; absent routes answer 404. */
export interface HttpServerRoutes {
  /** Answered at `/livez` and `/healthz`: the process itself, never what it depends on. */
  readonly livez?: readonly HealthCheck[];
  /** Answered at `/readyz`. */
  readonly readyz?: readonly HealthCheck[];
  /** Answered at `/metrics`: Prometheus text. */
  readonly metrics?: () => Promise<Exposition>;
  /** Answered at their own paths: `/debug/queues`. */
  readonly pages?: Pages;
  /** Answered at their own paths, with GET alone: `/debug/pprof/profile`. */
  readonly downloads?: Downloads;
  /** Read with GET, changed with PUT at their own paths: `/debug/flags/v`. */
  readonly settings?: Settings;
}

/** Options of `HttpServer`. */
export interface HttpServerOptions {
  readonly name: string;
  /** `:8081`, `127.0.0.1:8081` or `[::1]:8081`. */
  readonly bindAddress: string;
  readonly routes: HttpServerRoutes;
  /** @default plain HTTP */
  readonly tls?: ServerTls | undefined;
  /**
   * Asked about every request but probes, also about paths that there are not.
   * @default everybody may ask everything
   */
  readonly guard?: RequestGuard | undefined;
  /**
   * Open connections. At the limit, a new connection takes the place of one that is idle.
   * @default 1000
   */
  readonly maxConnections?: number;
  /**
   * Time for a TLS handshake, and time for a request to arrive, headers and body, in milliseconds.
   * @default 10_000
   */
  readonly requestTimeoutMs?: number;
}

/** The certificate and the TLS settings of a server. */
export interface ServerTls {
  readonly certificate: CertificateSource;
  /** @default 'TLSv1.2' */
  readonly minVersion?: Extract<SecureVersion, 'TLSv1.2' | 'TLSv1.3'>;
  /**
   * As OpenSSL lists them, those of TLS 1.3 first.
   * @default those of Node.js
   */
  readonly ciphers?: string | undefined;
  /**
   * Speak HTTP/2, besides HTTP/1.1, with clients that want to.
   * @default false
   */
  readonly http2?: boolean;
}

/** How long a client may keep a connection for its next request, in milliseconds: as in Go servers. */
const KEEP_ALIVE_MS = 90_000;

/** In bytes; a bearer token has at most a quarter of it. */
const MAX_HEADER_BYTES = 64 * 1024;

const PLAIN_TEXT = 'text/plain; charset=utf-8';

type AnyServer = Server | HttpsServer | Http2SecureServer;
type Incoming = IncomingMessage | Http2ServerRequest;
type Outgoing = ServerResponse | Http2ServerResponse;

interface Answer {
  readonly status: number;
  readonly contentType?: string;
  readonly body: string | Readable;
  readonly fileName?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Answered without asking who the client is: its connection is not kept. */
  readonly isLast?: boolean;
}

/**
 * Probes, metrics and what people look into: over plain HTTP, or TLS with a certificate that may be
 * renewed while it runs. Probes are for everybody, in the manner of the kube-apiserver: `ok`, or with
 * `?verbose` a line a check; `?exclude=NAME` and `/readyz/NAME` narrow it; 500 on failure.
 *
 * Everything but probes is refused with 403 if a web page of somebody else may have asked for it.
 */
export class HttpServer implements Runnable {
  readonly name: string;
  readonly #options: HttpServerOptions;
  readonly #address: { readonly host?: string; readonly port: number };
  readonly #log: Logger;
  readonly #servedAt: ServedAt;
  readonly #listening = new Deferred<string>();

  constructor(deps: { log: Logger }, options: HttpServerOptions) {
    checkOptions(options, SERVER_OPTIONS, 'HttpServer');
    checkOptions(options.routes, ROUTES, 'HttpServer: routes');
    if (options.tls) checkOptions(options.tls, TLS_OPTIONS, 'HttpServer: tls');
    this.name = options.name;
    this.#options = options;
    this.#address = parseBindAddress(options.bindAddress);
    this.#log = deps.log;
    this.#servedAt = {
      scheme: options.tls ? 'https' : 'http',
      isOpenLocally: !options.guard && isLoopback(options.bindAddress),
    };
  }

  /** Resolves to `HOST:PORT` when the server listens: the actual port if port 0 was given. */
  get listening(): Promise<string> {
    return this.#listening.promise;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { tls } = this.#options;
    const limits = limitsOf(this.#options);
    if (!tls) return this.#serve(createServer(limits), signal);
    const server = secureServer(tls, await tls.certificate.load(), limits);
    const renew = (renewed: Certificate) => server.setSecureContext(contextOf(tls, renewed));
    await runAll(
      [(signal) => this.#serve(server, signal), (signal) => tls.certificate.watch(signal, renew)],
      signal,
    );
  }

  async #serve(server: AnyServer, signal: AbortSignal): Promise<void> {
    const { maxConnections = 1000, requestTimeoutMs = 10_000 } = this.#options;
    const connections = new ServerConnections(server, {
      maxConnections,
      firstRequestMs: requestTimeoutMs,
      idleMs: KEEP_ALIVE_MS,
    });
    const exchanges = new Set<Promise<void>>();
    server.on('request', (request: Incoming, response: Outgoing) => {
      const exchange = this.#exchange(request, response, signal);
      exchanges.add(exchange);
      void exchange.finally(() => exchanges.delete(exchange));
    });
    await new Promise<void>((resolve, reject) => {
      const close = () => {
        server.close(() => resolve());
        connections.destroy();
      };
      server.once('error', (cause) => {
        const address = this.#options.bindAddress;
        const message = `Could not listen on ${address} for ${this.name}: ${cause.message}`;
        reject(new Error(message, { cause }));
      });
      server.listen(this.#address, () => {
        const address = formatAddress(server.address());
        this.#log.v(1).info('Listening', { server: this.name, address });
        this.#listening.resolve(address);
        if (signal.aborted) close();
        signal.addEventListener('abort', close, { once: true });
      });
    });
    await Promise.all(exchanges);
  }

  /** Never rejects: what cannot be answered is logged. */
  async #exchange(request: Incoming, response: Outgoing, signal: AbortSignal): Promise<void> {
    const gone = new AbortController();
    // Also when the server stops: it closes all connections.
    response.once('close', () => gone.abort());
    let answer: Answer;
    try {
      answer = await this.#answer(request, signal, gone.signal);
    } catch (error) {
      this.#log.error(error, 'Could not answer a request', { server: this.name });
      answer = { status: 500, body: 'internal error\n' };
    }
    const { status, contentType = PLAIN_TEXT, body, fileName, headers = {}, isLast } = answer;
    response.statusCode = status;
    response.setHeader('content-type', contentType);
    response.setHeader('x-content-type-options', 'nosniff');
    if (fileName !== undefined) {
      response.setHeader('content-disposition', `attachment; filename="${fileName}"`);
    }
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (isLast) endConnectionAfter(response);
    if (typeof body === 'string') response.end(body);
    else await this.#stream(body, response);
  }

  async #stream(body: Readable, response: Outgoing): Promise<void> {
    try {
      await pipeline(body, response);
    } catch (error) {
      this.#log.v(2).info('An answer broke off', { server: this.name, err: error });
    }
  }

  async #answer(request: Incoming, signal: AbortSignal, gone: AbortSignal): Promise<Answer> {
    const { method = '' } = request;
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    const [, probe = '', only, ...more] = path.split('/');
    const checks = more.length === 0 ? this.#checksOf(probe) : undefined;
    if (checks) {
      if (!isReading(method)) return NOT_ALLOWED;
      const asked = { probe, checks, only, query: new URLSearchParams(query) };
      return { ...probeAnswer(asked, this.#log), isLast: true };
    }
    const why = foreignOrigin(request.headers, this.#servedAt);
    if (why !== undefined) return refusal(403, why);
    const { authorization } = request.headers;
    const verdict = await this.#options.guard?.judge({ method, path, authorization, signal });
    if (verdict && !verdict.allowed) return refusal(verdict.status, verdict.why);
    const { metrics, pages, downloads, settings } = this.#options.routes;
    const setting = settings?.get(path);
    if (setting && method === 'PUT') {
      const text = await textOf(request, LONGEST_SETTING);
      return text === undefined ? TOO_LARGE : settingAnswer(setting, text);
    }
    if (!isReading(method)) return NOT_ALLOWED;
    if (setting) return { status: 200, body: setting.get() };
    const page = pages?.get(path);
    if (page) return page(new URLSearchParams(query));
    const download = downloads?.get(path);
    if (download && method !== 'GET') return NOT_ALLOWED;
    if (download) return download({ query: new URLSearchParams(query), signal: gone });
    if (!metrics || path !== '/metrics') return NOT_FOUND;
    const { contentType, text } = await metrics();
    return { status: 200, contentType, body: text };
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

const NOT_FOUND: Answer = { status: 404, body: '404 not found\n' };
const NOT_ALLOWED: Answer = { status: 405, body: '405 method not allowed\n' };
const TOO_LARGE: Answer = { status: 413, body: '413 too large\n' };

function refusal(status: number, why: string): Answer {
  const headers = status === 401 ? { 'www-authenticate': 'Bearer' } : {};
  return { status, body: `${why}\n`, headers, isLast: true };
}

/** Of an HTTP/2 connection, the other requests that are under way are answered first. */
function endConnectionAfter(response: Outgoing): void {
  if ('stream' in response) response.stream.session?.close();
  else response.setHeader('connection', 'close');
}

function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The body, if it is not longer than so many bytes. */
async function textOf(request: Incoming, most: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > most) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

type Limits = ReturnType<typeof limitsOf>;

function limitsOf({ requestTimeoutMs = 10_000 }: HttpServerOptions) {
  return {
    handshakeTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    requestTimeout: requestTimeoutMs,
    // How often Node.js looks for requests that take too long.
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
  const options = { ...limits, ...contextOf(tls, certificate) };
  return tls.http2
    ? createSecureServer({ ...options, allowHTTP1: true })
    : createHttpsServer(options);
}

function contextOf(
  { minVersion = 'TLSv1.2', ciphers }: ServerTls,
  { certificatePem, privateKeyPem }: Certificate,
): SecureContextOptions {
  const cert = certificatePem;
  return { cert, key: privateKeyPem, minVersion, ...(ciphers === undefined ? {} : { ciphers }) };
}
