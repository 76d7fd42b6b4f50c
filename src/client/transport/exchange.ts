import type { Dispatcher } from 'undici';
import type { HttpRequest, HttpResponse, ResponseBody } from '../../util/http.ts';

/** Options of `exchange`. */
export interface ExchangeOptions {
  readonly dispatcher: Pick<Dispatcher, 'dispatch'>;
  readonly request: Dispatcher.DispatchOptions;
  /** Ends the exchange when it aborts; the response or its body then rejects with the reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called immediately before the request is written to a connection, as in `HttpRequest`. */
  readonly beforeSend?: HttpRequest['beforeSend'];
  /** Returns the error to throw for an error of undici. */
  readonly explain: Explain;
}

/** @param signal of the request */
type Explain = (error: unknown, signal: AbortSignal | undefined) => unknown;

/**
 * Sends a request through an undici dispatcher. Resolves when the response headers have arrived.
 *
 * It uses `dispatch` instead of `request`, which creates a Node.js stream for each response: that costs as much
 * CPU as the rest of a small exchange.
 */
export function exchange(options: ExchangeOptions): Promise<HttpResponse> {
  const { dispatcher, request, signal } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const handler = new Exchange(options);
  dispatcher.dispatch(request, handler);
  return handler.response;
}

/** Number of unread bytes at which a connection is paused. */
const HIGH_WATER_BYTES = 64 * 1024;

type Headers = Readonly<Record<string, string | string[] | undefined>>;
type State = 'waiting' | 'receiving' | 'ended' | 'failed';

/** One request and its response, which is read as it arrives. */
class Exchange
  implements Dispatcher.DispatchHandler, ResponseBody, AsyncIterator<Uint8Array, undefined>
{
  readonly #signal: AbortSignal | undefined;
  readonly #beforeSend: (() => void) | undefined;
  readonly #explain: Explain;
  readonly #response = Promise.withResolvers<HttpResponse>();
  #controller: Dispatcher.DispatchController | undefined;
  #state: State = 'waiting';
  #error: unknown;
  #chunks: Uint8Array[] = [];
  #unread = 0;
  #reader: PromiseWithResolvers<IteratorResult<Uint8Array, undefined>> | undefined;

  constructor({ signal, beforeSend, explain }: ExchangeOptions) {
    this.#signal = signal;
    this.#beforeSend = beforeSend;
    this.#explain = explain;
    signal?.addEventListener('abort', this.#abort);
  }

  get response(): Promise<HttpResponse> {
    return this.#response.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The exchange failed while the request waited for a connection: send nothing.
    if (this.#state === 'failed') controller.abort(new Error('aborted before it was sent'));
    else this.#beforeSend?.();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Headers,
  ): void {
    // Responses below 200 are informational; the response follows.
    if (status < 200 || this.#state !== 'waiting') return;
    this.#state = 'receiving';
    this.#response.resolve({ status, headers: flatten(headers), body: this });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#state !== 'receiving') return;
    this.#chunks.push(chunk);
    this.#unread += chunk.length;
    this.#deliver();
    if (this.#unread > HIGH_WATER_BYTES) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#state !== 'receiving') return;
    this.#settle('ended');
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: unknown): void {
    this.#fail(error);
  }

  received(): Uint8Array | undefined {
    const first = this.#chunks[0];
    if (this.#state !== 'ended' || this.#signal?.aborted || !first) return undefined;
    return this.#takeAll(first);
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    return this;
  }

  /** Returns all bytes that have arrived. */
  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#signal?.aborted && this.#state !== 'failed') this.#abort();
    this.#reader ??= Promise.withResolvers();
    const { promise } = this.#reader;
    this.#deliver();
    if (this.#controller?.paused && this.#state === 'receiving') this.#controller.resume();
    return promise;
  }

  /** Leaving the iteration early closes the connection. */
  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#state === 'receiving') {
      this.#controller?.abort(new Error('the response was not read to its end'));
      this.#settle('ended');
    }
    this.#chunks = [];
    return Promise.resolve({ done: true, value: undefined });
  }

  readonly #abort = (): void => {
    const reason: unknown = this.#signal?.reason;
    this.#fail(reason);
    this.#controller?.abort(new Error('the request was aborted', { cause: reason }));
  };

  #fail(error: unknown): void {
    if (this.#state === 'ended' ? !this.#signal?.aborted : this.#state === 'failed') return;
    const isWaiting = this.#state === 'waiting';
    this.#error = this.#explain(error, this.#signal);
    this.#chunks = [];
    if (isWaiting) this.#response.reject(this.#error);
    this.#settle('failed');
  }

  #settle(state: 'ended' | 'failed'): void {
    this.#state = state;
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#deliver();
  }

  /** Settles a pending `next` if there is data, or if the response has ended. */
  #deliver(): void {
    const reader = this.#reader;
    if (!reader) return;
    const first = this.#chunks[0];
    if (first) {
      reader.resolve({ value: this.#takeAll(first), done: false });
    } else if (this.#state === 'ended') {
      reader.resolve({ value: undefined, done: true });
    } else if (this.#state === 'failed') {
      reader.reject(this.#error);
    } else {
      return;
    }
    this.#reader = undefined;
  }

  #takeAll(first: Uint8Array): Uint8Array {
    const all = this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#unread);
    this.#chunks = [];
    this.#unread = 0;
    return all;
  }
}

/** Joins the values of repeated headers. Most responses have none; their headers are not copied. */
function flatten(headers: Headers): Readonly<Record<string, string>> {
  if (hasSingleValues(headers)) return headers;
  const flat: Record<string, string> = Object.create(null);
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value !== undefined) flat[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return flat;
}

function hasSingleValues(headers: Headers): headers is Readonly<Record<string, string>> {
  for (const name in headers) if (typeof headers[name] !== 'string') return false;
  return true;
}
