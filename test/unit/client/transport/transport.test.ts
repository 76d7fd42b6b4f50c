import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { ApiError } from '../../../../src/api/api-error.ts';
import {
  isConnectionRefused,
  isConnectionReset,
  isNeverSent,
} from '../../../../src/client/transport/connection-error.ts';
import type { TlsMaterial } from '../../../../src/client/transport/dial.ts';
import { dial } from '../../../../src/client/transport/dial.ts';
import type { Http1PoolOptions } from '../../../../src/client/transport/http1-pool.ts';
import { Http1Pool } from '../../../../src/client/transport/http1-pool.ts';
import { readBody } from '../../../../src/client/response.ts';
import { exchange } from '../../../../src/client/transport/exchange.ts';
import type {
  ExchangeControl,
  ResponseHandler,
} from '../../../../src/client/transport/http1-connection.ts';
import type { Transport, TransportOptions } from '../../../../src/client/transport/transport.ts';
import { http1Transport } from '../../../../src/client/transport/transport.ts';
import type { HttpRequest, HttpResponse } from '../../../../src/util/http.ts';
import { Deferred } from '../../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../../src/util/fake-clock.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';
import { bodyOf, serve, serveTls } from '../server.ts';
import { closed } from '../../../support/closed.ts';

function open(t: TestContext, options: TransportOptions): Transport {
  const transport = http1Transport(options);
  t.after(() => transport.close());
  return transport;
}

/** Records when a connection is paused and resumed. */
class FakeControl implements ExchangeControl {
  readonly #calls: string[];
  isPaused = false;

  constructor(calls: string[]) {
    this.#calls = calls;
  }

  abort(): void {
    this.#calls.push('aborted');
  }

  pause(): void {
    this.isPaused = true;
    this.#calls.push('paused');
  }

  resume(): void {
    this.isPaused = false;
    this.#calls.push('resumed');
  }
}

function get(transport: Transport, request: Partial<HttpRequest> = {}): Promise<HttpResponse> {
  return transport.handle({ method: 'GET', path: '/', headers: {}, ...request });
}

async function textOf({ body }: HttpResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

test('passes request and response unchanged, below the path of the server', async (t) => {
  const { url } = await serve(t, (request, response) => {
    void bodyOf(request).then((body) => {
      response.writeHead(201, {
        'x-seen': `${request.method} ${request.url}`,
        'x-many': ['a', 'b'],
      });
      response.end(`${body} ${String(request.headers['x-own'])} ${request.rawHeaders.join(',')}`);
    });
  });
  const transport = open(t, {
    server: `${url}/clusters/one/`,
    headers: [
      ['impersonate-group', 'devs'],
      ['impersonate-group', 'admins'],
    ],
  });
  const response = await get(transport, {
    method: 'POST',
    path: '/api?x=1',
    headers: { 'x-own': 'yes' },
    body: 'grüße',
  });
  assert.equal(response.status, 201);
  assert.equal(response.headers['x-seen'], 'POST /clusters/one/api?x=1');
  assert.equal(response.headers['x-many'], 'a, b');
  assert.match(
    await textOf(response),
    /^grüße yes .*impersonate-group,devs,impersonate-group,admins/,
  );
});

test('verifies the certificates of both sides', async (t) => {
  const { url, authority } = await serveTls(
    t,
    (request, response) =>
      response.end(String((request.socket as TLSSocket).getPeerCertificate().subject.CN)),
    { requestCert: true, rejectUnauthorized: true },
  );
  const client = await authority.issue({ commonName: 'alice', usages: 'client' });
  const transport = open(t, {
    server: url,
    tls: () => material,
  });
  const material: TlsMaterial = {
    ca: authority.certificatePem,
    certificate: client.certificatePem,
    key: client.privateKeyPem,
  };
  assert.equal(await textOf(await get(transport)), 'alice');

  const untrusted = open(t, { server: url, tls: () => ({ ca: authority.certificatePem }) });
  const error = await failure(get(untrusted));
  assert.equal(error.kind, 'unreachable');
  assert.match(error.message, /rejected this client's certificate|connection broke/);
});

test('uses rotated certificates for the next request and closes old connections', async (t) => {
  const { url, server, authority } = await serveTls(
    t,
    (request, response) =>
      response.end(String((request.socket as TLSSocket).getPeerCertificate().subject.CN)),
    { requestCert: true, rejectUnauthorized: true },
  );
  const materialOf = async (commonName: string): Promise<TlsMaterial> => {
    const issued = await authority.issue({ commonName, usages: 'client' });
    return {
      ca: authority.certificatePem,
      certificate: issued.certificatePem,
      key: issued.privateKeyPem,
    };
  };
  let material = await materialOf('before');
  const transport = open(t, { server: url, tls: () => material });
  const firstConnection = once(server, 'connection');
  assert.equal(await textOf(await get(transport)), 'before');
  const [first] = (await firstConnection) as [Socket];
  material = await materialOf('after');
  assert.equal(await textOf(await get(transport)), 'after');
  for (let turn = 0; turn < 500 && !first.destroyed; turn++) await settle(1);
  assert.equal(first.destroyed, true);
});

test('rejects a server with an unknown CA and says what to do', async (t) => {
  const { url } = await serveTls(t, (_request, response) => response.end('secret'));
  const other = await createCertificateAuthority({ commonName: 'other-ca' });
  const transport = open(t, { server: url, tls: () => ({ ca: other.certificatePem }) });
  const error = await failure(get(transport));
  assert.equal(error.kind, 'unreachable');
  assert.match(
    error.message,
    new RegExp(
      `^Cannot reach the API server ${url}: x509: certificate signed by unknown authority`,
    ),
  );
  assert.match(error.message, /certificate-authority/);
  assert.ok(isNeverSent(error));
  assert.ok(!isConnectionRefused(error));
});

test('checks the name in the certificate, or another expected name', async (t) => {
  const { url, authority } = await serveTls(t, (_request, response) => response.end('ok'));
  const ca = authority.certificatePem;
  const wrong = open(t, { server: url, serverName: 'elsewhere', tls: () => ({ ca }) });
  const error = await failure(get(wrong));
  assert.match(error.message, /not valid for this host name.*tls-server-name/);
  const right = open(t, { server: url, serverName: 'localhost', tls: () => ({ ca }) });
  assert.equal(await textOf(await get(right)), 'ok');
  const blind = open(t, { server: url, serverName: 'elsewhere', insecure: true });
  assert.equal(await textOf(await get(blind)), 'ok');
});

test('distinguishes refused connections, unresolved names and servers without TLS', async (t) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as AddressInfo;
  await new Promise((resolve) => taken.close(resolve));
  const refused = await failure(get(open(t, { server: `https://127.0.0.1:${port}` })));
  assert.match(refused.message, /connection refused \(ECONNREFUSED\)/);
  assert.ok(isConnectionRefused(refused));
  assert.ok(isNeverSent(refused));

  const plain = await serve(t, (_request, response) => response.end());
  const notTls = await failure(get(open(t, { server: plain.url.replace('http', 'https') })));
  assert.match(notTls.message, /does not use TLS/);

  const unresolved = await failure(get(open(t, { server: 'https://unknown.invalid' })));
  assert.match(unresolved.message, /host name cannot be resolved/);
  assert.ok(!isConnectionRefused(unresolved));
});

test('times out if the TLS handshake does not end', async (t) => {
  const sockets: Socket[] = [];
  const mute = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => mute.close(resolve));
  });
  const clock = new FakeClock();
  const { port } = mute.address() as AddressInfo;
  const transport = open(t, { server: `https://127.0.0.1:${port}`, clock });
  const outcome = failure(get(transport));
  await once(mute, 'connection');
  while (clock.untilNext !== 10_000) await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(10_000);
  assert.match((await outcome).message, /no connection within the timeout/);
});

test('ends a waiting request and a body with the reason of the abort', async (t) => {
  const { url, server } = await serve(t, (request, response) => {
    if (request.url === '/stream') response.write('started');
  });
  const transport = open(t, { server: url });
  const reason = new Error('enough');

  const waiting = new AbortController();
  const pending = get(transport, { signal: waiting.signal });
  await once(server, 'request');
  waiting.abort(reason);
  await assert.rejects(pending, reason);

  const reading = new AbortController();
  const response = await get(transport, { path: '/stream', signal: reading.signal });
  await assert.rejects(async () => {
    for await (const chunk of response.body) {
      assert.equal(Buffer.from(chunk).toString(), 'started');
      reading.abort(reason);
    }
  }, reason);

  await assert.rejects(get(transport, { signal: AbortSignal.abort(reason) }), reason);
});

test('closes the connection when the iteration of a body is left', async (t) => {
  const { url, server } = await serve(t, (_request, response) => response.write('started'));
  const transport = open(t, { server: url });
  const connection = once(server, 'connection');
  const response = await get(transport);
  const [socket] = (await connection) as [Socket];
  const end = closed(socket);
  const reading = response.body[Symbol.asyncIterator]();
  await reading.next();
  await reading.return?.();
  await end;
});

test('reports a connection that breaks within a body, whether it is read or not', async (t) => {
  const { url } = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('started', () => response.destroy());
  });
  const transport = open(t, { server: url });
  const error = await failure(get(transport).then(textOf));
  assert.equal(error.kind, 'unreachable');
  assert.match(error.message, /connection broke before the response was complete/);
  await get(transport);
  await settle(50);
});

test('reports a chunked body that ends early on a connection that is not kept', async (t) => {
  const { url } = await serve(t, (_request, response) => {
    response.writeHead(200, { connection: 'close', 'transfer-encoding': 'chunked' });
    response.write('started', () => response.destroy());
  });
  const error = await failure(get(open(t, { server: url })).then(textOf));
  assert.ok(isConnectionReset(error), error.message);
  assert.match(error.message, /connection broke before the response was complete/);
});

test('does not delay requests by watches', async (t) => {
  const { url } = await serve(t, (request, response) => {
    if (request.url === '/watch') response.write('started');
    else response.end('ok');
  });
  const transport = open(t, { server: url });
  await Promise.all(Array.from({ length: 50 }, () => get(transport, { path: '/watch' })));
  assert.equal(await textOf(await get(transport)), 'ok');
});

test('leaves no listener after many calls with one signal', async (t) => {
  const { url } = await serve(t, (_request, response) => response.end('ok'));
  const transport = open(t, { server: url });
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  const { signal } = new AbortController();
  await Promise.all(
    Array.from({ length: 50 }, async () => textOf(await get(transport, { signal }))),
  );
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
});

test('calls beforeSend when a connection is available, not when the request is made', async (t) => {
  const received: string[] = [];
  const { url, server } = await serve(t, (request, response) => {
    received.push(String(request.url));
    response.end('ok');
  });
  let connections = 0;
  server.on('connection', () => connections++);
  const transport = open(t, { server: url });
  const seen: string[] = [];
  const stale = new ApiError({ kind: 'unavailable', message: 'too late' });
  const late = get(transport, {
    path: '/late',
    beforeSend: () => {
      seen.push(`${connections} connection`);
      throw stale;
    },
  });
  assert.equal(seen.length, 0, 'there is none yet');
  assert.equal(await failure(late), stale);
  const inTime = await get(transport, { path: '/in-time', beforeSend: () => seen.push('asked') });
  assert.equal(await textOf(inTime), 'ok');
  assert.deepEqual(seen, ['1 connection', 'asked']);
  assert.deepEqual(received, ['/in-time']);
});

test('rejects at once if a request aborts before there is a connection, and never sends it', async (t) => {
  const received: string[] = [];
  const { url } = await serve(t, (request, response) => {
    received.push(String(request.url));
    response.end('ok');
  });
  const lookups: (() => void)[] = [];
  let isResolving = false;
  const transport = open(t, {
    server: url.replace('127.0.0.1', 'api.test'),
    lookup: (_host, _options, callback) => {
      const answer = () => callback(null, [{ address: '127.0.0.1', family: 4 }]);
      if (isResolving) answer();
      else lookups.push(answer);
    },
  });
  const limit = new AbortController();
  const aborted = get(transport, { path: '/aborted', method: 'POST', signal: limit.signal });
  const waiting = get(transport, { path: '/waiting' });
  await settle();
  limit.abort(new Error('no longer wanted'));
  await assert.rejects(aborted, /no longer wanted/);
  isResolving = true;
  for (const answer of lookups) answer();
  assert.equal(await textOf(await waiting), 'ok');
  assert.equal(await textOf(await get(transport, { path: '/next' })), 'ok');
  assert.deepEqual(received.toSorted(), ['/next', '/waiting']);
});

test('ignores informational responses before the response', async (t) => {
  const { url } = await serve(t, (_request, response) => {
    response.writeEarlyHints({ link: '</style.css>' });
    response.end('ok');
  });
  const response = await get(open(t, { server: url }));
  assert.equal(response.status, 200);
  assert.equal(await textOf(response), 'ok');
});

test('bounds the informational responses, which do not change the timeout of the headers', async (t) => {
  const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n';
  const sent = new Deferred();
  const { port } = await serveText(t, (received, socket) => {
    const isEndless = received.includes('/endless');
    socket.write(hint.repeat(isEndless ? 21 : 1), () => isEndless || sent.resolve());
  });
  const clock = new FakeClock();
  const pool = newPool(t, port, { bodyTimeoutMs: 300, clock });
  await assert.rejects(call(pool, '/endless'), { name: 'ResponseSyntaxError' });
  const waiting = assert.rejects(call(pool), { code: 'ERR_RESPONSE_TIMEOUT' });
  await sent.promise;
  await settle();
  await clock.advance(998);
  await settle();
  assert.notEqual(clock.untilNext, undefined, 'it still waits');
  await clock.advance(2);
  await waiting;
});

/** A server that sends the given text for each part of a request, and counts its connections. */
async function serveText(t: TestContext, respond: (received: string, socket: Socket) => void) {
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => respond(bytes.toString(), socket));
  });
  const sockets = new Set<Socket>();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, sockets };
}

function newPool(t: TestContext, port: number, options: Partial<Http1PoolOptions> = {}): Http1Pool {
  const target = { protocol: 'http:', hostname: '127.0.0.1', port: String(port) };
  const pool = new Http1Pool({
    host: 'server',
    dial: (signal) => dial(target, { tls: {}, signal }),
    headersTimeoutMs: 1000,
    bodyTimeoutMs: 0,
    ...options,
  });
  t.after(() => pool.destroy());
  return pool;
}

function call(pool: Http1Pool, path = '/'): Promise<HttpResponse> {
  const request = { method: 'GET', path, headerLines: '' };
  return exchange({ pool, request, explain: (error) => error });
}

test('sends each request in one write, with the length of its body', async (t) => {
  const seen: string[] = [];
  const { url, sockets } = await serveText(t, (received, socket) => {
    seen.push(received);
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  });
  const transport = open(t, { server: url });
  const { host } = new URL(url);
  const common = `host: ${host}\r\nconnection: keep-alive`;
  await get(transport, { path: '/a', headers: { accept: 'x' } });
  await get(transport, { method: 'DELETE', path: '/b' });
  await get(transport, { method: 'POST', path: '/c', body: 'grüße' });
  await get(transport, { method: 'PUT', path: '/d', body: Buffer.from('ü') });
  await get(transport, { method: 'PUT', path: '/e', headers: { 'x-name': 'ü' }, body: 'ü' });
  assert.deepEqual(seen, [
    `GET /a HTTP/1.1\r\n${common}\r\naccept: x\r\n\r\n`,
    `DELETE /b HTTP/1.1\r\n${common}\r\ncontent-length: 0\r\n\r\n`,
    `POST /c HTTP/1.1\r\n${common}\r\ncontent-length: 7\r\n\r\ngrüße`,
    `PUT /d HTTP/1.1\r\n${common}\r\ncontent-length: 2\r\n\r\nü`,
    // The header is Latin-1, which the server reads as UTF-8.
    `PUT /e HTTP/1.1\r\n${common}\r\nx-name: \ufffd\r\ncontent-length: 2\r\n\r\nü`,
  ]);
  assert.equal(sockets.size, 1);
});

test('sends no request that contains a line of another, and does not reveal the value', async (t) => {
  const { url, sockets } = await serveText(t, (_received, socket) => socket.destroy());
  const transport = open(t, { server: url });
  for (const request of [
    { path: '/a HTTP/1.1' },
    { path: '/a\r\nx: y' },
    { headers: { 'x-name': 'secret\r\nx: y' } },
    { headers: { 'x-name': 'secret\u0000' } },
    { headers: { 'x name': 'secret' } },
    { headers: { '': 'secret' } },
  ]) {
    const error: unknown = await get(transport, request).catch((reason: unknown) => reason);
    assert.match(String(error), /space or a control character|does not permit/);
    assert.doesNotMatch(String(error), /secret/);
  }
  for (const socket of sockets) assert.equal(socket.bytesRead, 0);
});

test('fails if no response starts within its timeout, or if it stops within the other', async (t) => {
  const { port } = await serveText(t, (received, socket) => {
    if (received.includes('/body')) socket.write('HTTP/1.1 200 OK\r\n\r\nstart');
  });
  const clock = new FakeClock();
  const pool = newPool(t, port, { headersTimeoutMs: 1000, bodyTimeoutMs: 300, clock });
  const expired = { code: 'ERR_RESPONSE_TIMEOUT' };
  const waiting = assert.rejects(call(pool), expired);
  while (clock.untilNext === undefined) await settle(1);
  await clock.advance(999);
  const body = (await call(pool, '/body')).body[Symbol.asyncIterator]();
  await body.next();
  await clock.advance(1);
  await waiting;
  const stopped = assert.rejects(body.next(), expired);
  await clock.advance(298);
  await settle();
  assert.notEqual(clock.untilNext, undefined, 'it still waits');
  await clock.advance(1);
  await stopped;
});

test('closes idle connections after 30 s, or 2 s before the server does', async (t) => {
  const clock = new FakeClock();
  let keepAlive = '';
  const { port, sockets } = await serveText(t, (_received, socket) => {
    socket.write(`HTTP/1.1 200 OK\r\n${keepAlive}content-length: 0\r\n\r\n`);
  });
  const isClosed = async (count: number) => {
    for (let turn = 0; turn < 20 && sockets.size < count; turn++) await settle(1);
    for (let turn = 0; turn < 20; turn++) await settle(1);
    return [...sockets].at(-1)?.readableEnded || [...sockets].at(-1)?.destroyed;
  };
  const pool = newPool(t, port, { clock });
  await call(pool);
  await clock.advance(20_000);
  await call(pool);
  await clock.advance(29_999);
  assert.equal(await isClosed(1), false, 'it was used 29.999 s ago');
  await clock.advance(1);
  assert.equal(await isClosed(1), true);

  keepAlive = 'keep-alive: timeout=5\r\n';
  await call(pool);
  await clock.advance(2999);
  assert.equal(await isClosed(2), false);
  await clock.advance(1);
  assert.equal(await isClosed(2), true);

  keepAlive = 'keep-alive: timeout=2\r\n';
  await call(pool);
  assert.equal(await isClosed(3), true, 'the server might close it at any time');
});

for (const [isUsedAgain, writeMs] of [
  [true, 0],
  [false, 20],
] as const) {
  test(`${isUsedAgain ? 'uses' : 'does not use'} a connection again whose write ends ${isUsedAgain ? 'in the turn' : 'long'} after the response`, async (t) => {
    let dialled = 0;
    const pool = newPool(t, 0, {
      dial: async () => {
        dialled++;
        const socket = new Socket();
        socket._write = (_chunk, _encoding, written) => {
          if (writeMs === 0) setImmediate(written);
          else setTimeout(written, writeMs);
          socket.push('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
        };
        return socket;
      },
    });
    for (let requests = 0; requests < 3; requests++) await call(pool);
    assert.equal(dialled, isUsedAgain ? 1 : 3);
  });
}

test('does not use a connection again after data without a request, or an early response', async (t) => {
  const { port, sockets } = await serveText(t, (received, socket) => {
    const more = received.includes('/more') ? 'HTTP/1.1 200 OK\r\n' : '';
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n${more}`);
  });
  const pool = newPool(t, port);
  await call(pool);
  await call(pool, '/more');
  assert.equal(sockets.size, 1);
  await call(pool);
  assert.equal(sockets.size, 2);
});

test('opens another connection if the server closed the idle one, or sent data on it, just before', async (t) => {
  const { port, sockets } = await serveText(t, (_received, socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  });
  const pool = newPool(t, port);
  await call(pool);
  const [first] = sockets;
  first?.end();
  await call(pool);
  assert.equal(sockets.size, 2);
  const [, second] = sockets;
  second?.write('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
  assert.equal((await call(pool)).status, 200);
  assert.equal(sockets.size, 3);
});

test('sends a read again if a used connection is closed instead of a response, and no write', async (t) => {
  const seen: string[] = [];
  const { port, sockets } = await serveText(t, (received, socket) => {
    const [line = ''] = received.split('\r\n');
    seen.push(`${line.split(' HTTP')[0]} ${[...sockets].indexOf(socket)}`);
    if (seen.filter((each) => each.startsWith(line.split(' HTTP')[0] ?? '')).length === 2)
      socket.destroy();
    else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  });
  const pool = newPool(t, port);
  const post = () => {
    const request = { method: 'POST', path: '/', headerLines: '' };
    return exchange({ pool, request, explain: (error) => error });
  };
  await call(pool);
  assert.equal((await call(pool)).status, 200);
  await post();
  await assert.rejects(post(), { code: 'ECONNRESET' });
  assert.deepEqual(seen, ['GET / 0', 'GET / 0', 'GET / 1', 'POST / 1', 'POST / 1']);
});

test('retires when the requests in flight have ended, and then rejects others as never sent', async (t) => {
  const { port, sockets } = await serveText(t, () => undefined);
  const pool = newPool(t, port);
  const inFlight = call(pool);
  for (let turn = 0; turn < 500 && sockets.size === 0; turn++) await settle(1);
  let isRetired = false;
  const retired = pool.close().then(() => (isRetired = true));
  const late = await call(pool).catch((error: unknown) => error);
  assert.ok(isNeverSent(late), String(late));
  await settle();
  assert.equal(isRetired, false);
  for (const socket of sockets) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  assert.equal((await inFlight).status, 200);
  await retired;
});

test('pauses the connection while 64 KiB are unread', async () => {
  const calls: string[] = [];
  const { body } = await exchange({
    request: { method: 'GET', path: '/', headerLines: '' },
    pool: {
      dispatch(_request, handler) {
        handler.onRequestStart(new FakeControl(calls));
        handler.onResponseStart({ status: 200, headers: {} });
        for (const size of [60_000, 6000]) {
          calls.push(`${size} bytes`);
          handler.onResponseData(Buffer.alloc(size));
        }
      },
    },
    explain: (error) => error,
  });
  assert.deepEqual(calls, ['60000 bytes', '6000 bytes', 'paused']);
  const { value } = await body[Symbol.asyncIterator]().next();
  assert.equal(value?.length, 66_000);
  assert.equal(calls.at(-1), 'resumed');
});

test('returns a body at once if it has arrived completely, and only once', async () => {
  let handler: ResponseHandler | undefined;
  const abort = new AbortController();
  const open = () =>
    exchange({
      request: { method: 'GET', path: '/', headerLines: '' },
      pool: {
        dispatch(_request, given) {
          handler = given;
          handler.onRequestStart(new FakeControl([]));
          handler.onResponseStart({ status: 200, headers: {} });
          handler.onResponseData(Buffer.from('part'));
        },
      },
      signal: abort.signal,
      explain: (error) => error,
    });
  const { body } = await open();
  assert.equal(body.received?.(), undefined, 'the rest is missing');
  handler?.onResponseData(Buffer.from(' and rest'));
  handler?.onResponseEnd();
  assert.equal(Buffer.from(body.received?.() ?? []).toString(), 'part and rest');
  assert.equal(body.received?.(), undefined);

  const aborted = await open();
  handler?.onResponseEnd();
  abort.abort(new Error('no longer needed'));
  assert.equal(aborted.body.received?.(), undefined);
  await assert.rejects(async () => textOf(aborted), /no longer needed/);
});

test('rejects a body above the limit, whether it has arrived or is read as a stream', async () => {
  const bytes = Buffer.from('12345');
  const stream = async function* () {
    yield bytes.subarray(0, 3);
    yield bytes.subarray(3);
  };
  const complete = Object.assign(stream(), { received: () => bytes });
  const responseWith = (body: HttpResponse['body']) => ({ status: 200, headers: {}, body });
  assert.equal(String(await readBody(responseWith(stream()), 5)), '12345');
  assert.equal(String(await readBody(responseWith(complete), 5)), '12345');
  for (const body of [stream(), complete]) {
    await assert.rejects(async () => readBody(responseWith(body), 4), /longer than 4 bytes/);
  }
});

test('closes the connection if the key does not belong to the certificate', async (t) => {
  const server = createServer();
  t.after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const ended = once(server, 'connection').then(
    ([socket]: Socket[]) => socket && once(socket.resume(), 'close'),
  );
  const authority = await createCertificateAuthority({ commonName: 'ca' });
  const { privateKeyPem: key } = await createCertificateAuthority({ commonName: 'other' });
  const target = {
    protocol: 'https:',
    hostname: '127.0.0.1',
    port: String((server.address() as AddressInfo).port),
  };
  const tls = { certificate: authority.certificatePem, key };
  await assert.rejects(dial(target, { tls }), { name: 'DialError' });
  await ended;
});
