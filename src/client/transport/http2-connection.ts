import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '../../util/clock.ts';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import { nodeHttp2 } from '../../util/node-http.ts';
import { unreachable } from './connection-error.ts';
import { ConnectionHealthCheck } from './health-check.ts';
import type { HealthCheckLimits } from './health-check.ts';
import { MAX_INFORMATIONAL } from './response-parser.ts';
import { Deferred } from '../../util/deferred.ts';

/** Options of `Http2Connection`. */
export interface Http2ConnectionOptions extends HealthCheckLimits {
  /** A connected socket for which HTTP/2 was negotiated. */
  readonly socket: Socket;
  /** Address of the server; if it has a path, that is prepended to every request's path. */
  readonly server: URL;
  /** Additional headers of every request; names can repeat. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  /** Called once when the connection is closed; `error` is the reason if it failed. */
  readonly onClosed: (error: unknown) => void;
}

/**
 * Flow-control windows in bytes, large enough that an initial stream of tens of thousands of objects does not
 * wait for window updates. A watch with a slow reader holds at most its stream window in memory. The
 * connection's window is refilled as soon as data arrives, so that no stream can block another.
 */
const STREAM_WINDOW_BYTES = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;

/**
 * An HTTP/2 connection with a health check. If the server does not respond to a ping, all streams fail, without
 * waiting for the TCP timeouts of the operating system. After a GOAWAY no stream is opened, and the existing
 * streams continue. A connection without streams is closed instead of pinged.
 */
export class Http2Connection {
  readonly #session: ClientHttp2Session;
  readonly #options: Http2ConnectionOptions;
  readonly #prefix: string;
  readonly #healthCheck: ConnectionHealthCheck;
  #isReady = false;
  #streams = 0;
  #error: unknown;

  /** Resolves when the server's settings have arrived; rejects if the server does not use HTTP/2. */
  readonly ready: Promise<void>;
  constructor(options: Http2ConnectionOptions) {
    const { server, socket, clock } = options;
    this.#options = options;
    this.#prefix = server.pathname.replace(/\/+$/, '');
    const session = nodeHttp2().connect(server, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    });
    this.#session = session;
    this.#healthCheck = new ConnectionHealthCheck(clock, options, {
      ping: () => this.#ping(),
      onDead: (error) => this.destroy(error),
    });
    session.once('connect', () => {
      // A larger window is an optimization, which some engines do not have.
      if ('setLocalWindowSize' in session) session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    });
    // The session reports the errors of its socket; those after its end are of no use.
    socket.on('error', () => undefined);
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

  /** Number of open streams. */
  get streams(): number {
    return this.#streams;
  }

  /** Number of further streams that the server permits now. */
  get availableStreams(): number {
    const { closed, destroyed, remoteSettings } = this.#session;
    if (!this.#isReady || closed || destroyed) return 0;
    return (remoteSettings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY) - this.#streams;
  }

  /** Sends a request, as an `HttpHandler` does. Call it only while `availableStreams` is positive. */
  async send(request: HttpRequest): Promise<HttpResponse> {
    const { signal } = request;
    try {
      const stream = this.#open(request);
      const abort = () => {
        stream.close(nodeHttp2().constants.NGHTTP2_CANCEL);
        stream.destroy();
      };
      signal?.addEventListener('abort', abort, { once: true });
      stream.once('close', () => signal?.removeEventListener('abort', abort));
      const headers = await headersOf(stream);
      this.#healthCheck.received();
      return {
        status: headers[':status'] ?? 0,
        headers: plain(headers),
        body: this.#read(
          http2Body(stream, () => this.#healthCheck.received()),
          signal,
        ),
        activity: this.#healthCheck,
      };
    } catch (error) {
      throw this.#explained(error, signal);
    }
  }

  /** Opens no further streams; the connection is closed with its last stream. */
  retire(): void {
    if (!this.#session.closed) this.#session.close();
  }

  /** Closes the connection; all streams fail with `error`. */
  destroy(error: Error): void {
    this.#error ??= error;
    this.#session.destroy(error);
  }

  #open({ method, path, headers, body, beforeSend }: HttpRequest): ClientHttp2Stream {
    beforeSend?.();
    const stream = this.#session.request(
      {
        ...mergeHeaders([...Object.entries(headers), ...this.#options.headers]),
        ':method': method,
        ':path': this.#prefix + path,
      },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(body);
    this.#streams++;
    // Errors are reported by the response or its body, but both may have been abandoned.
    stream.on('error', () => undefined);
    stream.once('close', () => {
      this.#streams--;
    });
    return stream;
  }

  #ping(): void {
    if (this.#session.destroyed) return;
    if (this.#streams === 0) {
      this.retire();
      return;
    }
    this.#session.ping((error) => {
      if (!error) this.#healthCheck.received();
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

  /** Returns the signal's reason if it has aborted, otherwise the `ApiError` for `error`. */
  #explained(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    // The streams of a destroyed connection report a cancellation or no error.
    return unreachable(this.#error ?? error, this.#options.server.origin + this.#prefix);
  }
}

/** Returns the response headers; rejects if the stream ends before them. */
function headersOf(
  stream: ClientHttp2Stream,
): Promise<IncomingHttpHeaders & { ':status'?: number }> {
  return new Promise((resolve, reject) => {
    stream.once('response', resolve);
    let informational = 0;
    stream.on('headers', () => {
      if (++informational <= MAX_INFORMATIONAL) return;
      stream.destroy(new Error('too many informational responses precede the response'));
    });
    stream.once('error', reject);
    stream.once('close', () => reject(connectionReset(stream.rstCode)));
  });
}

/** Converts headers to HTTP/2: lower-case names, with all values of a repeated name. */
function mergeHeaders(
  headers: readonly (readonly [name: string, value: string])[],
): OutgoingHttpHeaders {
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

/** Number of unread bytes at which a stream is paused. */
const HIGH_WATER_BYTES = 256 * 1024;

/**
 * Reads a stream in chunks as large as possible: servers send frames of one event or of 4 KiB, and a step of an
 * asynchronous iteration costs as much as decoding a small event. With this, HTTP/2 is measurably faster than
 * HTTP/1.1. A slow reader pauses the stream; the server stops when the stream's window is full.
 *
 * Throws the error of the stream. Leaving the iteration closes the stream.
 *
 * @param onData called whenever data arrives
 */
function http2Body(
  stream: ClientHttp2Stream,
  onData: () => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  // The buffer listens before the first read, because the stream can fail until then.
  return read(new ReceiveBuffer(stream, onData));
}

async function* read(buffer: ReceiveBuffer): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for (;;) {
      const bytes = buffer.take();
      if (bytes) yield bytes;
      else if (buffer.isComplete) return;
      else await buffer.next();
    }
  } finally {
    buffer.close();
  }
}

/** Creates the error of a stream or connection that the server closed before its end. */
function connectionReset(rstCode?: number): Error {
  const how = rstCode === undefined ? 'closed' : `reset with HTTP/2 code ${rstCode}`;
  return Object.assign(new Error(`${how} before the end`), { code: 'ECONNRESET' });
}

/** The data that has arrived on a stream and was not read yet. */
class ReceiveBuffer {
  readonly #stream: ClientHttp2Stream;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #ended = false;
  #closed = false;
  #failure: { readonly error: unknown } | undefined;
  #nextArrival: Deferred | undefined;

  constructor(stream: ClientHttp2Stream, onData: () => void) {
    this.#stream = stream;
    stream.on('data', (chunk: Buffer) => {
      onData();
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      if (this.#bytes > HIGH_WATER_BYTES) stream.pause();
      // Wait until everything that can be read in this turn of the event loop has arrived.
      if (this.#chunks.length === 1) setImmediate(() => this.#nextArrival?.resolve());
    });
    stream.once('end', () => {
      this.#ended = true;
    });
    stream.once('error', (error) => {
      this.#failure = { error };
    });
    // A reset also emits 'end'; only after 'close' is it known how the stream ended.
    stream.once('close', () => {
      this.#closed = true;
      if (!this.#ended || stream.rstCode !== nodeHttp2().constants.NGHTTP2_NO_ERROR) {
        this.#failure ??= { error: connectionReset(stream.rstCode) };
      }
      this.#nextArrival?.resolve();
    });
  }

  /** Returns and removes all data; undefined if there is none. */
  take(): Buffer | undefined {
    const [first] = this.#chunks;
    const all = this.#chunks.length > 1 ? Buffer.concat(this.#chunks, this.#bytes) : first;
    this.#chunks = [];
    this.#bytes = 0;
    if (this.#stream.isPaused()) this.#stream.resume();
    return all;
  }

  /** True after the end of the stream. Throws the error of the stream. */
  get isComplete(): boolean {
    if (this.#closed && this.#failure) throw this.#failure.error;
    return this.#closed;
  }

  /** Resolves when data arrives or the stream ends. */
  next(): Promise<void> {
    this.#nextArrival = new Deferred();
    return this.#nextArrival.promise;
  }

  close(): void {
    if (this.#closed) return;
    this.#stream.close(nodeHttp2().constants.NGHTTP2_CANCEL);
    this.#stream.destroy();
  }
}
