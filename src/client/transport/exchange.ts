import type { HttpRequest, HttpResponse, ResponseBody } from '../../util/http.ts';
import type { ExchangeControl, ResponseHandler, WireRequest } from './http1-connection.ts';
import type { ResponseHead } from './response-parser.ts';

/** Options of `exchange`. */
export interface ExchangeOptions {
  readonly pool: { dispatch(request: WireRequest, handler: ResponseHandler): void };
  readonly request: WireRequest;
  /** Ends the exchange when it aborts; the response or its body then rejects with the reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called immediately before the request is written to a connection, as in {@link HttpRequest}. */
  readonly beforeSend?: HttpRequest['beforeSend'] | undefined;
  /** Returns the error to throw for an error of the connection. */
  readonly explain: Explain;
}

/** @param signal of the request */
type Explain = (error: unknown, signal: AbortSignal | undefined) => unknown;

/** Sends a request through a pool of connections. Resolves when the response headers have arrived. */
export function exchange(options: ExchangeOptions): Promise<HttpResponse> {
  const { pool, request, signal } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const handler = new Exchange(options);
  pool.dispatch(request, handler);
  return handler.response;
}

/** Number of unread bytes at which a connection is paused. */
const HIGH_WATER_BYTES = 64 * 1024;

type State = 'waiting' | 'receiving' | 'ended' | 'failed';

/** One request and its response, which is read as it arrives. */
class Exchange implements ResponseHandler, ResponseBody, AsyncIterator<Uint8Array, undefined> {
  readonly #signal: AbortSignal | undefined;
  readonly #beforeSend: (() => void) | undefined;
  readonly #explain: Explain;
  readonly #response = Promise.withResolvers<HttpResponse>();
  /** Set while the exchange is in progress. */
  #control: ExchangeControl | undefined;
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

  onRequestStart(control: ExchangeControl): boolean {
    // The exchange failed while the request waited for a connection.
    if (this.#state === 'failed') return false;
    this.#beforeSend?.();
    this.#control = control;
    return true;
  }

  onResponseStart({ status, headers }: ResponseHead): void {
    if (this.#state !== 'waiting') return;
    this.#state = 'receiving';
    this.#response.resolve({ status, headers, body: this });
  }

  onResponseData(chunk: Uint8Array): void {
    if (this.#state !== 'receiving') return;
    this.#chunks.push(chunk);
    this.#unread += chunk.length;
    this.#deliver();
    if (this.#unread > HIGH_WATER_BYTES) this.#control?.pause();
  }

  onResponseEnd(): void {
    if (this.#state !== 'receiving') return;
    this.#settle('ended');
  }

  onResponseError(error: unknown): void {
    this.#control = undefined;
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
    if (this.#control?.isPaused) this.#control.resume();
    return promise;
  }

  /** Leaving the iteration early closes the connection. */
  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#state === 'receiving') {
      this.#control?.abort();
      this.#settle('ended');
    }
    this.#chunks = [];
    return Promise.resolve({ done: true, value: undefined });
  }

  readonly #abort = (): void => {
    this.#control?.abort();
    this.#fail(this.#signal?.reason);
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
    this.#control = undefined;
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
