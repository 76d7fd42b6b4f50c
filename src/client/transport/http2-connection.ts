import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
} from 'node:http2';
import { connect, constants } from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '../../util/clock.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import { unreachable } from './connection-error.ts';
import { HealthCheck } from './health-check.ts';
import type { HealthCheckLimits } from './health-check.ts';
import { Deferred } from '../../util/deferred.ts';

/** Options of `Http2Connection`. */
export interface Http2ConnectionOptions extends HealthCheckLimits {
  /** Connected; both sides have agreed to speak HTTP/2. */
  readonly socket: Socket;
  /** A path is put before every request's. */
  readonly server: URL;
  /** Sent with every request, in addition to its own: names may repeat. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  /** Called once, when the connection is no more; `error` says why, if it did not end well. */
  readonly onClosed: (error: unknown) => void;
}

/**
 * How much may be under way, in bytes: an initial stream of tens of thousands of objects should
 * wait for neither a window nor the round trip that widens it. A watch whose reader does not keep up
 * holds at most its own window in memory; the connection's is given back as soon as data arrives, so
 * that no stream can hold up another.
 */
const STREAM_WINDOW_BYTES = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;

/**
 * One HTTP/2 connection and its streams. When nothing has arrived for a while it pings its peer; a
 * peer that does not answer breaks every stream with an error, and nobody waits for the operating
 * system to notice. After a peer's goodbye (GOAWAY) no stream is opened and the old ones end in
 * their own time. A connection without streams ends where it would have to ping.
 */
export class Http2Connection {
  readonly #session: ClientHttp2Session;
  readonly #options: Http2ConnectionOptions;
  readonly #prefix: string;
  readonly #healthCheck: HealthCheck;
  #isReady = false;
  #streams = 0;
  #error: unknown;

  /** Resolves once the peer has told its limits; rejects if it does not speak HTTP/2 after all. */
  readonly ready: Promise<void>;
  constructor(options: Http2ConnectionOptions) {
    const { server, socket, clock } = options;
    this.#options = options;
    this.#prefix = server.pathname.replace(/\/+$/, '');
    const session = connect(server, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    });
    this.#session = session;
    this.#healthCheck = new HealthCheck(clock, options, {
      ping: () => this.#ping(),
      onDead: (error) => this.destroy(error),
    });
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES));
    session.on('error', (error) => {
      this.#error ??= error;
    });
    session.once('close', () => {
      this.#healthCheck.stop();
      options.onClosed(this.#error);
    });
    this.ready = new Promise((resolve, reject) => {
      session.once('remoteSettings', () => {
        this.#isReady = true;
        resolve();
      });
      session.once('close', () => reject(this.#explained(connectionReset(), undefined)));
    });
  }

  /** Streams open now. */
  get streams(): number {
    return this.#streams;
  }

  /** How many more may be opened now. */
  get room(): number {
    const { closed, destroyed, remoteSettings } = this.#session;
    if (!this.#isReady || closed || destroyed) return 0;
    return (remoteSettings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY) - this.#streams;
  }

  /** As an `HttpHandler` does; call it only while there is room. */
  async send(request: HttpRequest): Promise<HttpResponse> {
    const { signal } = request;
    try {
      const stream = this.#open(request);
      const abort = () => {
        stream.close(constants.NGHTTP2_CANCEL);
        stream.destroy();
      };
      signal?.addEventListener('abort', abort, { once: true });
      stream.once('close', () => signal?.removeEventListener('abort', abort));
      const headers = await headersOf(stream);
      this.#healthCheck.beat();
      return {
        status: headers[':status'] ?? 0,
        headers: plain(headers),
        body: this.#read(
          http2Body(stream, () => this.#healthCheck.beat()),
          signal,
        ),
        activity: this.#healthCheck,
      };
    } catch (error) {
      throw this.#explained(error, signal);
    }
  }

  /** Opens no stream any more and ends with the last one. */
  retire(): void {
    if (!this.#session.closed) this.#session.close();
  }

  /** Breaks every stream, for this reason. */
  destroy(error: Error): void {
    this.#error ??= error;
    this.#session.destroy(error);
  }

  #open({ method, path, headers, body, beforeSend }: HttpRequest): ClientHttp2Stream {
    beforeSend?.();
    const stream = this.#session.request(
      {
        ...merged([...Object.entries(headers), ...this.#options.headers]),
        ':method': method,
        ':path': this.#prefix + path,
      },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(body);
    this.#streams++;
    // Errors reach those who wait for the answer or read its body; there may be nobody any more.
    stream.on('error', () => undefined);
    stream.once('close', () => {
      this.#streams--;
    });
    return stream;
  }

  #ping(): void {
    if (this.#streams === 0) {
      this.retire();
      return;
    }
    this.#session.ping((error) => {
      if (!error) this.#healthCheck.beat();
    });
  }

  async *#read(
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* body;
    } catch (error) {
      throw this.#explained(error, signal);
    }
  }

  /** The signal's reason, if it has aborted; else what is to be thrown for `error`. */
  #explained(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    // A connection that is given up gives its streams a cancellation, or nothing at all.
    return unreachable(this.#error ?? error, this.#options.server.origin + this.#prefix);
  }
}

/** The answer's headers; rejects if the stream ends without. */
function headersOf(
  stream: ClientHttp2Stream,
): Promise<IncomingHttpHeaders & { ':status'?: number }> {
  return new Promise((resolve, reject) => {
    stream.once('response', resolve);
    stream.once('error', reject);
    stream.once('close', () => reject(connectionReset(stream.rstCode)));
  });
}

/** Names as HTTP/2 wants them; the values of a name that repeats together. */
function merged(headers: readonly (readonly [name: string, value: string])[]): OutgoingHttpHeaders {
  const all = new Map<string, string[]>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    all.set(key, [...(all.get(key) ?? []), value]);
  }
  return Object.fromEntries(all);
}

function plain(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const flat: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(':') || value === undefined) continue;
    flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

/** How much may wait for its reader before the stream is paused, in bytes. */
const HIGH_WATER_BYTES = 256 * 1024;

/**
 * What arrives on a stream, in chunks as large as the network brought them at once: servers cut
 * their answers into frames of one event or of 4 KiB, and a step of an asynchronous iteration costs
 * as much as decoding a small event. (Measured: it makes the whole cheaper than HTTP/1.1 by undici.)
 * A reader that does not keep up pauses the stream; the peer stops when the stream's window is full.
 *
 * Throws what broke the stream. Leaving the iteration closes it.
 *
 * @param onData called at every arrival
 */
function http2Body(
  stream: ClientHttp2Stream,
  onData: () => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  // Listening begins before the first read: a stream may break until then.
  return read(new ReceiveBuffer(stream, onData));
}

async function* read(arrivals: ReceiveBuffer): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for (;;) {
      const bytes = arrivals.take();
      if (bytes) yield bytes;
      else if (arrivals.over) return;
      else await arrivals.next();
    }
  } finally {
    arrivals.close();
  }
}

/** An error for a stream or connection that its peer closed before the end. */
function connectionReset(rstCode?: number): Error {
  const how = rstCode === undefined ? 'closed' : `reset with HTTP/2 code ${rstCode}`;
  return Object.assign(new Error(`${how} before the end`), { code: 'ECONNRESET' });
}

/** The reading side of a stream, and what has arrived on it and was not taken yet. */
class ReceiveBuffer {
  readonly #stream: ClientHttp2Stream;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #ended = false;
  #closed = false;
  #failure: { readonly error: unknown } | undefined;
  #arrival: Deferred | undefined;

  constructor(stream: ClientHttp2Stream, onData: () => void) {
    this.#stream = stream;
    stream.on('data', (chunk: Buffer) => {
      onData();
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      if (this.#bytes > HIGH_WATER_BYTES) stream.pause();
      // Later in this turn of the event loop: by then everything that can be read now is here.
      if (this.#chunks.length === 1) setImmediate(() => this.#arrival?.resolve());
    });
    stream.once('end', () => {
      this.#ended = true;
    });
    stream.once('error', (error) => {
      this.#failure = { error };
    });
    // A reset ends a stream too, as far as reading goes; how it ended is known when it has closed.
    stream.once('close', () => {
      this.#closed = true;
      if (!this.#ended || stream.rstCode !== constants.NGHTTP2_NO_ERROR) {
        this.#failure ??= { error: connectionReset(stream.rstCode) };
      }
      this.#arrival?.resolve();
    });
  }

  /** Everything there is; undefined if there is nothing. */
  take(): Buffer | undefined {
    const [first] = this.#chunks;
    const all = this.#chunks.length > 1 ? Buffer.concat(this.#chunks, this.#bytes) : first;
    this.#chunks = [];
    this.#bytes = 0;
    if (this.#stream.isPaused()) this.#stream.resume();
    return all;
  }

  /** True if nothing more will come. Throws what broke the stream. */
  get over(): boolean {
    if (this.#closed && this.#failure) throw this.#failure.error;
    return this.#closed;
  }

  /** Resolves when there is something new. */
  next(): Promise<void> {
    this.#arrival = new Deferred();
    return this.#arrival.promise;
  }

  close(): void {
    if (this.#closed) return;
    this.#stream.close(constants.NGHTTP2_CANCEL);
    this.#stream.destroy();
  }
}
