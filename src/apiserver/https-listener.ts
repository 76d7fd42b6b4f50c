import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
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

/** The handler's door to the network: HTTP/1.1 over TLS. */
export async function listenHttps(
  handler: HttpHandler,
  { host, port, certificatePem, privateKeyPem }: HttpsListenerOptions,
): Promise<HttpsListener> {
  const server = createServer({ cert: certificatePem, key: privateKeyPem });
  const exchanges = new Set<Promise<void>>();
  server.on('request', (incoming: IncomingMessage, outgoing: ServerResponse) => {
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
      server.closeAllConnections();
      await closed;
      await Promise.all(exchanges);
    },
  };
}

/** One exchange, from the first byte to the last. It never rejects: a fault breaks the connection. */
async function serve(
  handler: HttpHandler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  outgoing.on('close', () => gone.abort(new Error('The client closed the connection')));
  try {
    const response = await answer(handler, incoming, gone.signal);
    await send(response, outgoing, gone.signal);
  } catch {
    // The handler answers what can be answered; what it throws is a broken connection, and so is
    // whatever a socket throws.
    outgoing.destroy();
  }
}

async function answer(
  handler: HttpHandler,
  incoming: IncomingMessage,
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
  outgoing: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  outgoing.writeHead(status, headers);
  outgoing.flushHeaders();
  for await (const chunk of body) {
    if (!outgoing.write(chunk)) await once(outgoing, 'drain', { signal });
  }
  outgoing.end();
}

/** One byte more than the limit is enough for the handler to refuse it. */
async function readBody(incoming: IncomingMessage): Promise<Uint8Array> {
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
    if (value !== undefined) plain[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return plain;
}
