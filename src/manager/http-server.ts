import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Exposition } from '../metrics/registry.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import type { Pages } from './debug-pages.ts';

/** One named check of a probe: returns why it fails, or undefined when all is well. */
export interface HealthCheck {
  readonly name: string;
  readonly check: () => string | undefined;
  /** Lines for people, shown under the check by `?verbose`; anybody may read them. */
  readonly detail?: () => readonly string[];
}

export interface HttpServerRoutes {
  /** Answered at `/livez` and `/healthz`: the process itself, never what it depends on. */
  readonly livez?: readonly HealthCheck[];
  /** Answered at `/readyz`. */
  readonly readyz?: readonly HealthCheck[];
  /** Answered at `/metrics`: Prometheus text. */
  readonly metrics?: () => Promise<Exposition>;
  /** Answered at their own paths: `/debug/queues`. */
  readonly pages?: Pages;
}

/**
 * Probes and metrics over plain HTTP, in the manner of the kube-apiserver: `ok`, or with
 * `?verbose` a line a check; `?exclude=NAME` and `/readyz/NAME` narrow it; 500 on failure, with
 * the reasons in the log alone.
 */
export class HttpServer implements Runnable {
  readonly name: string;
  readonly #bindAddress: string;
  readonly #address: { readonly host?: string; readonly port: number };
  readonly #routes: HttpServerRoutes;
  readonly #log: Logger;

  constructor(
    deps: { log: Logger },
    options: {
      readonly name: string;
      /** `:8081`, `127.0.0.1:8081` or `[::1]:8081`. */
      readonly bindAddress: string;
      readonly routes: HttpServerRoutes;
    },
  ) {
    this.name = options.name;
    this.#bindAddress = options.bindAddress;
    this.#address = parseBindAddress(options.bindAddress);
    this.#routes = options.routes;
    this.#log = deps.log;
  }

  async run(signal: AbortSignal): Promise<void> {
    const server = createServer(
      { headersTimeout: 32_000, keepAliveTimeout: 90_000 },
      (request, response) => {
        this.#answer(request, response).catch((error: unknown) => {
          this.#log.error(error, 'Could not answer a request', { server: this.name });
          response.destroy();
        });
      },
    );
    await new Promise<void>((resolve, reject) => {
      const close = () => {
        server.close(() => resolve());
        server.closeAllConnections();
      };
      server.once('error', (cause) => {
        const message = `Could not listen on ${this.#bindAddress} for ${this.name}: ${cause.message}`;
        reject(new Error(message, { cause }));
      });
      server.listen(this.#address, () => {
        this.#log
          .v(1)
          .info('Listening', { server: this.name, address: formatAddress(server.address()) });
        if (signal.aborted) close();
        signal.addEventListener('abort', close, { once: true });
      });
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405).end();
      return;
    }
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    const [, probe = '', only] = path.split('/');
    const { metrics, pages } = this.#routes;
    const page = pages?.get(path);
    const checks = this.#checksOf(probe);
    if (checks) {
      const asked = new URLSearchParams(query);
      const { status, body } = probeAnswer(probe, checks, asked, only, this.#log);
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(body);
    } else if (metrics && path === '/metrics') {
      const { contentType, text } = await metrics();
      response.writeHead(200, { 'content-type': contentType }).end(text);
    } else if (page) {
      const { status, contentType, body } = page(new URLSearchParams(query));
      response.writeHead(status, { 'content-type': contentType }).end(body);
    } else {
      response
        .writeHead(404, { 'content-type': 'text/plain; charset=utf-8' })
        .end('404 not found\n');
    }
  }

  #checksOf(probe: string): readonly HealthCheck[] | undefined {
    switch (probe) {
      case 'livez':
      case 'healthz':
        return this.#routes.livez;
      case 'readyz':
        return this.#routes.readyz;
      default:
        return undefined;
    }
  }
}

function probeAnswer(
  probe: string,
  checks: readonly HealthCheck[],
  query: URLSearchParams,
  only: string | undefined,
  log: Logger,
): { status: number; body: string } {
  const excluded = new Set(query.getAll('exclude'));
  const chosen = checks.filter(({ name }) => (only ? name === only : !excluded.has(name)));
  if (only && chosen.length === 0) return { status: 404, body: '404 not found\n' };
  const lines = only ? [] : ['[+]ping ok'];
  let failed = false;
  for (const { name, check, detail } of chosen) {
    const reason = check();
    if (reason === undefined) {
      lines.push(`[+]${name} ok`);
    } else {
      failed = true;
      lines.push(`[-]${name} failed: reason withheld`);
      log.v(1).info('Health check failed', { probe, check: name, reason });
    }
    if (detail && query.has('verbose')) lines.push(...detail().map((line) => `    ${line}`));
  }
  if (failed) return { status: 500, body: `${lines.join('\n')}\n${probe} check failed\n` };
  if (query.has('verbose'))
    return { status: 200, body: `${lines.join('\n')}\n${probe} check passed\n` };
  return { status: 200, body: 'ok' };
}

/** @throws {RangeError} naming what is wrong with the address */
export function parseBindAddress(address: string): { host?: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) {
    throw new RangeError(
      `Bind address must be HOST:PORT or :PORT with a port up to 65535: got "${address}"`,
    );
  }
  const host = match[1] ?? match[2];
  return host ? { host, port } : { port };
}

function formatAddress(address: ReturnType<ReturnType<typeof createServer>['address']>): string {
  if (!address || typeof address === 'string') return String(address);
  return address.family === 'IPv6'
    ? `[${address.address}]:${address.port}`
    : `${address.address}:${address.port}`;
}
