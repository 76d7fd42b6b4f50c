import type { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { HttpRequest, HttpResponse } from '../../util/http.ts';
import { ServerConnections } from '../../util/server-connections.ts';
import { ConnectionReset } from './faults.ts';
import { IncompleteBodies } from './incomplete-bodies.ts';
import { messageOf } from '../../util/values.ts';
import type { IncomingRequest } from '../request/request-body.ts';
import { MAX_BODY_BYTES, bodyTooLarge } from '../request/request-body.ts';
import type { ServedResponse } from './response.ts';
import { CompleteBody } from '../../util/complete-body.ts';
import { errorResponse } from './response-encoding.ts';
import { methodNotAllowed } from '../objects/status-error.ts';
import { isSpdyRequest, serveConnection } from './streams/serve-connection.ts';
import { acceptHandshake, sendMessages } from './websocket.ts';
import { isWebSocketRequest } from './websocket-request.ts';
import { nodeHttp, nodeHttp2 } from '../../util/node-http.ts';

export interface HttpsListenerOptions {
  readonly host: string;
  /** Port; 0 selects a free port. */
  readonly port: number;
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  /** Certificates of the authorities of client certificates, which clients select by them. */
  readonly authoritiesPem: string;
  /**
   * Maximum number of open connections. At the limit, a new connection replaces an idle one.
   * @default 1000
   */
  readonly maxConnections?: number;
  /**
   * Time in which an HTTP/2 client may continue to send a body after the response, in milliseconds.
   * @default 1000
   */
  readonly discardMs?: number;
  /**
   * Maximum size of all bodies that are being received, in bytes. At the limit, the slowest are given up.
   * @default 256 MiB
   */
  readonly maxReceivedBytes?: number;
}

export interface HttpsListener {
  readonly port: number;
  /** Closes all connections and releases the port. */
  close(): Promise<void>;
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

type Incoming = IncomingMessage | Http2ServerRequest;
type Outgoing = ServerResponse | Http2ServerResponse;

/** Limits of kube-apiserver: streams of a connection, and unacknowledged bytes of a body. */
const HTTP2_SETTINGS = { maxConcurrentStreams: 100, initialWindowSize: 256 * 1024 };

/** Session memory for large lists. With Node's default of 10 MB, one large list blocks other streams. */
const HTTP2_SESSION_MB = 1024;

/** Like `HttpHandler`, for requests before their body is received, with the certificate of the client. */
export type IncomingHandler = (
  request: IncomingRequest,
  certificate: X509Certificate | undefined,
) => Promise<ServedResponse>;

/** Timeouts of kube-apiserver, in milliseconds. */
const IDLE_TIMEOUT_MS = 90_000;
const TIMEOUTS = {
  handshakeTimeout: 10_000,
  headersTimeout: 32_000,
  requestTimeout: 60_000,
  keepAliveTimeout: IDLE_TIMEOUT_MS,
} as const;

/** Maximum size of a body after the response, in bytes. Beyond it, the connection is closed. */
const MAX_UNREAD_BYTES = 4 * MAX_BODY_BYTES;

/** Serves the handler over TLS: HTTP/2 or HTTP/1.1, whichever the client prefers. */
export async function listenHttps(
  handler: IncomingHandler,
  options: HttpsListenerOptions,
): Promise<HttpsListener> {
  const { host, port, certificatePem, privateKeyPem, authoritiesPem } = options;
  const { maxConnections = 1000, discardMs = 1000, maxReceivedBytes = 256 * 1024 ** 2 } = options;
  const bodies = new IncompleteBodies<Incoming>({ maxBytes: maxReceivedBytes, giveUp });
  const server = nodeHttp2().createSecureServer({
    cert: certificatePem,
    key: privateKeyPem,
    allowHTTP1: true,
    ca: authoritiesPem,
    requestCert: true,
    // A client without a valid certificate can have a token, and gets a response in any case.
    rejectUnauthorized: false,
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
  const track = (exchange: Promise<void>) => {
    exchanges.add(exchange);
    void exchange.then(() => exchanges.delete(exchange));
  };
  const accept = (incoming: Incoming, outgoing: Outgoing, isExpecting: boolean) => {
    if (hasSeveralHosts(incoming)) return rejectRequest(outgoing);
    track(serve(handler, incoming, outgoing, { isExpecting, discardMs, bodies }));
  };
  server.on('request', (incoming, outgoing) => accept(incoming, outgoing, false));
  server.on('checkContinue', (incoming, outgoing) => accept(incoming, outgoing, true));
  server.on('upgrade', (incoming: IncomingMessage, socket: Socket, head: Uint8Array) => {
    const { method, url = '/', headers } = incoming;
    if (!(method === 'GET' && isWebSocketRequest(headers)) && !isSpdyRequest(url, headers)) {
      replay(incoming, socket, head);
      server.emit('secureConnection', socket);
      return;
    }
    connections.hold(socket);
    track(serveUpgrade(handler, incoming, socket, head));
  });
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

/** Whether a request names several hosts. Proxies and servers could choose different ones. */
function hasSeveralHosts({ rawHeaders }: Incoming): boolean {
  return rawHeaders.filter((name, at) => at % 2 === 0 && HOST.test(name)).length > 1;
}

const HOST = /^host$/i;

/** Answers a malformed request as Go's server does. */
function rejectRequest(outgoing: Outgoing): void {
  outgoing.statusCode = 400;
  outgoing.setHeader('content-type', 'text/plain; charset=utf-8');
  if (!('stream' in outgoing)) outgoing.shouldKeepAlive = false;
  outgoing.end('400 Bad Request');
}

interface ExchangeOptions {
  /** Whether the client waits for `100 Continue` before it sends the body. */
  readonly isExpecting: boolean;
  readonly discardMs: number;
  readonly bodies: IncompleteBodies<Incoming>;
}

/** Handles one request and its response. Never rejects: an error breaks the connection. */
async function serve(
  handler: IncomingHandler,
  incoming: Incoming,
  outgoing: Outgoing,
  { isExpecting, discardMs, bodies }: ExchangeOptions,
): Promise<void> {
  const gone = new AbortController();
  let isSent = false;
  outgoing.on('close', () => {
    if (!isSent) gone.abort(new Error('The client closed the connection'));
  });
  let isAwaited = isExpecting;
  const receiveBody = () => {
    if (isAwaited) outgoing.writeContinue();
    isAwaited = false;
    return readBody(incoming, bodies);
  };
  try {
    const response = await answer(handler, incoming, receiveBody, gone.signal);
    if ('stream' in outgoing) discardStream(incoming, outgoing, discardMs);
    else if (isAwaited) outgoing.shouldKeepAlive = false;
    else if (!incoming.complete) discardRest(incoming, outgoing);
    await send(response, outgoing, gone.signal);
    isSent = true;
    // kube-apiserver closes HTTP/2 connections of unauthenticated clients.
    const isLast = response.status === 401 || response.headers['connection'] === 'close';
    if (isLast && 'stream' in outgoing) outgoing.stream.session?.close();
  } catch {
    // The handler responds to all other failures. If it or a socket throws, the connection is broken.
    abandon(outgoing);
  }
}

const UPGRADE_HEADERS: ReadonlySet<string> = new Set(['upgrade', 'connection']);

/**
 * Puts a request back in front of the HTTP parser, without its `Upgrade` header: a kube-apiserver ignores
 * other upgrades, such as to cleartext HTTP/2, but Node.js ends the request before its body. The
 * connection closes after the response, because each replay adds listeners to it.
 */
function replay({ method, url, rawHeaders }: IncomingMessage, socket: Socket, head: Uint8Array) {
  const lines = [`${method} ${url} HTTP/1.1`, 'connection: close'];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (!UPGRADE_HEADERS.has(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[at + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
}

/**
 * Like `serve`, for a client that asks for a WebSocket or SPDY. Watches and logs are sent as messages, and connections to
 * Pods have their own protocols. Other responses are plain ones, after which the connection is closed.
 */
async function serveUpgrade(
  handler: IncomingHandler,
  incoming: IncomingMessage,
  socket: Socket,
  head: Uint8Array,
): Promise<void> {
  const gone = new AbortController();
  const onClose = () => gone.abort(new Error('The client closed the connection'));
  socket.on('close', onClose);
  socket.on('error', onClose);
  // Frames wait in the socket until the handshake is accepted.
  socket.pause();
  const outgoing = new (nodeHttp().ServerResponse)(incoming);
  outgoing.shouldKeepAlive = false;
  outgoing.assignSocket(socket);
  outgoing.once('finish', () => socket.destroySoon());
  try {
    const response = await answer(handler, incoming, emptyRequestBody, gone.signal);
    const { body, messages: format, connection: served } = response;
    if (served) {
      const headers = plainHeaders(incoming.headers);
      outgoing.detachSocket(socket);
      const request = { headers, socket, head, signal: gone.signal };
      const refusal = await serveConnection(served.connection, request).finally(served.onEnd);
      if (!refusal) return;
      outgoing.assignSocket(socket);
      outgoing.writeHead(refusal.status, refusal.headers).end(refusal.text);
      return;
    }
    if (!format) {
      await send(response, outgoing, gone.signal);
      return;
    }
    const handshake = acceptHandshake(plainHeaders(incoming.headers), format);
    if ('status' in handshake) {
      await body[Symbol.asyncIterator]().return?.();
      outgoing.writeHead(handshake.status, handshake.headers).end(handshake.text);
      return;
    }
    outgoing.detachSocket(socket);
    const { signal } = gone;
    await sendMessages(socket, head, handshake, { body, format, signal, onClose });
  } catch {
    socket.destroy();
  }
}

/** The body of a request that changes the protocol: what follows its headers belongs to the new one. */
async function emptyRequestBody(): Promise<Uint8Array> {
  return new Uint8Array();
}

/** Breaks a response with an error. A stream closed without an error looks complete to the client. */
function abandon(outgoing: Outgoing): void {
  if ('stream' in outgoing) outgoing.stream.destroy(new Error('The answer is not complete'));
  else outgoing.destroy();
}

async function answer(
  handler: IncomingHandler,
  incoming: Incoming,
  receiveBody: () => Promise<Uint8Array>,
  signal: AbortSignal,
): Promise<ServedResponse> {
  const { url = '/' } = incoming;
  const isHead = incoming.method === 'HEAD';
  const method = isHead ? 'GET' : (incoming.method ?? '');
  if (!isMethod(method)) return errorResponse(methodNotAllowed(), undefined);
  const request: IncomingRequest = {
    method,
    isHead,
    path: url,
    headers: plainHeaders(incoming.headers),
    receiveBody,
    signal,
  };
  const response = await handler(request, certificateOf(incoming));
  if (!isHead) return response;
  await response.body[Symbol.asyncIterator]().return?.();
  return { ...response, body: emptyBody() };
}

/** Certificates of connections: each call would create another object. */
const certificates = new WeakMap<object, X509Certificate | undefined>();

/** Returns the certificate with which the client connected. */
function certificateOf(incoming: Incoming): X509Certificate | undefined {
  // The socket of an HTTP/2 request is a new proxy of its connection.
  const connection = ('stream' in incoming && incoming.stream.session) || incoming.socket;
  if (!certificates.has(connection)) {
    const { socket } = incoming;
    const isTls = 'getPeerX509Certificate' in socket;
    certificates.set(connection, isTls ? socket.getPeerX509Certificate() : undefined);
  }
  return certificates.get(connection);
}

async function* emptyBody(): AsyncGenerator<Uint8Array, void, undefined> {}

async function send(
  { status, headers: { connection: _connection, ...headers }, body }: HttpResponse,
  outgoing: Outgoing,
  signal: AbortSignal,
): Promise<void> {
  const sink: Writable = outgoing;
  const writeHead = (all: Readonly<Record<string, string>>) => {
    if ('stream' in outgoing) outgoing.writeHead(status, all);
    else outgoing.writeHead(status, all);
  };
  const finish = (content: string | Uint8Array | undefined) => {
    const length = content && { 'content-length': String(Buffer.byteLength(content)) };
    writeHead({ ...headers, ...length });
    sink.end(content);
  };
  if (body instanceof CompleteBody) {
    finish(body.content);
    return;
  }
  let first: Uint8Array | undefined;
  const start = () => {
    writeHead(headers);
    if (first) sink.write(first);
    else if (!('stream' in outgoing)) outgoing.flushHeaders();
  };
  // The headers of a watch are sent before its first event. A body that is complete before is sent with its
  // headers in one write, which costs a third less CPU for a small object.
  const starting = setImmediate(start);
  try {
    for await (const chunk of body) {
      if (!outgoing.headersSent) {
        if (!first) {
          first = chunk;
          continue;
        }
        clearImmediate(starting);
        start();
      }
      if (!sink.write(chunk)) await once(sink, 'drain', { signal });
    }
    if (outgoing.headersSent) sink.end();
    else finish(first);
  } finally {
    clearImmediate(starting);
  }
}

/** Ends a request whose body is given up. */
function giveUp(incoming: Incoming): void {
  if ('stream' in incoming) incoming.stream.close(nodeHttp2().constants.NGHTTP2_ENHANCE_YOUR_CALM);
  else incoming.destroy();
}

/**
 * Receives a complete body.
 *
 * @throws {StatusError} 413 as soon as the body is known to be too large
 * @throws {ConnectionReset} if the client stops sending
 */
async function readBody(
  incoming: Incoming,
  bodies: IncompleteBodies<Incoming>,
): Promise<Uint8Array> {
  if (Number(incoming.headers['content-length']) > MAX_BODY_BYTES) throw bodyTooLarge();
  // Most bodies arrive with their headers.
  if (!('stream' in incoming) && incoming.complete && incoming.readableLength <= MAX_BODY_BYTES) {
    return (incoming.read() as Buffer | null) ?? new Uint8Array();
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Node.js limits the time of HTTP/1.1 requests itself.
  if ('stream' in incoming) {
    incoming.stream.setTimeout(TIMEOUTS.requestTimeout, () => incoming.stream.destroy());
  }
  try {
    // The response uses the same connection, which must not close at the end of the loop.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      bytes += chunk.byteLength;
      if (bytes > MAX_BODY_BYTES) break;
      chunks.push(chunk);
      bodies.add(incoming, chunk.byteLength);
    }
  } catch (cause) {
    throw new ConnectionReset(messageOf(cause));
  } finally {
    bodies.delete(incoming);
  }
  if ('stream' in incoming) incoming.stream.setTimeout(0);
  if (bytes > MAX_BODY_BYTES) throw bodyTooLarge();
  return Buffer.concat(chunks);
}

/**
 * Reads and discards the rest of a body. If the server closed the connection at once, the client would
 * get an error instead of the response.
 */
function discardRest(incoming: Incoming, outgoing: ServerResponse): void {
  const isLast = !outgoing.shouldKeepAlive;
  outgoing.shouldKeepAlive = true;
  // Not earlier: when the response is sent, Node.js removes all listeners.
  outgoing.once('finish', () => {
    discard(incoming, outgoing);
    if (isLast) incoming.once('end', () => incoming.socket.end());
  });
}

/** Does the same for an HTTP/2 stream, which is closed if its client continues to send. */
function discardStream(incoming: Incoming, outgoing: Http2ServerResponse, discardMs: number): void {
  const { stream } = outgoing;
  if (incoming.complete) return;
  discard(incoming, outgoing);
  if (stream.endAfterHeaders) return;
  stream.once('finish', () => {
    const timer = setTimeout(() => stream.close(nodeHttp2().constants.NGHTTP2_NO_ERROR), discardMs);
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
    // Other pseudo headers of HTTP/2 repeat the method and the path.
    const isHost = name === ':authority';
    if (value === undefined || (name.startsWith(':') && !isHost)) continue;
    plain[isHost ? 'host' : name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return plain;
}
