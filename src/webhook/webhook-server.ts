import type { HealthCheck } from '../serving/health-checks.ts';
import { HttpServer } from '../serving/http-server.ts';
import type { HttpServerOptions, ServerTls } from '../serving/http-server.ts';
import type { RouteCall, CallRequest } from '../serving/routes.ts';
import { silentLogger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { CONVERSION_PATH } from './declaration.ts';
import { Reviewer } from './reviewer.ts';
import type { ReviewerDeps } from './reviewer.ts';
import type { Webhooks } from './webhooks.ts';

/** Options of {@link WebhookServer}. There is no HTTP/2, because API servers call webhooks with HTTP/1.1. */
export interface WebhookServerOptions
  extends Omit<ServerTls, 'http2'>, Pick<HttpServerOptions, 'maxConnections'> {
  /**
   * Address to listen on: `:9443`, `127.0.0.1:0`.
   * @default ':9443'
   */
  readonly bindAddress?: string | undefined;
}

/** Maximum length of an AdmissionReview, as in controller-runtime: two objects of 3 MiB, and the rest. */
const MAX_ADMISSION_BYTES = 7 * 1024 ** 2;

/** Maximum length of a ConversionReview, which can have all objects of a list. */
const MAX_CONVERSION_BYTES = 32 * 1024 ** 2;

/** Time for reviews in progress when the server stops, in milliseconds. */
const DRAIN_MS = 10_000;

/** HTTPS server of webhooks. Every replica runs it, not only the leader. */
export class WebhookServer implements Runnable {
  readonly name = 'webhook';
  /** Check for `/readyz`: fails until the server listens. */
  readonly readiness: HealthCheck;
  readonly #server: HttpServer;
  readonly #flush: () => void;
  #isListening = false;

  /** @throws {TypeError} if an option is unknown */
  constructor(webhooks: Webhooks, options: WebhookServerOptions, deps: ReviewerDeps = {}) {
    const { bindAddress = ':9443', maxConnections, ...tls } = options;
    const { log = silentLogger } = deps;
    const reviewer = new Reviewer(webhooks.entries(), deps);
    this.#flush = () => reviewer.flush();
    this.#server = new HttpServer(
      { log },
      {
        name: this.name,
        bindAddress,
        tls,
        routes: { calls: new Map(reviewer.paths.map((path) => [path, callOf(reviewer, path)])) },
        drainTimeoutMs: DRAIN_MS,
        onRefused: (refusal) => reviewer.refused(refusal),
        maxConnections,
      },
    );
    const check = () => (this.#isListening ? undefined : 'the server does not listen yet');
    this.readiness = { name: this.name, check };
  }

  /** Resolves to `HOST:PORT` once the server listens, with the actual port if port 0 is configured. */
  get listening(): Promise<string> {
    return this.#server.listening;
  }

  async run(signal: AbortSignal): Promise<void> {
    void this.listening.then(() => {
      this.#isListening = true;
    });
    try {
      await this.#server.run(signal);
    } finally {
      this.#flush();
    }
  }
}

function callOf(reviewer: Reviewer, path: string): RouteCall {
  return {
    maxBytes: path === CONVERSION_PATH ? MAX_CONVERSION_BYTES : MAX_ADMISSION_BYTES,
    respond: async ({ query, headers, body, signal }: CallRequest) => {
      const timeout = query.get('timeout') ?? undefined;
      const reply = await reviewer.review({ path, body, timeout, headers, signal });
      const isReview = reply.status === 200;
      return { ...reply, contentType: isReview ? 'application/json' : 'text/plain; charset=utf-8' };
    },
  };
}
