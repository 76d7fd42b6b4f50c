import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import type { Logger } from '../../util/logger.ts';
import { silentLogger } from '../../util/logger.ts';
import { isCertificateRejected, PingTimeoutError, unreachable } from './connection-error.ts';
import type { TlsMaterial } from './dial.ts';
import { dial } from './dial.ts';
import type { HealthCheckLimits } from './health-check.ts';
import { Http2Connection } from './http2-connection.ts';
import type { Http2ConnectionOptions } from './http2-connection.ts';
import type { TransportOptions } from './transport.ts';
import { rejectOnAbort } from '../../util/abort.ts';

/** Options of `WatchConnections`. */
export interface WatchConnectionsOptions extends Omit<
  TransportOptions,
  'headersTimeoutMs' | 'clock'
> {
  /** @default 20_000 */
  readonly pingAfterMs?: HealthCheckLimits['pingAfterMs'] | undefined;
  /** @default 10_000 */
  readonly pingTimeoutMs?: HealthCheckLimits['pingTimeoutMs'] | undefined;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'monotonic' | 'after'> | undefined;
  /**
   * Starts an HTTP/2 session on a socket. It throws if the engine cannot.
   * @default a session of node:http2
   */
  readonly session?: ((options: Http2ConnectionOptions) => Http2Connection) | undefined;
  /** @default silent */
  readonly log?: Logger | undefined;
}

/** Time after which a server that chose HTTP/1.1 is offered HTTP/2 again, in milliseconds. */
const HTTP2_RETRY_MS = 10 * 60_000;

/** Number of HTTP/2 connections in a row that end during their setup, after which HTTP/1.1 is used. */
const MAX_FAILED_SETUPS = 3;

/**
 * A pool of HTTP/2 connections for watches. They are separate from other requests, which therefore do not fail
 * with a dead connection. HTTP/2 pings distinguish an idle watch from a stalled one: they test the connection
 * itself, whereas a load balancer can answer TCP keep-alive probes. A further connection is opened when the
 * others carry as many streams as the server permits.
 */
export class WatchConnections {
  readonly #options: WatchConnectionsOptions;
  readonly #limits: HealthCheckLimits;
  readonly #server: URL;
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #log: Logger;
  readonly #closed = new AbortController();
  /** Connections that are not closed. */
  readonly #connections = new Map<Http2Connection, TlsMaterial>();
  #dialling: { readonly material: TlsMaterial; readonly connection: Dialling } | undefined;
  #http1UntilMs = Number.NEGATIVE_INFINITY;
  #hasLoggedHttp1 = false;
  /** Number of connections since the last that was set up. */
  #failedSetups = 0;

  constructor(options: WatchConnectionsOptions) {
    const { pingAfterMs = 20_000, pingTimeoutMs = 10_000, clock = systemClock } = options;
    this.#options = options;
    this.#limits = { pingAfterMs, pingTimeoutMs };
    this.#server = new URL(options.server);
    this.#clock = clock;
    this.#log = options.log ?? silentLogger;
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#connections.size;
  }

  /**
   * Sends a request. Resolves to undefined, without sending it, if the server or the JavaScript engine does not support
   * HTTP/2.
   */
  async send(request: HttpRequest): Promise<HttpResponse | undefined> {
    const { signal } = request;
    for (;;) {
      signal?.throwIfAborted();
      if (this.#server.protocol !== 'https:') return undefined;
      if (this.#clock.monotonic() < this.#http1UntilMs) return undefined;
      const material = await rejectOnAbort(this.#material(), signal);
      const present = this.#withAvailableStream(material);
      const connection = present ?? (await rejectOnAbort(this.#dial(material), signal));
      if (!connection) return undefined;
      if (connection.availableStreams > 0) return connection.send(request);
      // Concurrent requests may have used all streams. A connection without streams permits none.
      if (connection.streams === 0) {
        throw unreachable(new Error('the server permits no HTTP/2 streams'), this.#server.origin);
      }
    }
  }

  /** Closes each connection when its last stream ends. */
  retire(): void {
    for (const connection of this.#connections.keys()) connection.retire();
  }

  /** Closes all connections; requests in flight fail. */
  close(): void {
    const error = new Error('the client was closed');
    this.#closed.abort(error);
    for (const connection of this.#connections.keys()) connection.destroy(error);
  }

  async #material(): Promise<TlsMaterial> {
    return (await this.#options.tls?.()) ?? NO_MATERIAL;
  }

  #withAvailableStream(material: TlsMaterial): Http2Connection | undefined {
    for (const [connection, of] of this.#connections) {
      if (of === material && connection.availableStreams > 0) return connection;
    }
    return undefined;
  }

  /** Opens a connection; concurrent callers share it. */
  #dial(material: TlsMaterial): Dialling {
    if (this.#dialling?.material === material) return this.#dialling.connection;
    const connection = this.#connect(material).finally(() => {
      if (this.#dialling?.connection === connection) this.#dialling = undefined;
    });
    this.#dialling = { material, connection };
    return connection;
  }

  async #connect(material: TlsMaterial): Dialling {
    const { signal } = this.#closed;
    const { origin } = this.#server;
    let socket: Socket;
    try {
      signal.throwIfAborted();
      socket = await dial(this.#server, {
        ...this.#options,
        tls: material,
        protocols: ['h2', 'http/1.1'],
        signal,
      });
    } catch (error) {
      if (isCertificateRejected(error)) this.#options.onTlsRejected?.();
      throw unreachable(error, origin);
    }
    if (!(socket instanceof TLSSocket) || socket.alpnProtocol !== 'h2') {
      socket.destroy();
      this.#useHttp1();
      return undefined;
    }
    const connection = this.#open(socket);
    if (!connection) {
      socket.destroy();
      this.#useHttp1();
      return undefined;
    }
    this.#connections.set(connection, material);
    this.#failedSetups++;
    try {
      await connection.ready;
    } catch (error) {
      if (this.#failedSetups < MAX_FAILED_SETUPS || signal.aborted) throw error;
      this.#failedSetups = 0;
      this.#useHttp1();
      return undefined;
    }
    this.#failedSetups = 0;
    for (const [other, of] of this.#connections) if (of !== material) other.retire();
    return connection;
  }

  /** Starts a session on a socket; undefined if the engine cannot. */
  #open(socket: Socket): Http2Connection | undefined {
    try {
      const { session = (own) => new Http2Connection(own) } = this.#options;
      const connection: Http2Connection = session({
        ...this.#limits,
        socket,
        server: this.#server,
        headers: this.#options.headers ?? [],
        clock: this.#clock,
        onClosed: (error) => {
          this.#connections.delete(connection);
          if (error instanceof PingTimeoutError) {
            const { host } = this.#server;
            this.#log.v(2).info('Connection is dead; re-establishing its watches', {
              server: host,
              err: error.message,
            });
          }
        },
      });
      return connection;
    } catch (error) {
      this.#log.v(2).info('The engine cannot set up an HTTP/2 session', { err: error });
      return undefined;
    }
  }

  #useHttp1(): void {
    this.#http1UntilMs = this.#clock.monotonic() + HTTP2_RETRY_MS;
    if (this.#hasLoggedHttp1) return;
    this.#hasLoggedHttp1 = true;
    this.#log.v(2).info('HTTP/2 is not available; stalled watches are detected by their silence', {
      server: this.#server.host,
    });
  }
}

type Dialling = Promise<Http2Connection | undefined>;

const NO_MATERIAL: TlsMaterial = {};
