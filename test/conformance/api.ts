import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { credentialsOf } from '../../src/client/kube-config/credentials.ts';
import { http1Transport } from '../../src/client/transport/transport.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { HttpHandler, HttpRequest } from '../../src/util/http.ts';
import type { ControlPlane, ControlPlaneOptions } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { CRDS } from './objects.ts';

/**
 * A parsed JSON value whose properties the tests access without checks; a wrong property fails the
 * test.
 */
export type Json = ReturnType<typeof JSON.parse>;

export interface Reply {
  readonly status: number;
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly bytes: Uint8Array;
  /** Undefined if the response is not JSON, or compressed. */
  readonly body: Json;
}

export const JSON_TYPE = 'application/json';
export const MERGE = 'application/merge-patch+json';
export const JSON_PATCH = 'application/json-patch+json';
export const STRATEGIC = 'application/strategic-merge-patch+json';
export const APPLY = 'application/apply-patch+yaml';

/** Timeout of a wait; long, so that a slow machine does not cause failures. */
const DEADLINE_MS = 30_000;
const POLL_MS = 25;

/**
 * Sends HTTP requests to a control plane and returns the status, headers and parsed body.
 * It does not use the project's client, so that tests see exactly what the server sends.
 */
export class Api {
  /** Same as `ControlPlane.expireHistory`. */
  readonly expireHistory: ControlPlane['expireHistory'];
  readonly kubeconfigPath: string;
  readonly port: string;
  /** Returns the bearer token of the requests. */
  readonly token: () => Promise<string>;
  readonly #handle: HttpHandler;
  readonly #connection: () => Promise<Connection>;
  readonly #ends: (() => Promise<void>)[] = [];
  readonly #watches: Watching[] = [];

  private constructor(
    { expireHistory, kubeconfigPath, config }: ControlPlane,
    handle: HttpHandler,
    token: () => Promise<string>,
    connection: () => Promise<Connection>,
  ) {
    this.expireHistory = expireHistory;
    this.kubeconfigPath = kubeconfigPath;
    this.port = new URL(config.server).port;
    this.token = token;
    this.#handle = handle;
    this.#connection = connection;
  }

  /** Starts a control plane for one test file. */
  static async start(options?: ControlPlaneOptions): Promise<Api> {
    const controlPlane = await startControlPlane(options);
    const { config } = controlPlane;
    const credentials = credentialsOf(config);
    const transport = http1Transport({ server: config.server, tls: () => credentials.tls() });
    const api = new Api(
      controlPlane,
      async (request) =>
        transport.handle({
          ...request,
          headers: { ...(await credentials.headers()), ...request.headers },
        }),
      async () => (await credentials.headers())['authorization']?.split(' ')[1] ?? '',
      async () => {
        const { hostname: host, port } = new URL(config.server);
        const { ca, certificate: cert, key } = await credentials.tls();
        return { host, port, ca, cert, key, headers: await credentials.headers() };
      },
    );
    api.#ends.push(
      () => transport.close(),
      () => controlPlane.close(),
    );
    return api;
  }

  async close(): Promise<void> {
    for (const watching of this.#watches.splice(0)) await watching.close();
    for (const end of this.#ends.splice(0)) await end();
  }

  async send(
    method: HttpRequest['method'],
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply> {
    const response = await this.#handle({
      method,
      path,
      headers: {
        accept: JSON_TYPE,
        'user-agent': 'conformance/1',
        ...(body !== undefined && { 'content-type': JSON_TYPE }),
        ...headers,
      },
      ...(body !== undefined && {
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      }),
    });
    const bytes = await bytesOf(response.body);
    const text = new TextDecoder().decode(bytes);
    const { 'content-type': type, 'content-encoding': coding } = response.headers;
    const isJson = type?.startsWith(JSON_TYPE) && !coding && text !== '';
    return {
      status: response.status,
      headers: response.headers,
      text,
      bytes,
      body: isJson ? JSON.parse(text) : undefined,
    };
  }

  get(path: string, accept: string = JSON_TYPE): Promise<Reply> {
    return this.send('GET', path, undefined, { accept });
  }

  post(path: string, body: unknown): Promise<Reply> {
    return this.send('POST', path, body);
  }

  put(path: string, body: unknown): Promise<Reply> {
    return this.send('PUT', path, body);
  }

  patch(path: string, body: unknown, type: string = MERGE): Promise<Reply> {
    return this.send('PATCH', path, body, { 'content-type': type });
  }

  /** Sends a server-side apply with the field manager `manager`. */
  apply(path: string, manager: string, body: unknown, query: string = ''): Promise<Reply> {
    return this.patch(`${path}?fieldManager=${manager}${query}`, body, APPLY);
  }

  delete(path: string, options?: unknown): Promise<Reply> {
    return this.send('DELETE', path, options);
  }

  /** Returns the object in the response; fails if the request failed. */
  async made(reply: Promise<Reply>): Promise<Json> {
    const { status, text, body } = await reply;
    assert.ok(status < 300, `${status}: ${text}`);
    return body;
  }

  /** Creates a namespace for one test. */
  async namespace(): Promise<string> {
    const { metadata } = await this.made(
      this.post('/api/v1/namespaces', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { generateName: 'case-' },
      }),
    );
    return metadata.name;
  }

  /** Creates a CRD if it does not exist, and waits until its objects are served. */
  async install(crd: Json): Promise<void> {
    const path = `${CRDS}/${crd.metadata.name}`;
    const { status, text } = await this.post(CRDS, crd);
    assert.ok(status === 201 || status === 409, text);
    await this.until(`${crd.metadata.name} is established`, async () =>
      (await this.get(path)).body.status?.conditions?.some(
        ({ type, status }: Json) => type === 'Established' && status === 'True',
      ),
    );
    // The server sets the condition shortly before it serves the paths.
    const { group, names, versions } = crd.spec;
    for (const { name, served } of versions) {
      if (!served) continue;
      await this.until(`${names.plural} are served`, async () => {
        const { status } = await this.get(`/apis/${group}/${name}/${names.plural}`);
        return status === 200;
      });
    }
  }

  /** Polls until `condition` returns a truthy value, and returns it. */
  async until<T>(what: string, condition: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + DEADLINE_MS;
    for (;;) {
      const value = await condition();
      if (value) return value;
      if (performance.now() > deadline) throw new Error(`Not within ${DEADLINE_MS} ms: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Sends a request over a new HTTP/1.1 connection, which the server may take over for another protocol. */
  async upgrade(path: string, headers: Record<string, string>, method = 'GET'): Promise<Upgraded> {
    const { headers: credentials, ...connection } = await this.#connection();
    const sent = request({
      ...connection,
      path,
      method,
      headers: { ...credentials, connection: 'Upgrade', ...headers },
      agent: false,
    });
    sent.end();
    const [response, socket, head] = (await Promise.race([
      once(sent, 'response'),
      once(sent, 'upgrade'),
    ])) as [IncomingMessage, Duplex?, Uint8Array?];
    const { statusCode: status = 0, headers: received } = response;
    if (!socket)
      return { status, headers: received, text: Buffer.from(await bytesOf(response)).toString() };
    this.#ends.unshift(async () => void socket.destroy());
    socket.unshift(head);
    return { status, headers: received, socket, text: '' };
  }

  /** Opens a watch, by a legacy path or with `watch=true`; closing the control plane closes it. */
  async watch(path: string, accept: string = JSON_TYPE, encoding?: string): Promise<Watching> {
    const stop = new AbortController();
    const more = path.includes('/watch/') ? '' : `${path.includes('?') ? '&' : '?'}watch=true`;
    const response = await this.#handle({
      method: 'GET',
      path: `${path}${more}`,
      headers: {
        accept,
        'user-agent': 'conformance/1',
        ...(encoding !== undefined && { 'accept-encoding': encoding }),
      },
      signal: stop.signal,
    });
    const { status, headers, body } = response;
    const isGzip = headers['content-encoding'] === 'gzip';
    const text = isGzip ? inflated(body) : body;
    const watching = new Watching(status, headers, text, stop);
    this.#watches.push(watching);
    return watching;
  }
}

/** Ends the data that a deflate stream has flushed. */
const FLUSHED = Buffer.from([0, 0, 0xff, 0xff]);

/** Reads flushed data only: a reader in Go returns the last block of a gzip member when the next member starts. */
function inflated(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const flushed = async function* () {
    let held = Buffer.alloc(0);
    for await (const chunk of body) {
      held = Buffer.concat([held, chunk]);
      const end = held.lastIndexOf(FLUSHED) + FLUSHED.length;
      if (end < FLUSHED.length) continue;
      yield held.subarray(0, end);
      held = held.subarray(end);
    }
  };
  // The end of the test breaks the stream.
  return pipeline(flushed, createGunzip(), () => undefined);
}

/** How a test connects without the transport of the other requests. */
interface Connection {
  readonly host: string;
  readonly port: string;
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** The response to a request with an `Upgrade` header. */
export interface Upgraded {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** The connection after a response with status 101. */
  readonly socket?: Duplex;
  /** The body of any other response. */
  readonly text: string;
}

/** Reads the events of a watch. */
export class Watching {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly #stop: AbortController;
  readonly #reading: Promise<void>;
  readonly #events: Json[] = [];
  #ended = false;
  #arrival = new Deferred();

  constructor(
    status: number,
    headers: Readonly<Record<string, string>>,
    body: AsyncIterable<Uint8Array>,
    stop: AbortController,
  ) {
    this.status = status;
    this.headers = headers;
    this.#stop = stop;
    this.#reading = this.#read(body);
  }

  /** Returns the next event; fails if the watch ends or times out. */
  async next(): Promise<Json> {
    const event = await this.#nextOrEnd();
    assert.ok(event, 'the watch ended before the expected event');
    return event;
  }

  /** Returns the next `count` events in short form: `ADDED a`, `BOOKMARK`. */
  async nextInShort(count: number): Promise<string[]> {
    const events: string[] = [];
    while (events.length < count) events.push(inShort(await this.next()));
    return events;
  }

  /** Returns all events until the server ends the watch. */
  async rest(): Promise<Json[]> {
    const events: Json[] = [];
    for (let event = await this.#nextOrEnd(); event; event = await this.#nextOrEnd()) {
      events.push(event);
    }
    return events;
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the test is over'));
    await this.#reading;
  }

  async #nextOrEnd(): Promise<Json> {
    const deadline = setTimeout(
      () => this.#arrival.reject(new Error('no event within the timeout')),
      DEADLINE_MS,
    );
    try {
      while (this.#events.length === 0 && !this.#ended) {
        await this.#arrival.promise;
        this.#arrival = new Deferred();
      }
    } finally {
      clearTimeout(deadline);
    }
    return this.#events.shift();
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    try {
      for await (const chunk of body) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        this.#events.push(...lines.map((line) => JSON.parse(line)));
        this.#arrival.resolve();
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    } finally {
      if (rest !== '') this.#events.push(JSON.parse(rest));
      this.#ended = true;
      this.#arrival.resolve();
    }
  }
}

export interface ExpectedError {
  readonly code: number;
  /** Undefined if the server sets no reason. */
  readonly reason?: string;
  readonly message: string | RegExp;
  /** Undefined to skip the comparison, for example if `causes` are compared. */
  readonly details?: Json;
  /** Field and message of each cause. */
  readonly causes?: readonly (readonly [field: string, message: string])[];
}

/** Compares an error response with the expected one, including the exact message. */
export function assertRejected(reply: Reply, expected: ExpectedError): void {
  const { code, reason, message, details, causes } = expected;
  assert.equal(reply.status, code, reply.text);
  const { body } = reply;
  assert.equal(reply.headers['content-type'], JSON_TYPE);
  assert.deepEqual(
    [body.kind, body.apiVersion, body.metadata, body.status, body.code],
    ['Status', 'v1', {}, 'Failure', code],
  );
  assert.equal(body.reason, reason);
  if (typeof message === 'string') assert.equal(body.message, message);
  else assert.match(body.message, message);
  if (details !== undefined) assert.deepEqual(body.details, details);
  if (causes !== undefined) {
    const actual = body.details?.causes?.map((cause: Json) => [cause.field, cause.message]);
    assert.deepEqual(actual, causes);
  }
}

export function namesIn(list: Json): string[] {
  return list.items.map(({ metadata }: Json) => metadata.name);
}

function inShort({ type, object }: Json): string {
  return type === 'BOOKMARK' ? type : `${type} ${object.metadata?.name ?? object.reason}`;
}

async function bytesOf(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}
