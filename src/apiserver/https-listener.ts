import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { constants, createSecureServer } from 'node:http2';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Writable } from 'node:stream';
import type { HttpRequest, HttpResponse } from '../util/http.ts';
import { ServerConnections } from '../util/server-connections.ts';
import { ConnectionReset } from './faults.ts';
import { messageOf } from '../util/values.ts';
import type { IncomingRequest } from './request-body.ts';
import { MAX_BODY_BYTES, bodyTooLarge } from './request-body.ts';
import { errorResponse } from './response.ts';
import { methodNotAllowed } from './status-error.ts';

export interface HttpsListenerOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  /**
   * Open connections. At the limit, a new connection takes the place of one that is idle.
   * @default 1000
   */
  readonly maxConnections?: number;
  /**
   * How long an HTTP/2 client may go on sending a body after the answer, in milliseconds.
   * @default 1000
   */
  readonly discardMs?: number;
}

export interface HttpsListener {
  readonly port: number;
  /** Breaks every connection and gives the port back. */
  close(): Promise<void>;
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

type Incoming = IncomingMessage | Http2ServerRequest;
type Outgoing = ServerResponse | Http2ServerResponse;

/** As a kube-apiserver sets them: streams on a connection, and bytes of a body under way. */
const HTTP2_SETTINGS = { maxConcurrentStreams: 100, initialWindowSize: 256 * 1024 };

/** Lists are answered in one piece: with Node's 10 MB, a large one would refuse its neighbours. */
const HTTP2_SESSION_MB = 1024;

/** Like `HttpHandler`, for requests whose body has not been received yet. */
type IncomingHandler = (request: IncomingRequest) => Promise<HttpResponse>;

/** As a kube-apiserver sets them, in milliseconds. */
const IDLE_TIMEOUT_MS = 90_000;
const TIMEOUTS = {
  handshakeTimeout: 10_000,
  headersTimeout: 32_000,
  requestTimeout: 60_000,
  keepAliveTimeout: IDLE_TIMEOUT_MS,
} as const;

/** What a client may still send of a body after the answer, in bytes: then its connection is closed. */
const MAX_UNREAD_BYTES = 4 * MAX_BODY_BYTES;

/** Serves the handler over TLS: HTTP/2 or HTTP/1.1, whichever the client prefers. */
export async function listenHttps(
  handler: IncomingHandler,
  options: HttpsListenerOptions,
): Promise<HttpsListener> {
  const { host, port, certificatePem, privateKeyPem } = options;
  const { maxConnections = 1000, discardMs = 1000 } = options;
  const server = createSecureServer({
    cert: certificatePem,
    key: privateKeyPem,
    allowHTTP1: true,
    settings: HTTP2_SETTINGS,
    maxSessionMemory: HTTP2_SESSION_MB,
    ...TIMEOUTS,
  });
  const connections = new ServerConnections(server, {
    maxConnections,
    firstRequestMs: TIMEOUTS.headersTimeout,
    idleMs: IDLE_TIMEOUT_MS,
  });
  const exchanges = new Set<Promise<void>>();
  const accept = (incoming: Incoming, outgoing: Outgoing, isExpecting: boolean) => {
    const exchange = serve(handler, incoming, outgoing, { isExpecting, discardMs }).finally(() =>
      exchanges.delete(exchange),
    );
    exchanges.add(exchange);
  };
  server.on('request', (incoming, outgoing) => accept(incoming, outgoing, false));
  server.on('checkContinue', (incoming, outgoing) => accept(incoming, outgoing, true));
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      connections.destroy();
      await closed;
      await Promise.all(exchanges);
    },
  };
}

interface ExchangeOptions {
  /** The client sends the body only after it has been told to. */
  readonly isExpecting: boolean;
  readonly discardMs: number;
}

/** One exchange, from the first byte to the last. It never rejects: an error breaks the connection. */
async function serve(
  handler: IncomingHandler,
  incoming: Incoming,
  outgoing: Outgoing,
  { isExpecting, discardMs }: ExchangeOptions,
): Promise<void> {
  const gone = new AbortController();
  outgoing.on('close', () => gone.abort(new Error('The client closed the connection')));
  let isAwaited = isExpecting;
  const receiveBody = () => {
    if (isAwaited) outgoing.writeContinue();
    isAwaited = false;
    return readBody(incoming);
  };
  try {
    const response = await answer(handler, incoming, receiveBody, gone.signal);
    if ('stream' in outgoing) discardStream(incoming, outgoing, discardMs);
    else if (isAwaited) outgoing.shouldKeepAlive = false;
    else if (!incoming.complete) discardRest(incoming, outgoing);
    await send(response, outgoing, gone.signal);
    // As a kube-apiserver does with clients that are not authenticated.
    if (response.status === 401 && 'stream' in outgoing) outgoing.stream.session?.close();
  } catch {
    // The handler answers what can be answered; what it throws is a broken connection, and so is
    // whatever a socket throws.
    abandon(outgoing);
  }
}

/** Lets the client see that the answer is not whole: a stream that is closed without error ends well. */
function abandon(outgoing: Outgoing): void {
  if ('stream' in outgoing) outgoing.stream.destroy(new Error('The answer is not complete'));
  else outgoing.destroy();
}

async function answer(
  handler: IncomingHandler,
  incoming: Incoming,
  receiveBody: () => Promise<Uint8Array>,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const { method = '', url = '/' } = incoming;
  if (!isMethod(method)) return errorResponse(methodNotAllowed());
  return handler({
    method,
    path: url,
    headers: plainHeaders(incoming.headers),
    receiveBody,
    signal,
  });
}

async function send(
  { status, headers, body }: HttpResponse,
  outgoing: Outgoing,
  signal: AbortSignal,
): Promise<void> {
  if ('stream' in outgoing) outgoing.writeHead(status, headers);
  else outgoing.writeHead(status, headers).flushHeaders();
  const sink: Writable = outgoing;
  for await (const chunk of body) {
    if (!sink.write(chunk)) await once(sink, 'drain', { signal });
  }
  sink.end();
}

/**
 * Receives the body as a whole.
 *
 * @throws {StatusError} 413 as soon as it is known to be too large
 * @throws {ConnectionReset} if the client stops sending it
 */
async function readBody(incoming: Incoming): Promise<Uint8Array> {
  if (Number(incoming.headers['content-length']) > MAX_BODY_BYTES) throw bodyTooLarge();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Node.js limits the time of HTTP/1.1 requests by itself.
  if ('stream' in incoming) {
    incoming.stream.setTimeout(TIMEOUTS.requestTimeout, () => incoming.stream.destroy());
  }
  try {
    // The answer goes out over the same connection, so that must not end with the loop.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      bytes += chunk.byteLength;
      if (bytes > MAX_BODY_BYTES) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    throw new ConnectionReset(messageOf(cause));
  }
  if ('stream' in incoming) incoming.stream.setTimeout(0);
  if (bytes > MAX_BODY_BYTES) throw bodyTooLarge();
  return Buffer.concat(chunks);
}

/**
 * Reads the rest of a body, and discards it: if the server closed the connection at once, the client
 * would get an error instead of the answer.
 */
function discardRest(incoming: Incoming, outgoing: ServerResponse): void {
  const isLast = !outgoing.shouldKeepAlive;
  outgoing.shouldKeepAlive = true;
  // Not before: when the answer is sent, Node.js removes all listeners, to read the rest by itself.
  outgoing.once('finish', () => {
    discard(incoming, outgoing);
    if (isLast) incoming.once('end', () => incoming.socket.end());
  });
}

/** The same for a stream, which is closed if its client goes on sending. */
function discardStream(incoming: Incoming, outgoing: Http2ServerResponse, discardMs: number): void {
  const { stream } = outgoing;
  if (incoming.complete) return;
  discard(incoming, outgoing);
  if (stream.endAfterHeaders) return;
  stream.once('finish', () => {
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), discardMs);
    stream.once('close', () => clearTimeout(timer));
  });
}

function discard(incoming: Incoming, outgoing: Outgoing): void {
  let bytes = 0;
  incoming.on('data', (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    if (bytes > MAX_UNREAD_BYTES) abandon(outgoing);
  });
}

function isMethod(method: string): method is HttpRequest['method'] {
  return METHODS.has(method);
}

function plainHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    // Pseudo headers of HTTP/2 say what method and path say.
    if (value === undefined || name.startsWith(':')) continue;
    plain[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return plain;
}
