import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { constants } from 'node:http2';
import type { ServerHttp2Stream } from 'node:http2';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { ApiError } from '../../../../src/api/api-error.ts';
import { clusterTransport } from '../../../../src/client/transport/cluster-transport.ts';
import {
  isConnectionReset,
  isDeadConnection,
} from '../../../../src/client/transport/connection-error.ts';
import type { WatchConnectionsOptions } from '../../../../src/client/transport/watch-connections.ts';
import { WatchConnections } from '../../../../src/client/transport/watch-connections.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { HttpRequest, HttpResponse } from '../../../../src/util/http.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';
import { startBody, goAway, serveHttp2, swallowingProxy } from '../http2-server.ts';
import type { Http2TestServer } from '../http2-server.ts';
import { serve, serveTls } from '../server.ts';

function connectTo(
  t: TestContext,
  { url, ca }: Pick<Http2TestServer, 'url' | 'ca'>,
  options: Partial<WatchConnectionsOptions> = {},
): WatchConnections {
  const material = { ca };
  const pool = new WatchConnections({ server: url, tls: () => material, ...options });
  t.after(() => pool.close());
  return pool;
}

async function watch(
  pool: WatchConnections,
  request: Partial<HttpRequest> = {},
): Promise<HttpResponse & { readonly chunks: AsyncIterator<Uint8Array, unknown> }> {
  const response = await pool.send({ method: 'GET', path: '/', headers: {}, ...request });
  assert.ok(response, 'the server speaks HTTP/2');
  return { ...response, chunks: response.body[Symbol.asyncIterator]() };
}

async function text(chunks: AsyncIterator<Uint8Array, unknown>): Promise<string> {
  const { done, value } = await chunks.next();
  assert.ok(!done);
  return Buffer.from(value).toString();
}

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApiError, String(error));
  assert.equal(error.kind, 'unreachable');
  return error;
}

/** Waits in real time for data from the network. */
async function eventually(what: string, holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 3000 && !holds(); turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(holds(), what);
}

/** Advances virtual time, and waits each second for data from the network. */
async function pass(clock: FakeClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await clock.advance(1000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

test('fails a request after too many informational responses', async (t) => {
  const server = await serveHttp2(t, (stream, { ':path': path }) => {
    const hints = path === '/endless' ? 21 : 20;
    for (let sent = 0; sent < hints; sent++) stream.additionalHeaders({ ':status': 103 });
    stream.respond({ ':status': 200 });
    stream.end();
  });
  const pool = connectTo(t, server);
  assert.equal((await watch(pool)).status, 200);
  const { message } = await failure(watch(pool, { path: '/endless' }));
  assert.match(message, /too many informational responses/);
});

test('passes requests unchanged, below the path of the server, on one connection', async (t) => {
  const server = await serveHttp2(t, (stream, headers) => {
    stream.respond({ ':status': 410, 'x-many': ['a', 'b'], 'x-seen': JSON.stringify(headers) });
    stream.end('gone');
  });
  const pool = connectTo(
    t,
    { ...server, url: `${server.url}/clusters/one/` },
    {
      headers: [
        ['Impersonate-Group', 'devs'],
        ['Impersonate-Group', 'admins'],
      ],
    },
  );
  const requests = [1, 2, 3].map((n) =>
    watch(pool, { path: `/api?n=${n}`, headers: { 'x-own': 'yes', authorization: 'Bearer t' } }),
  );
  for (const [index, response] of (await Promise.all(requests)).entries()) {
    assert.equal(response.status, 410);
    assert.equal(response.headers['x-many'], 'a, b');
    assert.equal(response.headers[':status'], undefined);
    const seen = JSON.parse(response.headers['x-seen'] ?? '') as Record<string, string>;
    assert.equal(seen[':path'], `/clusters/one/api?n=${index + 1}`);
    assert.equal(seen[':authority'], new URL(server.url).host);
    assert.equal(seen['x-own'], 'yes');
    assert.equal(seen['impersonate-group'], 'devs, admins');
    assert.equal(await text(response.chunks), 'gone');
    assert.equal((await response.chunks.next()).done, true);
  }
  assert.equal(server.opened(), 1);
});

test('detects a connection that a load balancer discards within 30 s, and opens another', async (t) => {
  const server = await serveHttp2(t, (stream) => startBody(stream));
  const proxy = await swallowingProxy(t, server.port);
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const pool = connectTo(t, { ...server, url: proxy.url }, { clock, log });
  const watches = await Promise.all([watch(pool), watch(pool)]);
  for (const { chunks } of watches) assert.equal(await text(chunks), 'started');
  proxy.swallow();
  const ends = watches.map(({ chunks }) => failure(chunks.next()));
  await pass(clock, 29);
  assert.equal(pool.connections, 1);
  await pass(clock, 1);
  for (const error of await Promise.all(ends)) {
    assert.ok(isDeadConnection(error), error.message);
    assert.ok(isConnectionReset(error), 'asking again is safe');
    assert.match(error.message, /nothing received for 30 s, and no response to a ping within 10 s/);
  }
  assert.equal(pool.connections, 0);
  assert.deepEqual(
    lines.map(({ level, message }) => [level, message]),
    [[2, 'Connection is dead; re-establishing its watches']],
  );
  const next = await watch(pool);
  assert.equal(await text(next.chunks), 'started');
});

test('times out a response on a dead connection', async (t) => {
  let asked = false;
  const server = await serveHttp2(t, () => {
    asked = true;
  });
  const proxy = await swallowingProxy(t, server.port);
  const clock = new FakeClock();
  const pool = connectTo(t, { ...server, url: proxy.url }, { clock });
  const pending = failure(watch(pool));
  await eventually('the request is there', () => asked);
  proxy.swallow();
  await pass(clock, 31);
  assert.ok(isDeadConnection(await pending));
});

test('keeps an idle watch open while its connection responds to pings', async (t) => {
  const streams: ServerHttp2Stream[] = [];
  const server = await serveHttp2(t, (stream) => {
    streams.push(stream);
    startBody(stream);
  });
  const clock = new FakeClock();
  const pool = connectTo(t, server, { clock });
  const { chunks, activity } = await watch(pool);
  assert.equal(await text(chunks), 'started');
  const startMs = activity?.lastMs;
  assert.ok(startMs !== undefined);
  await pass(clock, 200);
  assert.equal(server.opened(), 1);
  assert.ok(server.pings() >= 8, `${server.pings()} pings`);
  assert.ok(clock.monotonic() - activity!.lastMs <= 21_000, 'the activity is seen');
  streams[0]!.write('more');
  assert.equal(await text(chunks), 'more');
  streams[0]!.end();
  assert.equal((await chunks.next()).done, true);
});

test('closes a connection without watches instead of pinging', async (t) => {
  const server = await serveHttp2(t, (stream) => startBody(stream));
  const clock = new FakeClock();
  const pool = connectTo(t, server, { clock });
  const { chunks } = await watch(pool);
  await text(chunks);
  await chunks.return?.();
  await pass(clock, 21);
  await eventually('it is closed', () => pool.connections === 0 && server.sessions.size === 0);
  assert.equal(server.pings(), 0);
  await pass(clock, 15);
  assert.equal(clock.pending, 0);
});

test('opens as many connections as the stream limit of the server requires', async (t) => {
  const server = await serveHttp2(t, (stream) => startBody(stream), { maxConcurrentStreams: 3 });
  const pool = connectTo(t, server);
  const watches = await Promise.all(Array.from({ length: 8 }, () => watch(pool)));
  for (const { chunks } of watches) assert.equal(await text(chunks), 'started');
  assert.equal(server.opened(), 3);
  await watches[0]!.chunks.return?.();
  await watches[1]!.chunks.return?.();
  await new Promise((resolve) => setImmediate(resolve));
  const again = await Promise.all([watch(pool), watch(pool), watch(pool)]);
  for (const { chunks } of again) assert.equal(await text(chunks), 'started');
  assert.equal(server.opened(), 3, 'free streams are used first');
});

test('reports a server that permits no stream as unreachable', async (t) => {
  const server = await serveHttp2(t, () => undefined, { maxConcurrentStreams: 0 });
  const pool = connectTo(t, server);
  assert.match((await failure(watch(pool))).message, /permits no HTTP\/2 streams/);
  assert.equal(server.opened(), 1);
});

test('continues old watches after a GOAWAY and opens new ones on another connection', async (t) => {
  const streams: ServerHttp2Stream[] = [];
  const server = await serveHttp2(t, (stream) => {
    streams.push(stream);
    startBody(stream);
  });
  const pool = connectTo(t, server);
  const old = await watch(pool);
  await text(old.chunks);
  goAway([...server.sessions][0]!);
  streams[0]!.write('still here');
  assert.equal(await text(old.chunks), 'still here');
  const next = await watch(pool);
  await text(next.chunks);
  assert.equal(server.opened(), 2);
  assert.equal(server.sessions.size, 2);
  streams[0]!.end('bye');
  assert.equal(await text(old.chunks), 'bye');
  assert.equal((await old.chunks.next()).done, true);
  await eventually('the old one is closed', () => server.sessions.size === 1);
});

test('reports a reset, a broken connection and a crash of the server, also if the body is not read', async (t) => {
  const streams: ServerHttp2Stream[] = [];
  const server = await serveHttp2(t, (stream) => {
    streams.push(stream);
    startBody(stream);
  });
  const pool = connectTo(t, server);
  for (const breakIt of [
    () => streams.at(-1)!.destroy(new Error('a reset with an error code')),
    () => streams.at(-1)!.session!.destroy(),
    () => streams.at(-1)!.session!.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM),
  ]) {
    const read = await watch(pool);
    await text(read.chunks);
    const pending = failure(read.chunks.next());
    breakIt();
    assert.ok(isConnectionReset(await pending));
    const unread = await watch(pool);
    breakIt();
    await eventually('it is over', () => streams.at(-1)!.destroyed);
    const error = await failure(
      (async () => {
        for await (const chunk of unread.body)
          assert.equal(Buffer.from(chunk).toString(), 'started');
      })(),
    );
    assert.ok(isConnectionReset(error));
  }
});

test('ends a waiting request and a body with the reason of the abort', async (t) => {
  const streams: ServerHttp2Stream[] = [];
  const server = await serveHttp2(t, (stream, headers) => {
    streams.push(stream);
    if (headers[':path'] === '/stream') startBody(stream);
  });
  const pool = connectTo(t, server);
  const reason = new Error('enough');
  const waiting = new AbortController();
  const pending = watch(pool, { signal: waiting.signal });
  await once(server.server, 'stream');
  waiting.abort(reason);
  await assert.rejects(pending, reason);

  const reading = new AbortController();
  const { chunks } = await watch(pool, { path: '/stream', signal: reading.signal });
  await text(chunks);
  const next = chunks.next();
  reading.abort(reason);
  await assert.rejects(next, reason);
  await eventually('the server has closed both', () => streams.every(({ closed }) => closed));
  assert.deepEqual(
    streams.map(({ rstCode }) => rstCode),
    [constants.NGHTTP2_CANCEL, constants.NGHTTP2_CANCEL],
  );
  assert.equal(server.opened(), 1, 'the connection stays');
  await assert.rejects(watch(pool, { signal: AbortSignal.abort(reason) }), reason);
});

test('applies backpressure to the server if the reader is slow', async (t) => {
  let sent = 0;
  let stuck = false;
  const server = await serveHttp2(t, (stream) => {
    stream.respond({ ':status': 200 });
    const block = Buffer.alloc(64 * 1024);
    const more = () => {
      while (sent < 64 * 1024 * 1024) {
        sent += block.length;
        stuck = !stream.write(block);
        if (stuck) return;
      }
    };
    stream.on('drain', more);
    more();
  });
  const pool = connectTo(t, server);
  const { chunks } = await watch(pool);
  let before = -1;
  for (let round = 0; round < 100 && before !== sent; round++) {
    before = sent;
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(stuck && sent < 8 * 1024 * 1024, `${sent} bytes under way`);
  let received = 0;
  while (received < 10 * 1024 * 1024) {
    const { value } = await chunks.next();
    received += (value as Uint8Array).length;
  }
  assert.ok(sent > 10 * 1024 * 1024, 'reading resumes the stream');
});

test('opens new connections for rotated certificates; old ones close with their watches', async (t) => {
  const server = await serveHttp2(t, (stream) => startBody(stream));
  let material = { ca: server.ca };
  const pool = connectTo(t, server, { tls: () => material });
  const old = await watch(pool);
  await text(old.chunks);
  material = { ca: server.ca };
  const next = await watch(pool);
  await text(next.chunks);
  assert.equal(server.sessions.size, 2);
  await old.chunks.return?.();
  await eventually('the old one is closed', () => server.sessions.size === 1);
});

test('reports that a certificate was rejected', async (t) => {
  const { url } = await serveHttp2(t, () => undefined);
  const { ca } = await serveHttp2(t, () => undefined);
  let rejected = 0;
  const pool = connectTo(t, { url, ca }, { onTlsRejected: () => rejected++ });
  await failure(pool.send({ method: 'GET', path: '/', headers: {} }));
  assert.equal(rejected, 1);
});

test('uses HTTP/1.1 if the engine cannot start a session', async (t) => {
  const server = await serveHttp2(t, () => undefined);
  const pool = connectTo(t, server, {
    session: () => {
      throw new TypeError('Invalid URL');
    },
  });
  assert.equal(await pool.send({ method: 'GET', path: '/', headers: {} }), undefined);
  assert.equal(pool.connections, 0);
});

test('uses HTTP/1.1 after three sessions that end before they are set up', async (t) => {
  const { server, url, authority } = await serveTls(t, () => undefined, { ALPNProtocols: ['h2'] });
  server.on('secureConnection', (socket) => socket.destroy());
  const pool = connectTo(t, { url, ca: authority.certificatePem });
  const ask = () => pool.send({ method: 'GET', path: '/', headers: {} });
  await failure(ask());
  await failure(ask());
  assert.equal(await ask(), undefined);
  assert.equal(await ask(), undefined);
});

test('sends watches over HTTP/1.1 if the server does not support HTTP/2, and logs this once', async (t) => {
  const tls = await serveTls(t, (request, response) => {
    response.end(`HTTP/${request.httpVersion} ${request.url}`);
  });
  const ca = tls.authority.certificatePem;
  const transport = clusterTransport({ server: tls.url, tls: () => ({ ca }) });
  t.after(() => transport.close());
  const response = await transport.handle({
    method: 'GET',
    path: '/watch',
    headers: {},
    longRunning: true,
  });
  assert.equal(response.activity, undefined);
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString(), 'HTTP/1.1 /watch');

  let connections = 0;
  tls.server.on('connection', () => connections++);
  const { log, lines } = recordingLogger();
  const clock = new FakeClock();
  const pool = connectTo(t, { url: tls.url, ca }, { log, clock });
  const ask = () => pool.send({ method: 'GET', path: '/', headers: {} });
  assert.equal(await ask(), undefined);
  assert.equal(await ask(), undefined);
  await eventually('one connection finds out', () => connections === 1);
  await clock.advance(10 * 60_000);
  assert.equal(await ask(), undefined);
  await eventually('after a while it is asked again', () => connections === 2);
  assert.deepEqual(
    lines.map(({ level, message }) => [level, message]),
    [[2, 'HTTP/2 is not available; stalled watches are detected by their silence']],
  );
  assert.equal(clock.pending, 0);

  const plain = await serve(t, (_request, response) => response.end('ok'));
  const none = connectTo(t, { url: plain.url, ca });
  assert.equal(await none.send({ method: 'GET', path: '/', headers: {} }), undefined);
});

test('closes streams, pending connections and timers', async (t) => {
  const server = await serveHttp2(t, (stream) => startBody(stream));
  const clock = new FakeClock();
  const pool = connectTo(t, server, { clock });
  const { chunks } = await watch(pool);
  await text(chunks);
  const pending = failure(chunks.next());
  pool.close();
  assert.match((await pending).message, /the client was closed/);
  await eventually('nothing is open', () => server.sessions.size === 0 && pool.connections === 0);
  assert.equal(clock.pending, 0);
  await failure(watch(pool));

  const dialling = connectTo(t, server, { clock });
  const opening = failure(watch(dialling));
  await new Promise((resolve) => setImmediate(resolve));
  dialling.close();
  await opening;
  assert.equal(clock.pending, 0);
});

test('leaves no listeners after a thousand watches', async (t) => {
  const server = await serveHttp2(t, (stream) => startBody(stream));
  const clock = new FakeClock();
  const pool = connectTo(t, server, { clock });
  const owner = new AbortController();
  for (let round = 0; round < 20; round++) {
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const { chunks } = await watch(pool, { signal: owner.signal });
        await text(chunks);
        await chunks.return?.();
      }),
    );
  }
  assert.equal(server.opened(), 1);
  assert.equal(clock.pending, 1, 'one heartbeat');
  await eventually('no listener', () => getEventListeners(owner.signal, 'abort').length === 0);
});
