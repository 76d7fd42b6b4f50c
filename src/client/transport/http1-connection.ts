import type { Socket } from 'node:net';
import type { ResponseHead } from './response-parser.ts';
import { ResponseParser } from './response-parser.ts';
import { systemError } from './dial.ts';

/** A request in the form in which it is written to a connection. */
export interface WireRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  /** Lines of all headers except those that the connection adds: Host, Connection and Content-Length. */
  readonly headerLines: string;
  readonly body?: string | Uint8Array | undefined;
}

/** What a handler can do to its exchange while it is in progress. */
export interface ExchangeControl {
  /** Closes the connection. */
  abort(): void;
  /** Stops and continues the reading of the response. */
  pause(): void;
  resume(): void;
  readonly isPaused: boolean;
}

/** Receives the response to a request. `onResponseEnd` or `onResponseError` is the last call. */
export interface ResponseHandler {
  /**
   * Called immediately before the request is written. If it throws, nothing is sent and `onResponseError` is
   * called. If it returns false, nothing is sent.
   */
  onRequestStart(control: ExchangeControl): boolean;
  onResponseStart(head: ResponseHead): void;
  onResponseData(bytes: Uint8Array): void;
  onResponseEnd(): void;
  onResponseError(error: unknown): void;
}

/** Options of `Http1Connection`. */
export interface Http1ConnectionOptions {
  readonly socket: Socket;
  /** Value of the Host header. */
  readonly host: string;
  /** Timeout for the response headers, in milliseconds. */
  readonly headersTimeoutMs: number;
  /** Timeout for each further part of a response, in milliseconds; 0 disables it. */
  readonly bodyTimeoutMs: number;
  /** Maximum time for which an idle connection is kept, in milliseconds. */
  readonly keepAliveMs: number;
  readonly clock: IdleClock;
  /** Called when the connection can carry another request. */
  readonly onIdle: (connection: Http1Connection) => void;
  readonly onClosed: (connection: Http1Connection) => void;
  /** Called with a request that must be sent again. */
  readonly onUnanswered: (request: WireRequest, handler: ResponseHandler) => void;
}

/** A clock whose timers do not keep the process alive. */
export interface IdleClock {
  monotonic(): number;
  after(ms: number, callback: () => void): () => void;
}

/** A connection is closed this long before the server closes it, in milliseconds. */
const KEEP_ALIVE_MARGIN_MS = 2000;

/**
 * An HTTP/1.1 connection, with at most one request at a time. A request is one write. One timer serves all
 * timeouts of the connection: it is not set again for each request.
 */
export class Http1Connection implements ExchangeControl {
  readonly #options: Http1ConnectionOptions;
  readonly #socket: Socket;
  readonly #parser: ResponseParser;
  /** Handler of the request in progress. */
  #handler: ResponseHandler | undefined;
  /** The request in progress if it can be sent again, because no part of its response has arrived. */
  #unanswered: WireRequest | undefined;
  #isReused = false;
  /** The headers of the response have arrived. */
  #isResponding = false;
  #keepAliveMs: number;
  #isClosed = false;
  #deadlineMs = Number.POSITIVE_INFINITY;
  #timerMs = Number.POSITIVE_INFINITY;
  #cancelTimer: () => void = () => undefined;

  constructor(options: Http1ConnectionOptions) {
    const { socket, keepAliveMs } = options;
    this.#options = options;
    this.#socket = socket;
    this.#keepAliveMs = keepAliveMs;
    this.#parser = new ResponseParser({
      onHead: (head) => this.#receivedHead(head),
      onData: (bytes) => this.#handler?.onResponseData(bytes),
      onComplete: (isReusable) => this.#completed(isReusable),
    });
    socket.on('data', (bytes: Buffer) => this.#received(bytes)).resume();
    socket.on('end', () => {
      if (this.#parser.end()) this.#close();
      else this.#lose(connectionReset());
    });
    socket.on('error', (error) => this.#lose(error));
    socket.on('close', () => this.#lose(connectionReset()));
  }

  /** Whether an idle connection can carry a request: it is open, and has written the last one completely. */
  get isReady(): boolean {
    return !this.#isClosed && this.#socket.writableLength === 0;
  }

  get isPaused(): boolean {
    return this.#socket.isPaused();
  }

  /** Sends a request. Call it only while the connection is idle. */
  send(request: WireRequest, handler: ResponseHandler): void {
    let text: string | Uint8Array;
    try {
      text = textOf(request, this.#options.host);
      if (!handler.onRequestStart(this)) {
        this.#idle();
        return;
      }
    } catch (error) {
      this.#idle();
      handler.onResponseError(error);
      return;
    }
    this.#handler = handler;
    this.#unanswered = this.#isReused && request.method === 'GET' ? request : undefined;
    this.#isReused = true;
    this.#keepAliveMs = this.#options.keepAliveMs;
    this.#parser.start();
    this.#isResponding = false;
    this.#setDeadline(this.#options.headersTimeoutMs);
    this.#socket.ref();
    this.#socket.write(text);
  }

  abort(): void {
    this.#handler = undefined;
    this.#close();
  }

  pause(): void {
    this.#socket.pause();
    // The reader is slow, not the server.
    this.#deadlineMs = Number.POSITIVE_INFINITY;
  }

  resume(): void {
    this.#socket.resume();
    this.#setDeadline(this.#options.bodyTimeoutMs);
  }

  /** Closes the connection; the request in progress fails with `error`. */
  destroy(error: unknown): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#close();
    handler?.onResponseError(error);
  }

  /**
   * Closes a connection that the server or the network has closed. As in Go, a read that was sent on a reused
   * connection and has no response yet is sent again: the server may have closed the idle connection.
   */
  #lose(error: unknown): void {
    const handler = this.#handler;
    const unanswered = this.#unanswered;
    if (!handler || !unanswered) {
      this.destroy(error);
      return;
    }
    this.abort();
    this.#options.onUnanswered(unanswered, handler);
  }

  #received(bytes: Buffer): void {
    if (this.#isClosed) return;
    this.#unanswered = undefined;
    // Parts of a head and informational responses do not extend the timeout for the headers.
    if (this.#isResponding && this.#options.bodyTimeoutMs > 0) {
      this.#setDeadline(this.#options.bodyTimeoutMs);
    }
    try {
      this.#parser.parse(bytes);
    } catch (error) {
      this.destroy(error);
    }
  }

  #receivedHead(head: ResponseHead): void {
    if (head.status < 200) return;
    this.#isResponding = true;
    this.#setDeadline(this.#options.bodyTimeoutMs);
    const [, seconds] = /\btimeout=(\d+)/.exec(head.headers['keep-alive'] ?? '') ?? [];
    if (seconds !== undefined) {
      this.#keepAliveMs = Math.min(
        this.#keepAliveMs,
        Number(seconds) * 1000 - KEEP_ALIVE_MARGIN_MS,
      );
    }
    this.#handler?.onResponseStart(head);
  }

  #completed(isReusable: boolean): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#isResponding = false;
    handler?.onResponseEnd();
    if (!isReusable || this.#keepAliveMs <= 0) {
      this.#close();
      return;
    }
    this.#idle();
    if (this.#socket.writableLength > 0) setImmediate(() => this.#closeUnwritten());
  }

  /**
   * Closes the connection if the response to the last request came before the whole request was written: its rest
   * would precede the next request. TLS reports the end of a write in the next turn of the event loop, and the
   * response of a fast server can be read before that.
   */
  #closeUnwritten(): void {
    if (!this.#handler && this.#socket.writableLength > 0) this.#close();
  }

  #idle(): void {
    if (this.#isClosed) return;
    if (this.#socket.isPaused()) this.#socket.resume();
    // An idle connection must not keep the process alive.
    this.#socket.unref();
    this.#setDeadline(this.#keepAliveMs);
    this.#options.onIdle(this);
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelTimer();
    this.#socket.destroy();
    this.#options.onClosed(this);
  }

  /** @param ms 0 for no deadline */
  #setDeadline(ms: number): void {
    const { clock } = this.#options;
    this.#deadlineMs = ms === 0 ? Number.POSITIVE_INFINITY : clock.monotonic() + ms;
    // A timer that fires early is set again.
    if (this.#deadlineMs < this.#timerMs) this.#setTimer(ms);
  }

  #setTimer(ms: number): void {
    const { clock } = this.#options;
    this.#cancelTimer();
    this.#timerMs = clock.monotonic() + ms;
    this.#cancelTimer = clock.after(ms, () => {
      this.#timerMs = Number.POSITIVE_INFINITY;
      if (this.#deadlineMs === Number.POSITIVE_INFINITY) return;
      const leftMs = this.#deadlineMs - clock.monotonic();
      if (leftMs > 0) this.#setTimer(leftMs);
      else this.destroy(systemError('ERR_RESPONSE_TIMEOUT', 'the server sent no response in time'));
    });
  }
}

function connectionReset(): Error {
  return systemError('ECONNRESET', 'closed by the server before the end of the response');
}

/** Returns the text of a request. Text outside ASCII is Latin-1 in the head and UTF-8 in the body. */
function textOf(
  { method, path, headerLines, body }: WireRequest,
  host: string,
): string | Uint8Array {
  if (/[^!-\u00ff]/.test(path)) throw new TypeError('the path has a space or a control character');
  const start = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n${headerLines}`;
  const hasBody = body !== undefined || method !== 'GET';
  const head = hasBody ? `${start}content-length: ${lengthOf(body)}\r\n\r\n` : `${start}\r\n`;
  const isAscii = /^[\0-\x7f]*$/.test(head);
  if (isAscii && typeof body !== 'object') return body === undefined ? head : head + body;
  return Buffer.concat([
    Buffer.from(head, 'latin1'),
    typeof body === 'string' ? Buffer.from(body) : (body ?? Buffer.alloc(0)),
  ]);
}

function lengthOf(body: string | Uint8Array | undefined): number {
  return typeof body === 'string' ? Buffer.byteLength(body) : (body?.length ?? 0);
}

/**
 * Returns headers as lines of a request.
 *
 * @throws {TypeError} if a header is malformed; the message does not contain its value, which can be a secret
 */
export function headerLines(headers: Iterable<readonly [name: string, value: string]>): string {
  let lines = '';
  for (const [name, value] of headers) {
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name) || !/^[\t -~\u0080-\u00ff]*$/.test(value)) {
      throw new TypeError(
        `the header ${JSON.stringify(name)} has a character that HTTP does not permit`,
      );
    }
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}
