import type { Socket } from 'node:net';
import { DialError } from './connection-error.ts';
import type { Http1ConnectionOptions, ResponseHandler, WireRequest } from './http1-connection.ts';
import { Http1Connection } from './http1-connection.ts';

/** Options of `Http1Pool`. */
export interface Http1PoolOptions extends Pick<
  Http1ConnectionOptions,
  'host' | 'headersTimeoutMs' | 'bodyTimeoutMs'
> {
  /** Opens a connection. */
  readonly dial: (signal: AbortSignal) => Promise<Socket>;
  /**
   * Maximum time for which an idle connection is kept, in milliseconds. The server can request a shorter time.
   * @default 30000, which is less than in load balancers and servers
   */
  readonly keepAliveMs?: number | undefined;
  /** @default the machine's clock */
  readonly clock?: Http1ConnectionOptions['clock'] | undefined;
}

const KEEP_ALIVE_MS = 30_000;

/** Its timers do not keep the process alive; a socket does that while a response is expected. */
const idleClock: Http1ConnectionOptions['clock'] = {
  monotonic: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Connections to one server over HTTP/1.1: one for each concurrent request. The most recently used are used first.
 *
 * Before an idle connection is used, the event loop reads once what has arrived on it. So no request is written to
 * a connection that the server has closed, and no data that was sent before the request counts as its response.
 */
export class Http1Pool {
  readonly #options: Http1PoolOptions;
  readonly #connections = new Set<Http1Connection>();
  /** The last one was used last. */
  readonly #idle: Http1Connection[] = [];
  /** Requests with idle connections that are used in the next turn of the event loop. */
  #next: [Http1Connection, WireRequest, ResponseHandler][] = [];
  readonly #closed = new AbortController();
  /** Number of connections that are being opened. */
  #dialling = 0;
  #retired: PromiseWithResolvers<void> | undefined;

  constructor(options: Http1PoolOptions) {
    this.#options = options;
  }

  /** Sends a request. All results are reported to the handler. */
  dispatch(request: WireRequest, handler: ResponseHandler): void {
    if (this.#retired) {
      handler.onResponseError(closedError());
      return;
    }
    const connection = this.#idle.pop();
    if (!connection) {
      void this.#sendOnNew(request, handler);
      return;
    }
    this.#next.push([connection, request, handler]);
    // The first immediate callback can precede the next reading of sockets.
    if (this.#next.length === 1) setImmediate(() => setImmediate(() => this.#sendNext()));
  }

  /** Rejects new requests; resolves when requests in flight have ended and all connections are closed. */
  close(): Promise<void> {
    this.#retired ??= Promise.withResolvers();
    const error = closedError();
    for (const connection of this.#idle.splice(0)) connection.destroy(error);
    this.#settleRetired();
    return this.#retired.promise;
  }

  /** Closes all connections; requests in flight fail. */
  destroy(): void {
    void this.close();
    const error = closedError();
    this.#closed.abort(error);
    for (const connection of this.#connections) connection.destroy(error);
  }

  #sendNext(): void {
    const next = this.#next;
    this.#next = [];
    for (const [connection, request, handler] of next) {
      if (connection.isReady) {
        connection.send(request, handler);
        continue;
      }
      connection.abort();
      this.dispatch(request, handler);
    }
  }

  async #sendOnNew(request: WireRequest, handler: ResponseHandler): Promise<void> {
    const { dial, clock = idleClock, keepAliveMs = KEEP_ALIVE_MS, ...options } = this.#options;
    this.#dialling++;
    let socket: Socket;
    try {
      socket = await dial(this.#closed.signal);
    } catch (error) {
      this.#dialling--;
      handler.onResponseError(error);
      this.#settleRetired();
      return;
    }
    this.#dialling--;
    const connection = new Http1Connection({
      ...options,
      clock,
      keepAliveMs,
      socket,
      onIdle: (idle) => {
        if (this.#retired) idle.destroy(closedError());
        else this.#idle.push(idle);
      },
      onUnanswered: (request, handler) => this.dispatch(request, handler),
      onClosed: (closed) => {
        this.#connections.delete(closed);
        const index = this.#idle.indexOf(closed);
        if (index >= 0) this.#idle.splice(index, 1);
        this.#settleRetired();
      },
    });
    this.#connections.add(connection);
    connection.send(request, handler);
  }

  #settleRetired(): void {
    if (this.#dialling === 0 && this.#connections.size === 0) this.#retired?.resolve();
  }
}

function closedError(): DialError {
  return new DialError('the client was closed');
}
