import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, IncomingHttpHeaders } from 'node:http2';
import type { Readable } from 'node:stream';
import type { Logger } from '../util/logger.ts';
import { printableLine } from '../util/printable.ts';
import { isLoopback } from './bind-address.ts';
import type { RequestAuthorizer } from './delegated-access.ts';
import type { HealthCheck } from './health-checks.ts';
import { probeResponse } from './health-checks.ts';
import { RequestBodies } from './request-body.ts';
import { changeSetting, MAX_SETTING_BYTES } from './routes.ts';
import type { HttpServerRoutes, RouteCall } from './routes.ts';

export type Incoming = IncomingMessage | Http2ServerRequest;
export type Outgoing = ServerResponse | Http2ServerResponse;

/** Response to a request. */
export interface Reply {
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

/** What a request is checked against, and the endpoints. */
export interface RequestRouterOptions {
  readonly routes: HttpServerRoutes;
  readonly scheme: 'http' | 'https';
  /** Undefined: every request is allowed. */
  readonly authorizer: RequestAuthorizer | undefined;
  /** Whether browsers must name a loopback address: the server listens on one and does not authorize requests. */
  readonly checksHost: boolean;
  readonly log: Logger;
}

interface RoutedRequest {
  readonly incoming: Incoming;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Remote address of the client. */
  readonly address: string;
}

/** Checks requests and passes them to the endpoints of a server. */
export class RequestRouter {
  readonly #options: RequestRouterOptions;
  readonly #bodies = new RequestBodies();

  constructor(options: RequestRouterOptions) {
    this.#options = options;
  }

  /**
   * Returns the response to a request.
   *
   * @param signal aborts when the server stops
   * @param closed aborts when the client disconnects
   * @throws {OverloadedError} if the bodies of other requests need the memory
   * @throws {SlowBodyError} if the client sends its body too slowly
   */
  async route(incoming: Incoming, signal: AbortSignal, closed: AbortSignal): Promise<Reply> {
    const [path = '', query = ''] = (incoming.url ?? '').split('?', 2);
    const { method = '', socket } = incoming;
    const address = socket.remoteAddress ?? '';
    const request = { incoming, method, path, query: new URLSearchParams(query), address };
    return (
      this.#probe(request) ??
      (await this.#rejection(request, signal)) ??
      (await this.#respond(request, closed))
    );
  }

  /** Returns the response to a health probe, which needs no authorization. */
  #probe({ method, path, query }: RoutedRequest): Reply | undefined {
    const [, probe = '', only, ...more] = path.split('/');
    const checks = more.length === 0 ? this.#checksOf(probe) : undefined;
    if (!checks) return undefined;
    if (!isRead(method)) return NOT_ALLOWED;
    return { ...probeResponse({ probe, checks, only, query }, this.#options.log), close: true };
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

  /** Rejects requests of web pages of other origins, and requests that are not authorized. */
  async #rejection(request: RoutedRequest, signal: AbortSignal): Promise<Reply | undefined> {
    const { headers } = request.incoming;
    const { authorizer, checksHost, scheme } = this.#options;
    const crossOrigin = crossOriginReason(headers, scheme);
    if (crossOrigin !== undefined) return rejected(403, crossOrigin);
    const { authorization } = headers;
    const { method, path, address } = request;
    const decision = await authorizer?.authorize({ method, path, authorization, address, signal });
    if (decision && !decision.allowed) return rejected(decision.status, decision.reason);
    if (checksHost && this.#isForBrowsers(path) && !isLoopback(hostOf(headers))) {
      return FOREIGN_HOST;
    }
    return undefined;
  }

  #isForBrowsers(path: string): boolean {
    const { metrics, pages, downloads, settings, calls } = this.#options.routes;
    const isForProxies = calls?.has(path) || (metrics && path === '/metrics');
    return !isForProxies && [pages, downloads, settings].some((paths) => paths && paths.size > 0);
  }

  async #respond(request: RoutedRequest, signal: AbortSignal): Promise<Reply> {
    const { method, path, query } = request;
    const { metrics, pages, downloads, settings, calls } = this.#options.routes;
    const call = calls?.get(path);
    if (call) return this.#call(call, request, signal);
    if (calls && method === 'POST') return NOT_FOUND;
    const setting = settings?.get(path);
    if (setting && method === 'PUT') {
      const change = (body: Buffer) => changeSetting(setting, body.toString());
      return this.#withBody(request, MAX_SETTING_BYTES, signal, change);
    }
    if (!isRead(method)) return NOT_ALLOWED;
    if (setting) return { status: 200, body: setting.get() };
    const page = pages?.get(path);
    if (page) return page(query);
    const download = downloads?.get(path);
    if (download && method !== 'GET') return NOT_ALLOWED;
    if (download) return download({ query, signal });
    if (!metrics || path !== '/metrics') return NOT_FOUND;
    const { contentType, text } = await metrics();
    return { status: 200, contentType, body: text };
  }

  async #call(
    { maxBytes, respond }: RouteCall,
    request: RoutedRequest,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { method, query } = request;
    const { headers } = request.incoming;
    if (method !== 'POST') return NOT_ALLOWED;
    const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
    if (type.trim().toLowerCase() !== 'application/json') return NOT_JSON;
    return this.#withBody(request, maxBytes, signal, async (body) => {
      const page = await respond({ query, headers, body, signal });
      return { ...page, isAnswer: true };
    });
  }

  async #withBody(
    { incoming, address }: RoutedRequest,
    maxBytes: number,
    signal: AbortSignal,
    use: (body: Buffer) => Reply | Promise<Reply>,
  ): Promise<Reply> {
    const { 'content-length': contentLength } = incoming.headers;
    const body = { request: incoming, contentLength, maxBytes, address, signal };
    return (await this.#bodies.read(body, use)) ?? TOO_LARGE;
  }
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
const NOT_JSON: Reply = { status: 415, body: 'The content type must be application/json\n' };

function hostOf(headers: IncomingHttpHeaders): string {
  return headers.host ?? headers[':authority'] ?? '';
}

function rejected(status: number, reason: string): Reply {
  const headers = status === 401 ? { 'www-authenticate': 'Bearer' } : {};
  return { status, body: `${printableLine(reason)}\n`, headers, close: true };
}

function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
