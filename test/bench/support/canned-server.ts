/**
 * Child process: an API server for one resource that sends prepared responses, so that it costs every
 * client the same. It reports that it is ready when all responses are rendered.
 *
 * Watches have the framing of kube-apiserver: each event is a chunk of its own. The parent process
 * starts a storm.
 */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { changedBy, fooJson, FOOS, LIST_VERSION } from './foo-bytes.ts';

export interface CannedServerOptions {
  readonly objects: number;
  /** Number of events in a storm. */
  readonly events: number;
  /** `stream`: the initial state is streamed. `pages`: streams are rejected, and lists are paged. */
  readonly mode: Mode;
}

export type Mode = 'stream' | 'pages';

export type FromServer = { readonly port: number };
export type ToServer = 'storm';

const { objects, events, mode } = JSON.parse(process.argv[2]!) as CannedServerOptions;

/** Bytes written to a socket at once. */
const PORTION = 256 * 1024;

const items = Array.from({ length: objects }, (_, number) =>
  fooJson(number, LIST_VERSION - objects + number),
);
const initialState = rendered(objects, (number) => `{"type":"ADDED","object":${items[number]!}}\n`);
const initialEnd = chunk(
  `{"type":"BOOKMARK","object":{"apiVersion":"${FOOS.group}/${FOOS.version}","kind":"${FOOS.kind}",` +
    `"metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"creationTimestamp":null,` +
    `"resourceVersion":"${LIST_VERSION}"}}}\n`,
);
const storm = rendered(
  events,
  (event) =>
    `{"type":"MODIFIED","object":${fooJson(changedBy(event, objects), LIST_VERSION + 1 + event)}}\n`,
);
const pages = new Map<string, Buffer>();
const watchers = new Set<Socket>();
let stormDue = false;

const server = createServer({ noDelay: true }, (socket) => void serve(socket));
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send!({ port } satisfies FromServer);
});
process.on('message', () => {
  // A client that lists has its state before its watch is open.
  if (watchers.size === 0) stormDue = true;
  for (const socket of watchers) void send(socket, storm);
});
process.on('disconnect', () => process.exit());

/** Serves one connection. Requests are GETs without a body and without pipelining. */
async function serve(socket: Socket): Promise<void> {
  // Clients close the connection when they have received all events.
  socket.on('error', () => socket.destroy());
  socket.on('close', () => watchers.delete(socket));
  let head = '';
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    head += bytes.toString('latin1');
    if (!head.endsWith('\r\n\r\n')) continue;
    const url = new URL(head.split(' ', 2)[1]!, 'http://localhost');
    head = '';
    if (url.pathname !== FOOS.path) answer(socket, 404, status(404, 'NotFound'));
    else if (url.searchParams.has('watch')) await watch(socket, url.searchParams);
    else await send(socket, list(url.searchParams));
  }
}

async function watch(socket: Socket, query: URLSearchParams): Promise<void> {
  const streams = query.get('sendInitialEvents') === 'true';
  if (streams && mode === 'pages') {
    answer(socket, 422, status(422, 'Invalid'));
    return;
  }
  socket.write(
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
  );
  if (streams) {
    await send(socket, initialState);
    socket.write(initialEnd);
  }
  watchers.add(socket);
  if (!stormDue) return;
  stormDue = false;
  await send(socket, storm);
}

function list(query: URLSearchParams): Buffer {
  const limit = mode === 'pages' ? Number(query.get('limit') ?? 0) : 0;
  const start = Number(query.get('continue') ?? 0);
  const id = `${start}+${limit}`;
  let page = pages.get(id);
  if (!page) {
    const end = limit === 0 ? objects : Math.min(start + limit, objects);
    const more = end < objects ? `"continue":"${end}","remainingItemCount":${objects - end},` : '';
    const body =
      `{"apiVersion":"${FOOS.group}/${FOOS.version}","items":[${items.slice(start, end).join(',')}],` +
      `"kind":"${FOOS.kind}List","metadata":{${more}"resourceVersion":"${LIST_VERSION}"}}\n`;
    page = response(200, body);
    pages.set(id, page);
  }
  return page;
}

function answer(socket: Socket, code: number, body: string): void {
  socket.write(response(code, body));
}

function response(code: number, body: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 ${code} X\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function status(code: number, reason: string): string {
  return JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    reason,
    code,
    message: reason,
  });
}

function chunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}

function rendered(count: number, line: (number: number) => string): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, number) => chunk(line(number))));
}

async function send(socket: Socket, bytes: Buffer): Promise<void> {
  for (let start = 0; start < bytes.length && !socket.destroyed; start += PORTION) {
    if (!socket.write(bytes.subarray(start, start + PORTION))) await drained(socket);
  }
}

/** Resolves when the socket accepts more data or is closed. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      socket.off('drain', settle).off('close', settle);
      resolve();
    };
    socket.on('drain', settle).on('close', settle);
  });
}
