import type { Server } from 'node:http';
import type { Http2SecureServer } from 'node:http2';
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
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { ServerConnections } from '../util/server-connections.ts';
import { currentAnchors } from '../util/server-trust.ts';
import type { Certificate } from '../util/x509.ts';
import { AddressError } from './address-error.ts';
import { formatAddress, isLoopback, parseBindAddress } from './bind-address.ts';
import type { RequestAuthorizer } from './delegated-access.ts';
import { OVERLOADED, PLAIN_TEXT } from './routes.ts';
import type { HttpServerRoutes } from './routes.ts';
import { RequestRouter } from './request-router.ts';
import type { Incoming, Outgoing, Reply } from './request-router.ts';
import type { CertificateSource } from './serving-certificate.ts';
import { nodeHttp, nodeHttp2, nodeHttps } from '../util/node-http.ts';

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
  readonly maxConnections?: number | undefined;
  /**
   * Timeout of a TLS handshake, and timeout for receiving a request with its body, in milliseconds.
   * @default 10_000
   */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * Time for requests in progress to end when the server stops, in milliseconds. Clients can use open connections once
   * more within the first second.
   * @default 0
   */
  readonly drainTimeoutMs?: number | undefined;
  /** Called when the server itself refuses a request, other than a route. */
  readonly onRefused?: ((refusal: Refusal) => void) | undefined;
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

type AnyServer = Server | HttpsServer | Http2SecureServer;
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
  readonly #listening = new Deferred<string>();
  readonly #router: RequestRouter;

  constructor(deps: { log: Logger }, options: HttpServerOptions) {
    this.name = options.name;
    this.#options = options;
    this.#address = parseBindAddress(options.bindAddress);
    this.#log = deps.log;
    const { authorizer, routes, tls, bindAddress } = options;
    this.#router = new RequestRouter({
      routes,
      scheme: tls ? 'https' : 'http',
      authorizer,
      checksHost: !authorizer && isLoopback(bindAddress),
      log: deps.log,
    });
  }

  /** Resolves to `HOST:PORT` once the server listens, with the actual port if port 0 is configured. */
  get listening(): Promise<string> {
    return this.#listening.promise;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { tls } = this.#options;
    const limits = limitsOf(this.#options);
    if (!tls) return this.#serve(nodeHttp().createServer(limits), signal);
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
        await untilEmpty(connections, Math.min(LINGER_MS, drainTimeoutMs));
        server.close(() => resolve());
        await untilDrained(responses, drainTimeoutMs);
        connections.destroy();
      };
      server.once('error', (cause) => {
        reject(new AddressError(this.#options.bindAddress, this.name, cause));
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
      reply = await this.#router.route(request, signal, closed.signal);
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
}

/** Response to a client that sends its body too slowly. */
const TOO_SLOW: Reply = { status: 408, body: '408 request timeout\n', close: true };

/** Closes the connection after the response, for HTTP/2 after all responses in progress. */
function closeConnectionAfter(response: Outgoing): void {
  if ('stream' in response) response.stream.session?.close();
  else response.setHeader('connection', 'close');
}

/**
 * Resolves when there are no connections, or after a timeout. Meanwhile each response closes its connection. An idle
 * connection must not be closed at once, because the client may be sending its next request. The time in which the event
 * loop is blocked does not count, because no request is read in it.
 */
async function untilEmpty(connections: ServerConnections, timeoutMs: number): Promise<void> {
  for (let left = timeoutMs; connections.size > 0 && left > 0; left -= POLL_MS) {
    await sleep(POLL_MS);
  }
}

/** Resolves when there are no responses in progress, or after a timeout. */
async function untilDrained(
  responses: ReadonlySet<Promise<void>>,
  timeoutMs: number,
): Promise<void> {
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
    ? nodeHttp2().createSecureServer({
        ...options,
        allowHTTP1: true,
        settings: { maxConcurrentStreams },
      })
    : nodeHttps().createServer(options);
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
    ciphers,
    // Each given certificate is an anchor, also an intermediate, as in Go.
    ...(ca !== undefined && { ca: currentAnchors(ca), allowPartialTrustChain: true }),
  };
}
