import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { Agent, request } from 'node:https';
import type { RequestOptions } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { listenHttps } from '../../../../src/apiserver/http/https-listener.ts';
import type { HttpsListenerOptions } from '../../../../src/apiserver/http/https-listener.ts';
import type { IncomingRequest } from '../../../../src/apiserver/request/request-body.ts';
import { MAX_BODY_BYTES, withBody } from '../../../../src/apiserver/request/request-body.ts';
import { completeResponse } from '../../../../src/apiserver/http/response.ts';
import { StatusError } from '../../../../src/apiserver/objects/status-error.ts';
import type { HttpRequest, HttpResponse } from '../../../../src/util/http.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';
import { closed } from '../../../support/closed.ts';

type Handler = (request: IncomingRequest) => Promise<HttpResponse>;

async function listen(
  t: TestContext,
  handler: Handler,
  options: Pick<HttpsListenerOptions, 'maxConnections' | 'discardMs' | 'maxReceivedBytes'> = {},
) {
  const authority = await createCertificateAuthority({ commonName: 'ca' });
  const { certificatePem, privateKeyPem } = await authority.issue({
    commonName: 'server',
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  });
  const listener = await listenHttps(handler, {
    host: '127.0.0.1',
    port: 0,
    certificatePem,
    privateKeyPem,
    authoritiesPem: authority.certificatePem,
    ...options,
  });
  t.after(() => listener.close());
  const ca = authority.certificatePem;
  const open = (): ClientHttp2Session => {
    const session = connect(`https://127.0.0.1:${listener.port}`, { ca });
    session.on('error', () => undefined);
    t.after(() => session.destroy());
    return session;
  };
  /** A request over HTTP/1.1. */
  const send = (options: RequestOptions) => {
    const asking = request({
      host: '127.0.0.1',
      port: listener.port,
      ca,
      agent: false,
      ...options,
    });
    return asking.on('error', () => undefined);
  };
  return { listener, ca, open, send };
}

/** Answers with a status: that in the path, or that of an error while the body is received. */
const answerStatus: Handler = async (incoming) => {
  try {
    const { body = '' } = incoming.method === 'PUT' ? await withBody(incoming) : incoming;
    const status = Number(incoming.path.slice(1));
    return { status, headers: {}, body: textBody(`${body.length} bytes`) };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { status: error.status.code, headers: {}, body: textBody(error.message) };
  }
};

async function statusOf(stream: ClientHttp2Stream): Promise<number> {
  const [headers] = (await once(stream, 'response')) as [{ ':status': number }];
  return headers[':status'];
}

async function* textBody(...parts: readonly string[]): AsyncGenerator<Uint8Array, void> {
  for (const part of parts) yield Buffer.from(part);
}

async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test('the handler receives the same request over HTTP/2 and HTTP/1.1', async (t) => {
  const seen: HttpRequest[] = [];
  const { open, send } = await listen(t, async (incoming) => {
    seen.push(await withBody(incoming));
    return { status: 201, headers: { 'x-answer': 'yes' }, body: textBody('a', 'b') };
  });
  const body = 'x'.repeat(300_000);
  const stream = open().request({ ':method': 'POST', ':path': '/api?x=1', 'x-own': 'one' });
  stream.end(body);
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
  assert.deepEqual([headers[':status'], headers['x-answer']], [201, 'yes']);
  assert.equal(await textOf(stream), 'ab');

  const old = send({ method: 'POST', path: '/api?x=1', headers: { 'x-own': 'one' } });
  old.end(body);
  const [response] = (await once(old, 'response')) as [AsyncIterable<Uint8Array>];
  assert.equal(await textOf(response), 'ab');
  for (const { method, path, headers: sent, body: received } of seen) {
    assert.deepEqual([method, path, sent['x-own']], ['POST', '/api?x=1', 'one']);
    assert.equal(Buffer.from(received as Uint8Array).toString(), body);
    assert.deepEqual(
      Object.keys(sent).filter((name) => name.startsWith(':')),
      [],
    );
  }
  assert.equal(seen.length, 2);
});

test('a complete body is sent with its length, and the headers of a body that waits are sent before it', async (t) => {
  const { promise: event, resolve: sendEvent } = Promise.withResolvers<void>();
  async function* events(): AsyncGenerator<Uint8Array, void> {
    await event;
    yield* textBody('late');
  }
  const { open, send } = await listen(t, async ({ path }) => ({
    status: 200,
    headers: {},
    body: path === '/watch' ? events() : textBody('whole'),
  }));
  const session = open();
  const [headers] = (await once(session.request({ ':path': '/' }), 'response')) as [
    Record<string, unknown>,
  ];
  assert.equal(headers['content-length'], '5');
  const [plain] = (await once(send({ path: '/' }).end(), 'response')) as [IncomingMessage];
  assert.equal(plain.headers['content-length'], '5');
  assert.equal(await textOf(plain), 'whole');
  const stream = session.request({ ':path': '/watch' });
  await once(stream, 'response');
  const [watch] = (await once(send({ path: '/watch' }).end(), 'response')) as [IncomingMessage];
  assert.equal(watch.headers['content-length'], undefined);
  sendEvent();
  assert.deepEqual(await Promise.all([textOf(stream), textOf(watch)]), ['late', 'late']);
});

test('the length of a text is its length in bytes', async (t) => {
  const { open, send } = await listen(t, async () =>
    completeResponse(200, '"größer"', 'application/json'),
  );
  const [headers] = (await once(open().request({ ':path': '/' }), 'response')) as [
    Record<string, unknown>,
  ];
  assert.equal(headers['content-length'], '10');
  const [plain] = (await once(send({ path: '/' }).end(), 'response')) as [IncomingMessage];
  assert.equal(plain.headers['content-length'], '10');
  assert.equal(await textOf(plain), '"größer"');
});

test('bodies that arrive with their headers or after them are complete over HTTP/1.1', async (t) => {
  const bodies: string[] = [];
  const { listener, ca } = await listen(t, async (incoming) => {
    // The handler authorizes a request before it reads the body.
    await Promise.resolve();
    const { body = '' } = await withBody(incoming);
    bodies.push(Buffer.from(body as Uint8Array).toString());
    return completeResponse(200, `${bodies.length}.`, 'text/plain');
  });
  const socket = connectTls({ host: '127.0.0.1', port: listener.port, ca });
  t.after(() => socket.destroy());
  const head = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n';
  const chunked = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n';
  const parts = [`${head}one${head}t`, 'wo', `${chunked}2\r\nth\r\n3\r\nree\r\n0\r\n\r\n`];
  let answers = '';
  socket.setEncoding('utf8').on('data', (text: string) => (answers += text));
  for (const [index, part] of parts.entries()) {
    socket.write(part);
    while (!answers.endsWith(`${index + 1}.`)) await once(socket, 'data');
  }
  assert.deepEqual(bodies, ['one', 'two', 'three']);
});

test('the signal of a request aborts only if its client goes away before the response', async (t) => {
  const signals: AbortSignal[] = [];
  const { open, send } = await listen(t, async ({ path, signal }) => {
    assert.ok(signal);
    signals.push(signal);
    if (path === '/waits') await once(signal, 'abort');
    return completeResponse(200, 'ok', 'text/plain');
  });
  for (const path of ['/answered', '/waits']) {
    const session = open();
    const stream = session.request({ ':path': path }).on('error', () => undefined);
    const plain = send({ path }).end();
    if (path === '/answered') {
      const [[response], text] = await Promise.all([once(plain, 'response'), textOf(stream)]);
      assert.deepEqual([await textOf(response as IncomingMessage), text], ['ok', 'ok']);
    } else {
      while (signals.length < 4) await sleep(1);
    }
    plain.destroy();
    session.destroy();
  }
  const waiting = signals.slice(2);
  while (waiting.some(({ aborted }) => !aborted)) await sleep(1);
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false, false, true, true],
  );
});

test('a large response does not delay others on its connection', async (t) => {
  const large = 'x'.repeat(11 * 1024 * 1024);
  const { open } = await listen(t, async ({ path }) => ({
    status: 200,
    headers: {},
    body: textBody(path === '/large' ? large : 'small'),
  }));
  const session = open();
  const slow = session.request({ ':path': '/large' });
  await once(slow, 'response');
  assert.equal(await textOf(session.request({ ':path': '/small' })), 'small');
  assert.equal((await textOf(slow)).length, large.length);
});

test('a cancelled stream does not affect others on its connection', async (t) => {
  const gone: string[] = [];
  const { open } = await listen(t, async ({ path, signal }) => {
    signal?.addEventListener('abort', () => gone.push(path));
    return { status: 200, headers: {}, body: endless(signal) };
  });
  const session = open();
  const [one, two] = [session.request({ ':path': '/one' }), session.request({ ':path': '/two' })];
  await Promise.all([once(one, 'data'), once(two, 'data')]);
  one.close();
  while (gone.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(gone, ['/one']);
  assert.equal(session.closed, false);
});

test('an error within a response resets its stream, so that it does not look complete', async (t) => {
  const { open } = await listen(t, async () => ({
    status: 200,
    headers: {},
    body: (async function* () {
      yield* textBody('start');
      throw new Error('a fault');
    })(),
  }));
  const stream = open().request({ ':path': '/' });
  await assert.rejects(textOf(stream), { code: 'ERR_HTTP2_STREAM_ERROR' });
});

test('close ends HTTP/2 connections and their streams at once', async (t) => {
  let ended = 0;
  const { listener, open } = await listen(t, async ({ signal }) => {
    signal?.addEventListener('abort', () => ended++);
    return { status: 200, headers: {}, body: endless(signal) };
  });
  const sessions = [open(), open()];
  for (const session of sessions) {
    const stream = session.request({ ':path': '/' }).on('error', () => undefined);
    await once(stream, 'data');
  }
  const ends = sessions.map((session) => new Promise((resolve) => session.once('close', resolve)));
  await listener.close();
  assert.equal(ended, 2);
  await Promise.all(ends);
});

/** Starts, and ends with the signal. */
async function* endless(signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void> {
  yield* textBody('start');
  if (signal && !signal.aborted) await once(signal, 'abort');
}

test('a response over HTTP/1.1 does not wait for the acknowledgement of the previous one', async (t) => {
  const { listener, ca } = await listen(t, async () => {
    return { status: 200, headers: {}, body: textBody('whole') };
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const fourAnswers = async () => {
    const startMs = performance.now();
    for (let i = 0; i < 4; i++) {
      const asking = request({ host: '127.0.0.1', port: listener.port, ca, agent });
      asking.end();
      const [response] = (await once(asking, 'response')) as [AsyncIterable<Uint8Array>];
      assert.equal(await textOf(response), 'whole');
    }
    return performance.now() - startMs;
  };
  // Acknowledgements wait 40 ms for company. On a busy machine, one quick round in many is enough.
  let quickestMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 50 && quickestMs >= 40; round++) {
    quickestMs = Math.min(quickestMs, await fourAnswers());
  }
  assert.ok(quickestMs < 40, `${quickestMs} ms`);
});

test('a response does not wait for a body that the handler does not read', async (t) => {
  const { open, send } = await listen(t, answerStatus, { discardMs: 10 });
  for (const headers of [{}, { connection: 'keep-alive' }]) {
    const old = send({ method: 'POST', path: '/401', headers });
    old.write('start');
    const [response] = (await once(old, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 401);
    assert.equal(await textOf(response), '0 bytes');
    old.destroy();
  }
  const session = open();
  const stream = session.request({ ':method': 'POST', ':path': '/403' });
  stream.write('start');
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const reset = once(stream, 'close');
  assert.equal(await statusOf(stream), 403);
  await reset;
  assert.equal(Buffer.concat(chunks).toString(), '0 bytes');
  assert.equal(stream.rstCode, 0);
  const next = session.request({ ':method': 'PUT', ':path': '/200' }).end('whole');
  assert.equal(await statusOf(next), 200);
  assert.equal(await textOf(next), '5 bytes');
});

test('a client that sends a large body without waiting gets the response', async (t) => {
  const { open, send } = await listen(t, answerStatus);
  const body = Buffer.alloc(MAX_BODY_BYTES + 1);
  for (const [method, path, expected] of [
    ['POST', '/401', 401],
    ['PUT', '/200', 413],
  ] as const) {
    const old = send({ method, path });
    old.end(body);
    const [response] = (await once(old, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, expected);
    await textOf(response);
    const stream = open().request({ ':method': method, ':path': path });
    stream.end(body);
    assert.equal(await statusOf(stream), expected);
    await textOf(stream);
  }
});

test('a body that is too large is rejected before all of it has arrived', async (t) => {
  const { open, send } = await listen(t, answerStatus, { discardMs: 10 });
  const announced = { 'content-length': MAX_BODY_BYTES + 1 };
  const old = send({ method: 'PUT', path: '/200', headers: announced });
  old.write('start');
  const [response] = (await once(old, 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 413);
  old.destroy();
  const stream = open().request({ ':method': 'PUT', ':path': '/200' });
  const reset = once(stream.resume(), 'close');
  stream.write(Buffer.alloc(MAX_BODY_BYTES + 1));
  assert.equal(await statusOf(stream), 413);
  await reset;
  const largest = open().request({ ':method': 'PUT', ':path': '/200' });
  largest.end(Buffer.alloc(MAX_BODY_BYTES));
  assert.equal(await statusOf(largest), 200);
  assert.equal(await textOf(largest), `${MAX_BODY_BYTES} bytes`);
});

test('the slowest of many incomplete bodies are given up, over HTTP/2 and HTTP/1.1', async (t) => {
  const { open, send } = await listen(t, answerStatus, { maxReceivedBytes: 100_000 });
  const old = send({ method: 'PUT', path: '/200', headers: { 'transfer-encoding': 'chunked' } });
  const givenUp = new Promise((resolve) => old.once('close', resolve));
  old.write(Buffer.alloc(60_000));
  const session = open();
  const put = () =>
    session.request({ ':method': 'PUT', ':path': '/200' }).on('error', () => undefined);
  const first = put();
  first.write(Buffer.alloc(60_000));
  await givenUp;
  const reset = new Promise((resolve) => first.resume().once('close', resolve));
  const second = put();
  second.end(Buffer.alloc(60_000));
  assert.equal(await statusOf(second), 200);
  assert.equal(await textOf(second), '60000 bytes');
  await reset;
  const third = put();
  third.end(Buffer.alloc(90_000));
  assert.equal(await statusOf(third), 200);
});

test('`Expect: 100-continue` is answered only if the handler reads the body', async (t) => {
  const { send } = await listen(t, answerStatus);
  const headers = { expect: '100-continue' };
  for (const [method, path, expected] of [
    ['PUT', '/200', ['continue', 200, '4 bytes', 'keep-alive']],
    ['POST', '/401', [401, '0 bytes', 'close']],
  ] as const) {
    const seen: unknown[] = [];
    const asking = send({ method, path, headers: { ...headers, connection: 'keep-alive' } });
    asking.once('continue', () => {
      seen.push('continue');
      asking.end('body');
    });
    asking.flushHeaders();
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    seen.push(response.statusCode, await textOf(response), response.headers.connection);
    assert.deepEqual(seen, expected);
    asking.destroy();
  }
});

test('an HTTP/2 connection accepts no further requests after a response with 401', async (t) => {
  const { open } = await listen(t, answerStatus);
  for (const [path, isClosed] of [
    ['/200', false],
    ['/403', false],
    ['/401', true],
  ] as const) {
    const session = open();
    const stream = session.request({ ':path': path });
    const ended = once(stream, 'close');
    await textOf(stream);
    await ended;
    if (isClosed) await once(session, 'close');
    else assert.equal(await textOf(session.request({ ':path': '/200' })), '0 bytes');
  }
});

test('a new connection takes the place of the one that has been idle longest', async (t) => {
  const { listener, ca, open } = await listen(
    t,
    async ({ path, signal }) => ({
      status: 200,
      headers: {},
      body: path === '/watch' ? endless(signal) : textBody('whole'),
    }),
    { maxConnections: 3 },
  );
  const watch = open().request({ ':path': '/watch' });
  await once(watch, 'data');
  const used = open();
  const idle = connectTls({ host: '127.0.0.1', port: listener.port, ca }).resume();
  idle.on('error', () => undefined);
  await once(idle, 'secureConnect');
  assert.equal(await textOf(used.request({ ':path': '/' })), 'whole');
  const gone = closed(idle);
  assert.equal(await textOf(open().request({ ':path': '/' })), 'whole');
  await gone;
  assert.equal(await textOf(used.request({ ':path': '/' })), 'whole');
  assert.equal(watch.closed, false);
});

test('pipelined requests over HTTP/1.1 are all answered', async (t) => {
  const { listener, ca } = await listen(t, async (incoming) => {
    await withBody(incoming);
    return { status: 200, headers: {}, body: textBody('whole') };
  });
  for (const [head, body, count] of [
    [`GET /${'x'.repeat(200)} HTTP/1.1\r\nHost: a`, '', 500],
    ['PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 40000', 'x'.repeat(40_000), 20],
  ] as const) {
    const socket = connectTls({ host: '127.0.0.1', port: listener.port, ca });
    socket.write(`${head}\r\n\r\n${body}`.repeat(count - 1));
    socket.write(`${head}\r\nConnection: close\r\n\r\n${body}`);
    assert.equal((await textOf(socket)).split('HTTP/1.1 200 OK').length - 1, count);
  }
});

test('a request that names several hosts is refused', async (t) => {
  const { listener, ca } = await listen(t, answerStatus);
  for (const [second, status] of [
    ['Host: b', 400],
    ['host: a', 400],
    ['X-Host: b', 204],
  ] as const) {
    const socket = connectTls({ host: '127.0.0.1', port: listener.port, ca });
    socket.end(`GET /204 HTTP/1.1\r\nHost: a\r\n${second}\r\nConnection: close\r\n\r\n`);
    const [head] = (await once(socket, 'data')) as [Buffer];
    assert.match(head.toString(), new RegExp(`^HTTP/1.1 ${status} `), second);
    socket.destroy();
  }
});
