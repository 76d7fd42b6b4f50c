import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';
import type { ByteSink } from '../../../api/kubelet.ts';
import type { HttpHandler, HttpRequest } from '../../../util/http.ts';
import { messageOf } from '../../../util/values.ts';
import { nodeHttp } from '../../../util/node-http.ts';

/** A TCP connection to a Pod, as its client sends and receives it. */
export interface PortStreams {
  readonly received: AsyncIterable<Uint8Array>;
  readonly write: ByteSink;
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** Serves HTTP to the client of a forwarded port, until one of both closes the connection. */
export async function servePort(
  handler: HttpHandler,
  { received, write }: PortStreams,
): Promise<void> {
  const chunks = received[Symbol.asyncIterator]();
  const socket = new Duplex({
    read() {
      chunks.next().then(
        ({ done, value }) => this.push(done ? null : value),
        (error: Error) => this.destroy(error),
      );
    },
    write(chunk: Uint8Array, _encoding, done) {
      settle(write(chunk), done);
    },
  });
  const closed = new Promise<void>((resolve) => {
    socket.once('close', resolve);
  });
  socket.on('error', () => undefined);
  serverOf(handler).emit('connection', socket);
  await closed;
}

/** Calls back as a promise settles. */
function settle(written: Promise<void>, done: (error?: Error | null) => void): void {
  const succeeded = () => done();
  written.then(succeeded, done);
}

function serverOf(handler: HttpHandler): Server {
  return nodeHttp().createServer((incoming, outgoing) => {
    respond(handler, incoming, outgoing).catch((error: unknown) => {
      outgoing.statusCode = 500;
      outgoing.end(`${messageOf(error)}\n`);
    });
  });
}

async function respond(
  handler: HttpHandler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const { method = 'GET', url = '/' } = incoming;
  incoming.resume();
  const request = { method: METHODS.has(method) ? method : 'GET', path: url, headers: {} };
  const { status, headers, body } = await handler(request as HttpRequest);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const content = Buffer.concat(chunks);
  outgoing.writeHead(status, { ...headers, 'content-length': content.length });
  outgoing.end(content);
}
