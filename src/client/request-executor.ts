import type { RequestCredentials } from './kube-config/credentials.ts';
import { ApiError, isApiError } from '../api/api-error.ts';
import type { RestClientMetrics } from '../metrics/rest-client-metrics.ts';
import { noRestClientMetrics } from '../metrics/no-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import type { CallTrace, HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';
import type { Logger } from '../util/logger.ts';
import { silentLogger } from '../util/logger.ts';
import { errorFromResponse, isSuccess, readBody, retryAfterOf } from './response.ts';
import type { LoggedRequest } from './request-log.ts';
import { ClientRequestLog } from './request-log.ts';
import {
  isCertificateRejected,
  isConnectionReset,
  isNeverSent,
  unreachable,
} from './transport/connection-error.ts';
import { logMissingPermissions } from './missing-permissions.ts';
import { rejectOnAbort } from '../util/abort.ts';
import { ServerReachability } from './server-reachability.ts';
import { startWithinTimeout, TimeoutError, withinTimeout } from '../util/within-timeout.ts';
import { logWarningsOnce, parseWarnings } from './server-warnings.ts';
import { Throttle } from './throttle.ts';

type Headers = Readonly<Record<string, string>>;

/** A server and the credentials for it. They are only replaced together. */
export interface RequestTarget {
  readonly handler: HttpHandler;
  /** Address of the server, for messages: `https://10.0.0.1:6443`. */
  readonly server: string;
  /** @default none */
  readonly credentials?: RequestCredentials | undefined;
}

/** Options of `RequestExecutor`. */
export interface RequestExecutorOptions extends RequestTarget {
  /**
   * Called when the server could not be reached or rejected the credentials. Returns the target of all further
   * requests. A target with the same `handler` is the same target.
   * @default the target never changes
   */
  readonly replaceTarget?: (() => Promise<RequestTarget | undefined>) | undefined;
  /** @default `crd-controller` */
  readonly userAgent?: string | undefined;
  /**
   * Timeout of each attempt of a request, in milliseconds; 0 disables it. Does not apply to watches.
   * @default 30000
   */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * Client-side rate limit in requests a second; watches are exempt.
   * @default no limit; the server applies priority and fairness
   */
  readonly qps?: number | undefined;
  /**
   * Burst of the rate limit, in requests.
   * @default 2 * qps
   */
  readonly burst?: number | undefined;
  /**
   * Called with each warning of the server.
   * @default logs each distinct warning once
   */
  readonly onWarning?: ((warning: string) => void) | undefined;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default silent */
  readonly log?: Logger | undefined;
  /** @default none */
  readonly metrics?: RestClientMetrics | undefined;
  /**
   * Reports each successful response. Pass the same one to all clients of a server.
   * @default a new one
   */
  readonly reachability?: ServerReachability | undefined;
}

export type ExecutedCall = Omit<HttpRequest, 'body'> & {
  readonly body?: string | undefined;
  readonly trace?: CallTrace | undefined;
};

const NO_HEADERS: Headers = {};
const NO_BODY = Buffer.alloc(0);

/** Timeout for the response headers of a watch, in milliseconds; above the server's own 60 s. */
const OPEN_TIMEOUT_MS = 65_000;
/** Maximum number of retries of one call, as in client-go. */
const MAX_RETRIES = 10;
/** Delay before a retry if there is no Retry-After, in milliseconds. */
const RETRY_DELAY_MS = 1000;
/** Maximum Retry-After, in milliseconds. Beyond it the error is returned to the caller, which has a backoff. */
const MAX_RETRY_AFTER_MS = 60_000;

/** A successful response. Its body is complete, except that of a watch, which is empty here. */
interface Received {
  readonly kind: 'done';
  readonly response: HttpResponse;
  readonly body: Buffer;
}

type Attempt =
  | Received
  | {
      readonly kind: 'failed';
      readonly error: unknown;
      readonly retryAfterMs?: number | undefined;
      readonly target: RequestTarget;
      /** Headers that authenticated the request. */
      readonly credentials: Headers;
    };

/**
 * Sends requests to the server and retries them, as client-go's `rest.Request` does. Rejects with an `ApiError`,
 * or with the signal's reason. It retries
 *
 * - a 429 or 5xx with `Retry-After` in seconds, and a GET whose connection broke: at most ten times;
 * - a 401: once, with new credentials;
 * - a request that the server did not process: once, if `replaceTarget` returns another target.
 *
 * The rate limit and the timeout apply to every attempt.
 */
export class RequestExecutor {
  readonly reachability: ServerReachability;
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
  readonly #requestLog: ClientRequestLog;
  readonly #metrics: RestClientMetrics;
  /** The headers of the last request with the same own headers: calls share few of them. */
  readonly #headers = new WeakMap<
    Headers,
    { readonly credentials: Headers; readonly all: Headers }
  >();

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
    this.#requestLog = new ClientRequestLog(log);
    this.#metrics = options.metrics ?? noRestClientMetrics;
    this.reachability = options.reachability ?? new ServerReachability();
  }

  /** Resolves with the complete response; rejects if the response is not successful. */
  send(call: ExecutedCall): Promise<{ readonly response: HttpResponse; readonly body: Buffer }> {
    const { signal } = call;
    const timeoutMs = this.#requestTimeoutMs;
    return this.#withRetries(call, () =>
      timeoutMs === 0
        ? this.#attempt(call, signal, true)
        : withinTimeout({ clock: this.#clock, timeoutMs, signal }, (limit) =>
            this.#attempt(call, limit, true),
          ),
    );
  }

  /**
   * Resolves when the response headers have arrived; the body has no timeout. Rejects if the response is not
   * successful, or has not started within 65 s.
   */
  async open(call: ExecutedCall): Promise<HttpResponse> {
    const limit = { clock: this.#clock, timeoutMs: OPEN_TIMEOUT_MS, signal: call.signal };
    const { response } = await this.#withRetries(call, () =>
      startWithinTimeout(limit, (signal) => this.#attempt(call, signal, false)),
    );
    return response;
  }

  /** Returns the name of a call for messages: `GET https://10.0.0.1:6443/api/v1/pods?limit=500`. */
  describe(call: Pick<ExecutedCall, 'method' | 'path'>): string {
    return `${call.method} ${this.#url(call)}`;
  }

  #url({ path }: Pick<ExecutedCall, 'path'>): string {
    return this.#target.server + path;
  }

  async #withRetries(call: ExecutedCall, attempt: () => Promise<Attempt>): Promise<Received> {
    let mayRenew = true;
    let mayRetarget = true;
    for (let retries = 0; ; retries++) {
      if (this.#throttle && !call.longRunning) await this.#waitForThrottle(this.#throttle, call);
      const outcome = await attempt();
      if (outcome.kind === 'done') return outcome;
      const { error, retryAfterMs, target, credentials } = outcome;
      this.#logMissingPermission(error);
      if (mayRenew && isApiError(error, 'unauthorized') && error.code === 401) {
        mayRenew = false;
        if (target.credentials?.invalidate(credentials)) continue;
      }
      if (mayRetarget && isApiError(error, 'unauthorized', 'unreachable')) {
        mayRetarget = !(await rejectOnAbort(this.#retarget(target), call.signal));
        if (!mayRetarget && isNotProcessed(error)) continue;
      }
      const delayMs = retryAfterMs ?? (isRetryable(call, error) ? RETRY_DELAY_MS : undefined);
      if (delayMs === undefined || delayMs > MAX_RETRY_AFTER_MS || retries >= MAX_RETRIES) {
        throw error;
      }
      await this.#waitToRetry(call, error, delayMs, retries + 1);
    }
  }

  /** Replaces the target `failed`; returns whether the current target is another one. */
  async #retarget(failed: RequestTarget): Promise<boolean> {
    if (this.#target === failed) {
      const { handler, server, credentials } = (await this.#replaceTarget()) ?? failed;
      // Another call may have replaced the target meanwhile.
      if (handler === this.#target.handler) return this.#target !== failed;
      this.#target = { handler, server, credentials };
      this.#host = hostOf(server);
    }
    return true;
  }

  async #waitToRetry(
    call: ExecutedCall,
    error: unknown,
    delayMs: number,
    attempt: number,
  ): Promise<void> {
    const code = isApiError(error) && error.code !== 0 ? String(error.code) : '<error>';
    this.#metrics.retried({ code, verb: call.method, host: this.#host });
    const url = this.#url(call);
    this.#log.v(4).info('Retrying request', {
      verb: call.method,
      url,
      code,
      delay: `${delayMs / 1000}s`,
      attempt,
    });
    await this.#clock.sleep(delayMs, call.signal);
    call.signal?.throwIfAborted();
  }

  /** @param isComplete whether to read the body of a successful response */
  async #attempt(
    call: ExecutedCall,
    signal: AbortSignal | undefined,
    isComplete: boolean,
  ): Promise<Attempt> {
    const target = this.#target;
    let credentials = NO_HEADERS;
    try {
      signal?.throwIfAborted();
      const pending = target.credentials?.headers() ?? credentials;
      credentials = pending instanceof Promise ? await rejectOnAbort(pending, signal) : pending;
    } catch (error) {
      signal?.throwIfAborted();
      return { kind: 'failed', error, target, credentials };
    }
    const headers = this.#withCredentials(call.headers, credentials);
    const requestLog = this.#requestLog.enabled ? this.#requestLog : undefined;
    requestLog?.request(this.#logged(call), headers, call.body);
    const startedMs = this.#clock.monotonic();
    try {
      const request = { ...call, headers, signal };
      const response = await (call.trace
        ? call.trace.send(target.handler, request, target.server)
        : target.handler(request));
      requestLog?.response(this.#logged(call), response, this.#roundedSince(startedMs));
      this.#warn(response);
      if (isSuccess(response)) {
        if (!isComplete) {
          this.#record(call, startedMs, String(response.status));
          this.reachability.answered(this.#clock.monotonic());
          return { kind: 'done', response, body: NO_BODY };
        }
        const body = await readBody(response);
        requestLog?.responseBody(this.#logged(call), body);
        this.#record(call, startedMs, String(response.status), body.length);
        this.reachability.answered(this.#clock.monotonic());
        return { kind: 'done', response, body };
      }
      if (response.status >= 500) this.reachability.failed(this.#clock.monotonic());
      const received = await readBody(response);
      this.#record(call, startedMs, String(response.status), received.length);
      const body = withoutCredentials(received, credentials);
      requestLog?.responseBody(this.#logged(call), body);
      return {
        kind: 'failed',
        error: errorFromResponse(response, body, this.describe(call)),
        retryAfterMs: retryAfterOfFailure(response),
        target,
        credentials,
      };
    } catch (thrown) {
      this.#record(call, startedMs, '<error>');
      const reason: unknown = signal?.reason;
      const timeout = reason instanceof TimeoutError ? reason : undefined;
      if (!timeout) signal?.throwIfAborted();
      this.reachability.failed(this.#clock.monotonic());
      const error = timeout
        ? this.#timeoutError(call, timeout)
        : unreachable(thrown, target.server);
      requestLog?.failure(this.#logged(call), error, this.#roundedSince(startedMs));
      return { kind: 'failed', error, target, credentials };
    }
  }

  #withCredentials(own: Headers, credentials: Headers): Headers {
    const known = this.#headers.get(own);
    if (known?.credentials === credentials) return known.all;
    const all = { ...own, 'user-agent': this.#userAgent, ...credentials };
    this.#headers.set(own, { credentials, all });
    return all;
  }

  #roundedSince(startedMs: number): number {
    return Math.round(this.#clock.monotonic() - startedMs);
  }

  #record(
    { method, body }: ExecutedCall,
    startedMs: number,
    code: string,
    responseBytes?: number,
  ): void {
    this.#metrics.exchanged({
      verb: method,
      host: this.#host,
      code,
      seconds: (this.#clock.monotonic() - startedMs) / 1000,
      requestBytes: body === undefined ? 0 : Buffer.byteLength(body),
      ...(responseBytes !== undefined && { responseBytes }),
    });
  }

  async #waitForThrottle(throttle: Throttle, call: ExecutedCall): Promise<void> {
    const waitedMs = await throttle.wait(call.signal);
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

  #timeoutError(call: ExecutedCall, timeout: TimeoutError): ApiError {
    return new ApiError({
      kind: 'unreachable',
      message:
        `No complete response to ${this.describe(call)}: ${timeout.message}. ` +
        'Check the health and load of the API server, or raise the request timeout.',
      cause: timeout,
    });
  }

  #warn(response: HttpResponse): void {
    const header = response.headers['warning'];
    if (header !== undefined) parseWarnings(header).forEach(this.#onWarning);
  }

  #logged(call: ExecutedCall): LoggedRequest {
    const { method: verb, path } = call;
    return { verb, url: this.#url(call), path: path.split('?', 1)[0] ?? path };
  }
}

function hostOf(server: string): string {
  return URL.parse(server)?.host ?? server;
}

/** Masks the credentials in an error response, because servers can quote them and the message is logged. */
function withoutCredentials(body: Buffer, credentials: Headers): Buffer {
  const [, secret = ''] = credentials['authorization']?.split(' ') ?? [];
  if (secret.length < 6 || !body.includes(secret)) return body;
  return Buffer.from(body.toString('utf8').replaceAll(secret, '<masked>'));
}

/** Reports whether the server did not process the request: it was not sent or not authenticated. */
function isNotProcessed(error: unknown): boolean {
  return isApiError(error, 'unauthorized') || isNeverSent(error) || isCertificateRejected(error);
}

/** Reports whether a request without a response can be sent again: only reads are safe. */
function isRetryable(call: ExecutedCall, error: unknown): boolean {
  return call.method === 'GET' && isConnectionReset(error);
}

/** Returns the delay before a retry, if the status permits a retry and the server requests one. */
function retryAfterOfFailure(response: HttpResponse): number | undefined {
  return response.status === 429 || response.status >= 500 ? retryAfterOf(response) : undefined;
}
