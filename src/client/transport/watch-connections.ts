import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import type { Logger } from '../../util/logger.ts';
import { silentLogger } from '../../util/logger.ts';
import { isCertificateRefused, PingTimeoutError, unreachable } from './connection-error.ts';
import type { TlsMaterial } from './dial.ts';
import { dial } from './dial.ts';
import type { HealthCheckLimits } from './health-check.ts';
import { Http2Connection } from './http2-connection.ts';
import type { TransportOptions } from './transport.ts';
import { rejectOnAbort } from '../../util/abort.ts';

/** Options of `WatchConnections`. */
export interface WatchConnectionsOptions
  extends Omit<TransportOptions, 'headersTimeoutMs' | 'clock'>, Partial<HealthCheckLimits> {
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'monotonic' | 'after'> | undefined;
  /** @default silent */
  readonly log?: Logger | undefined;
}

/** For how long a server that chose HTTP/1.1 is believed to know nothing else, in milliseconds. */
const HTTP1_BELIEVED_MS = 10 * 60_000;

/**
 * The way of watches: HTTP/2 connections of their own, so that a connection found dead takes no
 * other request with it, and a watch that is quiet can be told from one that is dead (a ping goes
 * over the very connection it is about; TCP's own probes are answered by any balancer between).
 * Connections are opened as they are needed, one more when the others carry as many streams as the
 * server allows.
 */
export class WatchConnections {
  readonly #options: WatchConnectionsOptions;
  readonly #limits: HealthCheckLimits;
  readonly #server: URL;
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #log: Logger;
  readonly #ended = new AbortController();
  /** Those that are no more are not in here. */
  readonly #connections = new Map<Http2Connection, TlsMaterial>();
  #dialling: { readonly material: TlsMaterial; readonly connection: Dialled } | undefined;
  #http1UntilMs = Number.NEGATIVE_INFINITY;
  #toldHttp1 = false;

  constructor(options: WatchConnectionsOptions) {
    const { pingAfterMs = 20_000, pingTimeoutMs = 10_000, clock = systemClock } = options;
    this.#options = options;
    this.#limits = { pingAfterMs, pingTimeoutMs };
    this.#server = new URL(options.server);
    this.#clock = clock;
    this.#log = options.log ?? silentLogger;
  }

  /** Connections open now. */
  get connections(): number {
    return this.#connections.size;
  }

  /** As an `HttpHandler` does. Undefined: the server does not speak HTTP/2, nothing was sent. */
  async send(request: HttpRequest): Promise<HttpResponse | undefined> {
    const { signal } = request;
    for (;;) {
      signal?.throwIfAborted();
      if (this.#server.protocol !== 'https:') return undefined;
      if (this.#clock.monotonic() < this.#http1UntilMs) return undefined;
      const material = await rejectOnAbort(this.#material(), signal);
      const present = this.#withRoom(material);
      const connection = present ?? (await rejectOnAbort(this.#dial(material), signal));
      if (!connection) return undefined;
      if (connection.room > 0) return connection.send(request);
      // Others were quicker, unless nobody is there.
      if (connection.streams === 0) {
        throw unreachable(new Error('it allows no stream'), this.#server.origin);
      }
    }
  }

  /** Ends each connection with its last stream. */
  retire(): void {
    for (const connection of this.#connections.keys()) connection.retire();
  }

  /** Ends all connections; what is in flight fails. */
  close(): void {
    const error = new Error('the client was closed');
    this.#ended.abort(error);
    for (const connection of this.#connections.keys()) connection.destroy(error);
  }

  async #material(): Promise<TlsMaterial> {
    return (await this.#options.tls?.()) ?? NO_MATERIAL;
  }

  #withRoom(material: TlsMaterial): Http2Connection | undefined {
    for (const [connection, of] of this.#connections) {
      if (of === material && connection.room > 0) return connection;
    }
    return undefined;
  }

  /** One connection is opened at a time: those who want one share it. */
  #dial(material: TlsMaterial): Dialled {
    if (this.#dialling?.material === material) return this.#dialling.connection;
    const connection = this.#connect(material).finally(() => {
      if (this.#dialling?.connection === connection) this.#dialling = undefined;
    });
    this.#dialling = { material, connection };
    return connection;
  }

  async #connect(material: TlsMaterial): Dialled {
    const { signal } = this.#ended;
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
      if (isCertificateRefused(error)) this.#options.onTlsRefused?.();
      throw unreachable(error, origin);
    }
    if (!(socket instanceof TLSSocket) || socket.alpnProtocol !== 'h2') {
      socket.destroy();
      this.#believeHttp1();
      return undefined;
    }
    return this.#admit(socket, material);
  }

  async #admit(socket: Socket, material: TlsMaterial): Promise<Http2Connection> {
    const connection: Http2Connection = new Http2Connection({
      ...this.#limits,
      socket,
      server: this.#server,
      headers: this.#options.headers ?? [],
      clock: this.#clock,
      onClosed: (error) => {
        this.#connections.delete(connection);
        if (error instanceof PingTimeoutError) {
          const { host } = this.#server;
          this.#log.v(2).info('A connection is dead; its watches go on over a new one', {
            server: host,
            err: error.message,
          });
        }
      },
    });
    this.#connections.set(connection, material);
    await connection.ready;
    for (const [other, of] of this.#connections) if (of !== material) other.retire();
    return connection;
  }

  #believeHttp1(): void {
    this.#http1UntilMs = this.#clock.monotonic() + HTTP1_BELIEVED_MS;
    if (this.#toldHttp1) return;
    this.#toldHttp1 = true;
    this.#log
      .v(2)
      .info('The server does not speak HTTP/2: a dead watch is noticed by its silence', {
        server: this.#server.host,
      });
  }
}

type Dialled = Promise<Http2Connection | undefined>;

const NO_MATERIAL: TlsMaterial = {};
