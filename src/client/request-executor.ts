import { ApiError, isApiError } from '../api/api-error.ts';
import type { RestClientMetrics } from '../metrics/rest-client-metrics.ts';
import { noRestClientMetrics } from '../metrics/rest-client-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import type { HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';
import type { Logger } from '../util/logger.ts';
import { silentLogger } from '../util/logger.ts';
import { errorFromResponse, isSuccess, readBody, retryAfterOf } from './response.ts';
import type { LoggedRequest } from './request-log.ts';
import { RequestLog } from './request-log.ts';
import {
  isCertificateRefused,
  isConnectionReset,
  isNeverSent,
  unreachable,
} from './transport/connection-error.ts';
import { logMissingPermissions } from './missing-permissions.ts';
import { rejectOnAbort } from '../util/abort.ts';
import { startWithinTimeout, TimeoutError, withinTimeout } from './within-timeout.ts';
import { TokenBucket } from '../util/token-bucket.ts';

/** What authenticates requests by a header. `Credentials` of credentials.ts is one. */
export interface RequestCredentials {
  /** Headers that authenticate the next request. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /**
   * The server refused what `headers` gave. Returns whether others may be had: then the next call
   * of `headers` gets them.
   */
  invalidate(refused: Readonly<Record<string, string>>): boolean;
}

/** A server, and what authenticates requests to it. They are replaced together or not at all. */
export interface RequestTarget {
  readonly handler: HttpHandler;
  /** What messages call the server: `https://10.0.0.1:6443`. */
  readonly server: string;
  /** @default none */
  readonly credentials?: RequestCredentials | undefined;
}

/** Options of `RequestExecutor`. */
export interface RequestExecutorOptions extends RequestTarget {
  /**
   * Called when the server could not be reached or refused the credentials. Returns the target of
   * all further requests; one with the same `handler` is the same target.
   * @default there is none
   */
  readonly replaceTarget?: (() => Promise<RequestTarget | undefined>) | undefined;
  /** @default `crd-controller` */
  readonly userAgent?: string | undefined;
  /**
   * Bound on one exchange that is not a watch, in milliseconds; 0 is none. A repetition has a bound
   * of its own.
   * @default 30000
   */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * Client-side rate limit in requests a second; watches are exempt.
   * @default none: the server's priority and fairness decides
   */
  readonly qps?: number | undefined;
  /**
   * Requests at once, where there is a rate limit.
   * @default 2 * qps
   */
  readonly burst?: number | undefined;
  /**
   * Called with each warning the server attaches to an answer.
   * @default logs each distinct one once
   */
  readonly onWarning?: ((warning: string) => void) | undefined;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default silent */
  readonly log?: Logger | undefined;
  /** @default none */
  readonly metrics?: RestClientMetrics | undefined;
}

export type Call = Omit<HttpRequest, 'body'> & { readonly body?: string };

/** Bound on the wait for a watch to be accepted, in milliseconds; above the server's own 60 s. */
const OPEN_TIMEOUT_MS = 65_000;
/** How often one call is repeated. */
const MAX_RETRIES = 10;
/** Pause before a repetition where the server named none, in milliseconds. */
const RETRY_PAUSE_MS = 1000;
/** A server that asks for more gets an error passed on: its caller has a backoff of its own. */
const MAX_RETRY_AFTER_MS = 60_000;

type Attempt<R> =
  | { readonly kind: 'done'; readonly result: R }
  | {
      readonly kind: 'failed';
      readonly error: unknown;
      readonly retryAfterMs?: number | undefined;
      readonly target: RequestTarget;
      /** What the request was authenticated with. */
      readonly credentials: Readonly<Record<string, string>>;
    };

/**
 * Carries calls to the server until one answer is final. A call is repeated, at most ten times, when
 * the answer is 429 or 5xx and says in whole seconds when to come back, and when the connection of a
 * GET broke; once, with fresh credentials, on 401; and once, at another target, if there is one and
 * the request was not carried out. Every repetition is throttled and bounded like the first attempt.
 * Rejects with `ApiError`, or with the signal's reason.
 */
export class RequestExecutor {
  #target: RequestTarget;
  #host: string;
  readonly #replaceTarget: () => Promise<RequestTarget | undefined>;
  readonly #userAgent: string;
  readonly #requestTimeoutMs: number;
  readonly #throttle: Throttle | undefined;
  readonly #onWarning: (warning: string) => void;
  readonly #logMissingPermission: (error: unknown) => void;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #requestLog: RequestLog;
  readonly #metrics: RestClientMetrics;

  constructor(options: RequestExecutorOptions) {
    const { clock = systemClock, log = silentLogger, qps } = options;
    const { handler, server, credentials } = options;
    this.#target = { handler, server, credentials };
    this.#host = hostOf(server);
    this.#replaceTarget = options.replaceTarget ?? (async () => undefined);
    this.#userAgent = options.userAgent ?? 'crd-controller';
    this.#requestTimeoutMs = options.requestTimeoutMs ?? 30_000;
    this.#throttle =
      qps === undefined
        ? undefined
        : new Throttle({ qps, burst: options.burst ?? Math.max(1, 2 * qps), clock });
    this.#onWarning = options.onWarning ?? logWarningsOnce(log);
    this.#clock = clock;
    this.#logMissingPermission = logMissingPermissions(log, clock);
    this.#log = log;
    this.#requestLog = new RequestLog(log);
    this.#metrics = options.metrics ?? noRestClientMetrics;
  }

  /** The answer with its body, once that is complete; an unsuccessful one is an error. */
  async send(call: Call): Promise<{ readonly response: HttpResponse; readonly body: Buffer }> {
    return this.#repeat(call, async () => {
      await this.#waitForThrottle(call);
      const attempt = (signal: AbortSignal | undefined) =>
        this.#attempt({ ...call, ...(signal && { signal }) }, async (response) => {
          const body = await readBody(response);
          this.#requestLog.responseBody(this.#logged(call), body);
          return { result: { response, body }, bytes: body.length };
        });
      const { signal } = call;
      const timeoutMs = this.#requestTimeoutMs;
      return timeoutMs === 0
        ? attempt(signal)
        : withinTimeout({ clock: this.#clock, timeoutMs, signal }, attempt);
    });
  }

  /**
   * The answer as soon as its headers are there, its body without a bound in time; an unsuccessful
   * one is an error, and so is none within 65 s.
   */
  async open(call: Call): Promise<HttpResponse> {
    return this.#repeat(call, () =>
      startWithinTimeout(
        { clock: this.#clock, timeoutMs: OPEN_TIMEOUT_MS, signal: call.signal },
        (signal) => this.#attempt({ ...call, signal }, async (response) => ({ result: response })),
      ),
    );
  }

  /** How messages name a call: `GET https://10.0.0.1:6443/api/v1/pods?limit=500`. */
  describe(call: Pick<Call, 'method' | 'path'>): string {
    return `${call.method} ${this.#url(call)}`;
  }

  #url({ path }: Pick<Call, 'path'>): string {
    return this.#target.server + path;
  }

  async #repeat<R>(call: Call, attempt: () => Promise<Attempt<R>>): Promise<R> {
    let mayRenew = true;
    let mayRetarget = true;
    for (let retries = 0; ; retries++) {
      const outcome = await attempt();
      if (outcome.kind === 'done') return outcome.result;
      const { error, retryAfterMs, target, credentials } = outcome;
      this.#logMissingPermission(error);
      if (mayRenew && isApiError(error, 'unauthorized') && error.code === 401) {
        mayRenew = false;
        if (target.credentials?.invalidate(credentials)) continue;
      }
      if (mayRetarget && isApiError(error, 'unauthorized', 'unreachable')) {
        mayRetarget = !(await rejectOnAbort(this.#retarget(target), call.signal));
        if (!mayRetarget && isNotCarriedOut(error)) continue;
      }
      const pauseMs = retryAfterMs ?? (isRepeatable(call, error) ? RETRY_PAUSE_MS : undefined);
      if (pauseMs === undefined || pauseMs > MAX_RETRY_AFTER_MS || retries >= MAX_RETRIES) {
        throw error;
      }
      await this.#pause(call, error, pauseMs, retries + 1);
    }
  }

  /** Returns whether requests now go elsewhere than to `failed`. */
  async #retarget(failed: RequestTarget): Promise<boolean> {
    if (this.#target === failed) {
      const { handler, server, credentials } = (await this.#replaceTarget()) ?? failed;
      // Others may have come to the same answer meanwhile.
      if (handler === this.#target.handler) return this.#target !== failed;
      this.#target = { handler, server, credentials };
      this.#host = hostOf(server);
    }
    return true;
  }

  async #pause(call: Call, error: unknown, pauseMs: number, attempt: number): Promise<void> {
    const code = isApiError(error) && error.code !== 0 ? String(error.code) : '<error>';
    this.#metrics.retried({ code, verb: call.method, host: this.#host });
    const url = this.#url(call);
    this.#log.v(4).info('Repeating a request', {
      verb: call.method,
      url,
      code,
      delay: `${pauseMs / 1000}s`,
      attempt,
    });
    await this.#clock.sleep(pauseMs, call.signal);
    call.signal?.throwIfAborted();
  }

  async #attempt<R>(
    call: Call,
    read: (response: HttpResponse) => Promise<{ readonly result: R; readonly bytes?: number }>,
  ): Promise<Attempt<R>> {
    const target = this.#target;
    let credentials: Readonly<Record<string, string>> = {};
    try {
      credentials = await authenticate(call, target);
    } catch (error) {
      call.signal?.throwIfAborted();
      return { kind: 'failed', error, target, credentials };
    }
    const headers = { ...call.headers, 'user-agent': this.#userAgent, ...credentials };
    const logged = this.#logged(call);
    this.#requestLog.request(logged, headers, call.body);
    const startedMs = this.#clock.monotonic();
    const elapsedMs = () => this.#clock.monotonic() - startedMs;
    const measured = (code: string, responseBytes?: number) =>
      this.#metrics.exchanged({
        verb: call.method,
        host: this.#host,
        code,
        seconds: elapsedMs() / 1000,
        requestBytes: call.body === undefined ? 0 : Buffer.byteLength(call.body),
        ...(responseBytes === undefined ? {} : { responseBytes }),
      });
    try {
      const response = await target.handler({ ...call, headers });
      this.#requestLog.response(logged, response, Math.round(elapsedMs()));
      this.#warn(response);
      if (isSuccess(response)) {
        const { result, bytes } = await read(response);
        measured(String(response.status), bytes);
        return { kind: 'done', result };
      }
      const answered = await readBody(response);
      measured(String(response.status), answered.length);
      const body = withoutEcho(answered, credentials);
      this.#requestLog.responseBody(logged, body);
      return {
        kind: 'failed',
        error: errorFromResponse(response, body, this.describe(call)),
        retryAfterMs: repeatAfter(response),
        target,
        credentials,
      };
    } catch (thrown) {
      measured('<error>');
      const reason: unknown = call.signal?.reason;
      const timeUp = reason instanceof TimeoutError ? reason : undefined;
      if (!timeUp) call.signal?.throwIfAborted();
      const error = timeUp ? this.#timeoutError(call, timeUp) : unreachable(thrown, target.server);
      this.#requestLog.failure(logged, error, Math.round(elapsedMs()));
      return { kind: 'failed', error, target, credentials };
    }
  }

  async #waitForThrottle(call: Call): Promise<void> {
    if (!this.#throttle) return;
    const waitedMs = await this.#throttle.wait(call.signal);
    call.signal?.throwIfAborted();
    this.#metrics.throttled({ verb: call.method, host: this.#host, seconds: waitedMs / 1000 });
    if (waitedMs <= 50) return;
    const { method: verb } = call;
    this.#log.v(waitedMs > 1000 ? 2 : 3).info('Waited before sending request', {
      delay: `${waitedMs / 1000}s`,
      reason: 'client-side throttling, not priority and fairness',
      verb,
      URL: this.#url(call),
    });
  }

  #timeoutError(call: Call, timeUp: TimeoutError): ApiError {
    return new ApiError({
      kind: 'unreachable',
      message:
        `No complete answer to ${this.describe(call)}: ${timeUp.message}. ` +
        'Check the health and load of the API server, or allow more time.',
      cause: timeUp,
    });
  }

  #warn(response: HttpResponse): void {
    const header = response.headers['warning'];
    if (header !== undefined) parseWarnings(header).forEach(this.#onWarning);
  }

  #logged(call: Call): LoggedRequest {
    const { method: verb, path } = call;
    return { verb, url: this.#url(call), path: path.split('?', 1)[0] ?? path };
  }
}

function hostOf(server: string): string {
  return URL.parse(server)?.host ?? server;
}

async function authenticate(
  { signal }: Call,
  { credentials }: RequestTarget,
): Promise<Readonly<Record<string, string>>> {
  signal?.throwIfAborted();
  return credentials ? rejectOnAbort(credentials.headers(), signal) : {};
}

/** Who refuses credentials may quote them, and people are shown what a refusal says. */
function withoutEcho(body: Buffer, credentials: Readonly<Record<string, string>>): Buffer {
  const [, secret = ''] = credentials['authorization']?.split(' ') ?? [];
  if (secret.length < 6 || !body.includes(secret)) return body;
  return Buffer.from(body.toString('utf8').replaceAll(secret, '<masked>'));
}

/** The server has not acted on the request: it never got it, or did not let it in. */
function isNotCarriedOut(error: unknown): boolean {
  return isApiError(error, 'unauthorized') || isNeverSent(error) || isCertificateRefused(error);
}

/** Only what changes nothing is sent again without the server's leave. */
function isRepeatable(call: Call, error: unknown): boolean {
  return call.method === 'GET' && isConnectionReset(error);
}

function repeatAfter(response: HttpResponse): number | undefined {
  return response.status === 429 || response.status >= 500 ? retryAfterOf(response) : undefined;
}

/** Warnings remembered so as not to repeat them; beyond that, an old one may be shown again. */
const MAX_REMEMBERED = 1000;

/** Texts of the `Warning` header's values of code 299, the one Kubernetes uses. */
function parseWarnings(header: string): string[] {
  const values = header.matchAll(/\b299 [^\s"]{1,255} "((?:[^"\\]|\\.){1,4096})"/g);
  return Array.from(values, ([, text = '']) => text.replaceAll(/\\(.)/g, '$1'));
}

/** Logs each distinct warning of the server once: deprecated versions, ignored fields. */
function logWarningsOnce(log: Logger): (warning: string) => void {
  const seen = new Set<string>();
  return (warning) => {
    if (seen.has(warning)) return;
    if (seen.size >= MAX_REMEMBERED) seen.clear();
    seen.add(warning);
    log.info('Warning from the API server', { warning });
  };
}

/** Options of `Throttle`. */
export interface ThrottleOptions {
  /** Requests a second, in the long run. */
  readonly qps: number;
  /** Requests at once, after a rest. */
  readonly burst: number;
  readonly clock: Clock;
}

/**
 * A token bucket that makes callers wait, in the order they came. Tokens are reserved on arrival:
 * a caller that gives up leaves its token unused.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #bucket: TokenBucket;

  constructor({ qps, burst, clock }: ThrottleOptions) {
    if (!(qps > 0)) throw new RangeError(`qps must be above 0, got ${qps}`);
    if (!(burst >= 1)) throw new RangeError(`burst must be at least 1, got ${burst}`);
    this.#clock = clock;
    this.#bucket = new TokenBucket(clock, { burst, intervalMs: 1000 / qps });
  }

  /** Resolves when the caller may send, or its signal aborts; returns how long that took, in ms. */
  async wait(signal?: AbortSignal): Promise<number> {
    const now = this.#clock.monotonic();
    const waitMs = this.#bucket.reserve();
    if (waitMs === 0) return 0;
    await this.#clock.sleep(waitMs, signal);
    return this.#clock.monotonic() - now;
  }
}
