import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';
import { MAX_BODY_BYTES } from './request-body.ts';
import { errorResponse } from './response.ts';
import { methodNotAllowed } from './status-error.ts';

export interface HttpsListenerOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly certificatePem: string;
  readonly privateKeyPem: string;
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

/** The handler's door to the network: HTTP/2 or HTTP/1.1 over TLS, as the client wants it. */
export async function listenHttps(
  handler: HttpHandler,
  { host, port, certificatePem, privateKeyPem }: HttpsListenerOptions,
): Promise<HttpsListener> {
  const server = createSecureServer({
    cert: certificatePem,
    key: privateKeyPem,
    allowHTTP1: true,
    settings: HTTP2_SETTINGS,
    maxSessionMemory: HTTP2_SESSION_MB,
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    // HTTP/1.1 here would not by itself, and an answer's body would wait 40 ms for news of its headers.
    socket.setNoDelay(true);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const exchanges = new Set<Promise<void>>();
  server.on('request', (incoming: Incoming, outgoing: Outgoing) => {
    const exchange = serve(handler, incoming, outgoing).finally(() => exchanges.delete(exchange));
    exchanges.add(exchange);
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
      await Promise.all(exchanges);
    },
  };
}

/** One exchange, from the first byte to the last. It never rejects: a fault breaks the connection. */
async function serve(handler: HttpHandler, incoming: Incoming, outgoing: Outgoing): Promise<void> {
  const gone = new AbortController();
  outgoing.on('close', () => gone.abort(new Error('The client closed the connection')));
  try {
    const response = await answer(handler, incoming, gone.signal);
    await send(response, outgoing, gone.signal);
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
  handler: HttpHandler,
  incoming: Incoming,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const { method = '', url = '/' } = incoming;
  if (!isMethod(method)) return errorResponse(methodNotAllowed());
  const body = await readBody(incoming);
  return handler({
    method,
    path: url,
    headers: plainHeaders(incoming.headers),
    ...(body.byteLength > 0 && { body }),
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

/** One byte more than the limit is enough for the handler to refuse it. */
async function readBody(incoming: Incoming): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Uint8Array>) {
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes > 4 * MAX_BODY_BYTES) throw new RangeError('The request body does not end');
  }
  return Buffer.concat(chunks);
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
