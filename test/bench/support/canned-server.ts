/**
 * Child process: an API server for one resource that sends prepared responses, so that it costs every client the same.
 * It reports that it is ready when all responses are rendered.
 *
 * Over HTTP/1.1, watches have the framing of kube-apiserver: each event is a chunk of its own. With TLS, clients choose
 * between HTTP/1.1 and HTTP/2. The parent process starts the events.
 */
import { createServer, ServerResponse } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Certificate } from '../../../src/util/x509.ts';
import { Checksum } from './checksum.ts';
import { changedBy, KINDS, LIST_VERSION, namespaceOf } from './object-bytes.ts';
import type { KindName } from './object-bytes.ts';

export interface CannedServerOptions {
  readonly kind: KindName;
  readonly objects: number;
  /** Number of events. */
  readonly events: number;
  /** `stream`: the initial state is streamed. `pages`: streams are rejected, and lists are paged. */
  readonly mode: Mode;
  /** Events per second, each with the time in the annotation `sent`; 0: as fast as the client reads. */
  readonly rate: number;
  /** Whether the events start with an error 410, after which the client lists again. */
  readonly expires: boolean;
  /** Present with TLS. */
  readonly certificate?: Certificate;
}

export type Mode = 'stream' | 'pages';

export interface FromServer {
  readonly port: number;
  /** Of the objects before and after the events. */
  readonly checksums: { readonly synced: number; readonly stormed: number };
}
export type ToServer = 'storm';

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

const options = JSON.parse(process.argv[2]!) as CannedServerOptions;
const { objects, events, mode, rate, expires, certificate } = options;
const kind = KINDS[options.kind];

/** Bytes written to a connection at once. */
const PORTION = 256 * 1024;

/** Time between groups of events with a rate. */
const TICK_MS = 2;

/** Lines of a watch, with and without the framing of HTTP/1.1. Only TLS clients can use HTTP/2. */
class Lines {
  readonly #chunked: Buffer;
  readonly #plain: Buffer | undefined;

  constructor(count: number, line: (number: number) => string) {
    const numbers = Array.from({ length: count }, (_, number) => number);
    this.#chunked = Buffer.concat(numbers.map((number) => chunk(line(number))));
    if (certificate)
      this.#plain = Buffer.concat(numbers.map((number) => Buffer.from(line(number))));
  }

  bytes(isChunked: boolean): Buffer {
    return isChunked ? this.#chunked : (this.#plain ?? Buffer.alloc(0));
  }
}

const items = Array.from({ length: objects }, (_, number) =>
  kind.json(number, firstVersion(number)),
);
const initialState = new Lines(
  mode === 'stream' ? objects : 0,
  (number) => `{"type":"ADDED","object":${items[number]}}\n`,
);
const initialEnd = new Lines(
  1,
  () =>
    `{"type":"BOOKMARK","object":{"apiVersion":"${kind.apiVersion}","kind":"${kind.kind}",` +
    `"metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"creationTimestamp":null,` +
    `"resourceVersion":"${LIST_VERSION}"}}}\n`,
);
const storm = new Lines(rate > 0 ? 0 : events, (event) => eventLine(event));
const expired = new Lines(
  1,
  () =>
    '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",' +
    '"message":"too old resource version","reason":"Expired","code":410}}\n',
);
const pages = new Map<string, string>();
const watchers = new Set<Watcher>();
let isDue = false;
let isExpired = false;

/** An open watch. */
class Watcher {
  readonly #connection: Writable;
  readonly #isChunked: boolean;

  constructor(response: Response) {
    writeHead(response, 200);
    this.#isChunked = response instanceof ServerResponse;
    if (response instanceof ServerResponse) {
      response.flushHeaders();
      // The events bypass the response, which would make one chunk of a portion.
      this.#connection = response.socket!;
    } else {
      this.#connection = response.stream;
    }
    // Clients close the connection when they have received all events.
    this.#connection.on('error', () => this.#connection.destroy());
    response.once('close', () => watchers.delete(this));
  }

  async send(lines: Lines): Promise<void> {
    const bytes = lines.bytes(this.#isChunked);
    const connection = this.#connection;
    for (let start = 0; start < bytes.length && !connection.destroyed; start += PORTION) {
      if (!connection.write(bytes.subarray(start, start + PORTION))) await drained(connection);
    }
  }

  get isOpen(): boolean {
    return !this.#connection.destroyed;
  }

  end(): void {
    watchers.delete(this);
    this.#connection.end(this.#isChunked ? '0\r\n\r\n' : undefined);
  }
}

const handler = (request: Request, response: Response) => void serve(request, response);
const server = certificate
  ? createSecureServer(
      { cert: certificate.certificatePem, key: certificate.privateKeyPem, allowHTTP1: true },
      handler,
    )
  : createServer({ noDelay: true }, handler);
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send!({ port, checksums: checksums() } satisfies FromServer);
});
process.on('message', () => {
  isDue = true;
  isExpired = false;
  // A client that lists has its state before its watch is open.
  if (watchers.size > 0) void start();
});
process.on('disconnect', () => process.exit());

async function serve(request: Request, response: Response): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (url.pathname !== kind.path) answer(response, 404, status(404, 'NotFound'));
  else if (url.searchParams.has('watch')) await watch(response, url.searchParams);
  else answer(response, 200, list(url.searchParams));
}

async function watch(response: Response, query: URLSearchParams): Promise<void> {
  const streams = query.get('sendInitialEvents') === 'true';
  if (streams && mode === 'pages') {
    answer(response, 422, status(422, 'Invalid'));
    return;
  }
  const watcher = new Watcher(response);
  if (streams) {
    await watcher.send(initialState);
    await watcher.send(initialEnd);
  }
  watchers.add(watcher);
  if (isDue) await start();
}

/** Sends the events to the open watches. */
async function start(): Promise<void> {
  if (expires && !isExpired) {
    isExpired = true;
    for (const watcher of watchers) {
      await watcher.send(expired);
      watcher.end();
    }
    return;
  }
  isDue = false;
  await Promise.all(Array.from(watchers, rate > 0 ? sendAtRate : (watcher) => watcher.send(storm)));
}

async function sendAtRate(watcher: Watcher): Promise<void> {
  const startedMs = performance.now();
  for (let event = 0; event < events && watcher.isOpen;) {
    await sleep(TICK_MS);
    const due = Math.min(events, Math.floor(((performance.now() - startedMs) * rate) / 1000));
    for (; event < due; event++) {
      const sentUs = Math.round((performance.timeOrigin + performance.now()) * 1000);
      const line = eventLine(event, `"annotations":{"sent":"${sentUs}"},`);
      await watcher.send(new Lines(1, () => line));
    }
  }
}

function eventLine(event: number, annotations?: string): string {
  const version = LIST_VERSION + 1 + event;
  const object = kind.json(changedBy(event, objects), version, annotations);
  return `{"type":"MODIFIED","object":${object}}\n`;
}

function firstVersion(number: number): number {
  return LIST_VERSION - objects + number;
}

function checksums(): FromServer['checksums'] {
  const sum = new Checksum();
  const versions = Array.from({ length: objects }, (_, number) => firstVersion(number));
  const apply = (work: 'add' | 'remove', number: number) =>
    sum[work](namespaceOf(number), kind.name(number), String(versions[number]));
  for (let number = 0; number < objects; number++) apply('add', number);
  const synced = sum.value;
  for (let event = 0; event < events; event++) {
    const number = changedBy(event, objects);
    apply('remove', number);
    versions[number] = LIST_VERSION + 1 + event;
    apply('add', number);
  }
  return { synced, stormed: sum.value };
}

function list(query: URLSearchParams): string {
  const limit = mode === 'pages' ? Number(query.get('limit') ?? 0) : 0;
  const start = Number(query.get('continue') ?? 0);
  const id = `${start}+${limit}`;
  let page = pages.get(id);
  if (page === undefined) {
    const end = limit === 0 ? objects : Math.min(start + limit, objects);
    const more = end < objects ? `"continue":"${end}","remainingItemCount":${objects - end},` : '';
    page =
      `{"apiVersion":"${kind.apiVersion}","items":[${items.slice(start, end).join(',')}],` +
      `"kind":"${kind.kind}List","metadata":{${more}"resourceVersion":"${LIST_VERSION}"}}\n`;
    pages.set(id, page);
  }
  return page;
}

function answer(response: Response, code: number, body: string): void {
  const bytes = Buffer.from(body);
  writeHead(response, code, { 'content-length': bytes.length });
  response.end(bytes);
}

function writeHead(response: Response, code: number, more: OutgoingHttpHeaders = {}): void {
  const headers = { 'content-type': 'application/json', ...more };
  // The types of the two methods have no common signature.
  if (response instanceof ServerResponse) response.writeHead(code, headers);
  else response.writeHead(code, headers);
}

function status(code: number, reason: string): string {
  const fields = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code };
  return JSON.stringify({ ...fields, message: reason });
}

function chunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}

/** Resolves when the connection accepts more data or is closed. */
function drained(connection: Writable): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      connection.off('drain', settle).off('close', settle);
      resolve();
    };
    connection.on('drain', settle).on('close', settle);
  });
}
