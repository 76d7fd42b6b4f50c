import type { Clock } from '../util/clock.ts';
import { rejectOnAbort } from '../util/abort.ts';
import { TimeoutError, withinTimeout } from '../util/within-timeout.ts';
import { concatBytes, utf8Text } from '../util/bytes.ts';
import { SyncError, TerminalError } from '../workqueue/outcome.ts';

/** The part of a context that `callService` uses. */
export interface ServiceContext {
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'after'>;
  /**
   * The function of the kit that sends requests to services outside of the cluster.
   * @default the global `fetch`
   */
  readonly fetch?: typeof fetch | undefined;
  /**
   * Called at the end of each call. In a sync, it records the call for `/debug/why` and the log.
   * @default none
   */
  readonly onServiceCall?: ((call: ServiceCall) => void) | undefined;
}

/** HTTP methods of {@link callService}. */
type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A finished call of {@link callService}. */
export interface ServiceCall {
  readonly method: Method;
  /** Scheme, host and port of the URL. Other parts may be secret. */
  readonly origin: string;
  /** Status code of the response; undefined without a response. */
  readonly status: number | undefined;
  /** Time until the call ended, in milliseconds. */
  readonly ms: number;
  /** What the call threw; undefined if it succeeded. */
  readonly error: unknown;
}

/** Options of {@link callService}. */
export interface ServiceCallOptions {
  /** @default none, but the Content-Type of JSON */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Sent as it is if it is a string or bytes, and as JSON otherwise.
   * @default none
   */
  readonly body?: unknown;
  /**
   * Status codes that are accepted besides 200 to 299: `[404]` for a DELETE that is repeated.
   * @default none
   */
  readonly accept?: readonly number[] | undefined;
  /**
   * Time for the complete response, in milliseconds.
   * @default 10_000
   */
  readonly timeoutMs?: number | undefined;
}

/** Maximum size of a response body, in bytes. */
const MAX_BODY = 1_048_576;
/** Maximum size of the body in an error, in bytes. */
const MAX_ERROR_BODY = 1024;
/** Maximum Retry-After, in milliseconds: the longest backoff of a key. */
const MAX_RETRY_AFTER_MS = 300_000;

/** Client errors that a retry can resolve: a timeout, a request that is too early, and rate limiting. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 425, 429]);

/** A failed call of {@link callService}. */
export class ServiceError extends SyncError {
  override readonly name = 'ServiceError';
  /** Status code of the response; undefined without a response. */
  readonly status: number | undefined;
  /** The first 1,024 bytes of the body of the response. It is not part of the message, because it may have secrets. */
  readonly body: string;

  constructor(message: string, { status, body = '', ...options }: ServiceErrorOptions) {
    super(message, options);
    this.status = status;
    this.body = body;
  }
}

interface ServiceErrorOptions extends ErrorOptions {
  readonly reason: string;
  readonly status?: number | undefined;
  readonly body?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/**
 * Sends a request to a service outside of the cluster with `context.fetch`. Redirects are not followed, because the URL
 * often is a user's. Messages of errors, the debug pages and the log at `-v=4` have the origin of the URL only, because
 * other parts and headers may be secret.
 *
 * @param url an HTTP or HTTPS URL without credentials
 * @returns the response, whose body has arrived
 * @throws {ServiceError} `ServiceUnreachable` without a response in time; `ServiceRejected` after a status from 400 to
 * 499 but 408, 425 and 429; `ServiceFailed` after any other that is not accepted, or a body of more than 1 MiB. A sync
 * that throws it is retried with a backoff of at least 1 s doubling to 5 min, and not before the Retry-After of the
 * response, at most five minutes.
 * @throws {TerminalError} `InvalidServiceRequest` if the URL or a header is malformed
 * @throws the reason of `context.signal` if it aborts
 *
 * @experimental
 */
export async function callService(
  context: ServiceContext,
  method: Method,
  url: string | URL,
  options: ServiceCallOptions = {},
): Promise<Response> {
  const { accept = [], timeoutMs = 10_000 } = options;
  const { signal, clock, fetch: send = fetch, onServiceCall } = context;
  const { origin, request } = requestOf(method, url, options);
  const call = `${method} to ${origin}`;
  const unreachable = (message: string, cause?: unknown) =>
    new ServiceError(`${call} failed: ${message}`, { reason: 'ServiceUnreachable', cause });
  const startMs = clock.monotonic();
  let received: number | undefined;
  const ended = (error?: unknown) => {
    const ms = clock.monotonic() - startMs;
    onServiceCall?.({ method, origin, status: received, ms, error });
  };
  const failureOf = (error: unknown) => {
    if (error instanceof ServiceError) return error;
    if (error instanceof TimeoutError) return unreachable(error.message, error);
    const cause = systemErrorOf(error);
    return unreachable(cause?.message || cause?.code || 'the connection failed', cause);
  };
  const exchange = async (limited: AbortSignal) => {
    const response = await send(request, { signal: limited });
    const { status } = response;
    received = status;
    if (response.ok || accept.includes(status)) {
      const { bytes, isComplete } = await bodyOf(response, MAX_BODY);
      if (isComplete) return withBody(response, bytes);
      const message = `${call} failed: the response has more than ${MAX_BODY} bytes`;
      throw new ServiceError(message, { reason: 'ServiceFailed', status });
    }
    const { bytes } = await bodyOf(response, MAX_ERROR_BODY);
    const isRejected = status >= 400 && status < 500 && !TEMPORARY.has(status);
    const reason = isRejected ? 'ServiceRejected' : 'ServiceFailed';
    throw new ServiceError(`${call} failed: the response has status ${status}`, {
      reason,
      status,
      body: utf8Text(bytes),
      retryAfterMs: retryAfterOf(response, clock.now()),
    });
  };
  try {
    const response = await withinTimeout({ clock, timeoutMs, signal }, (limited) =>
      rejectOnAbort(exchange(limited), limited),
    );
    ended();
    return response;
  } catch (error) {
    const thrown: unknown = signal.aborted ? signal.reason : failureOf(error);
    ended(thrown);
    throw thrown;
  }
}

/** @throws {TerminalError} without the value that is malformed */
function requestOf(
  method: string,
  given: string | URL,
  { headers, body }: ServiceCallOptions,
): { readonly origin: string; readonly request: Request } {
  const invalid = (message: string) =>
    new TerminalError(message, { reason: 'InvalidServiceRequest' });
  const url = URL.parse(String(given));
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    throw invalid('the URL of the service must be an HTTP or HTTPS URL without credentials');
  }
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const content = isRaw ? (body as string | Uint8Array<ArrayBuffer>) : JSON.stringify(body);
  try {
    const all = new Headers(headers);
    const isJson = content !== undefined && !isRaw;
    if (isJson && !all.has('content-type')) all.set('content-type', 'application/json');
    const init = { method, headers: all, body: content ?? null, redirect: 'manual' } as const;
    return { origin: url.origin, request: new Request(url, init) };
  } catch (error) {
    // Its message may have the value of a header.
    if (error instanceof TypeError)
      throw invalid(`the headers or the body of ${method} are not valid`);
    throw error;
  }
}

/** Reads the body up to a number of bytes, and cancels the rest. */
async function bodyOf({ body }: Response, limit: number) {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // A loop that ends early cancels the stream.
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limit) break;
  }
  return { bytes: concatBytes(chunks).subarray(0, limit), isComplete: length <= limit };
}

function withBody(
  { status, statusText, headers }: Response,
  bytes: Uint8Array<ArrayBuffer>,
): Response {
  return new Response(bytes.length > 0 ? bytes : null, { status, statusText, headers });
}

function retryAfterOf({ headers }: Response, nowMs: number): number | undefined {
  const header = headers.get('retry-after')?.trim() ?? '';
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : undefined;
}

/** Returns the error of the network or of TLS in an error of `fetch`. The messages of others may have the URL. */
function systemErrorOf(error: unknown): (Error & { readonly code: string }) | undefined {
  if (!(error instanceof Error)) return undefined;
  const nested = systemErrorOf(error.cause);
  return (
    nested ?? ('code' in error && typeof error.code === 'string' ? (error as never) : undefined)
  );
}
