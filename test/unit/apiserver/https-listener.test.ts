import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import type { ClientHttp2Session } from 'node:http2';
import { Agent, request } from 'node:https';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { listenHttps } from '../../../src/apiserver/https-listener.ts';
import type { HttpHandler, HttpRequest } from '../../../src/util/http.ts';
import { createCertificateAuthority } from '../../../src/util/x509.ts';

async function listen(t: TestContext, handler: HttpHandler) {
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
  });
  t.after(() => listener.close());
  const ca = authority.certificatePem;
  const open = (): ClientHttp2Session => {
    const session = connect(`https://127.0.0.1:${listener.port}`, { ca });
    session.on('error', () => undefined);
    t.after(() => session.destroy());
    return session;
  };
  return { listener, ca, open };
}

async function* textBody(...parts: readonly string[]): AsyncGenerator<Uint8Array, void> {
  for (const part of parts) yield Buffer.from(part);
}

async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test('the handler is asked the same over HTTP/2 and HTTP/1.1', async (t) => {
  const seen: Omit<HttpRequest, 'signal'>[] = [];
  const { listener, ca, open } = await listen(t, async ({ signal: _, ...rest }) => {
    seen.push(rest);
    return { status: 201, headers: { 'x-answer': 'yes' }, body: textBody('a', 'b') };
  });
  const body = 'x'.repeat(300_000);
  const stream = open().request({ ':method': 'POST', ':path': '/api?x=1', 'x-own': 'one' });
  stream.end(body);
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
  assert.deepEqual([headers[':status'], headers['x-answer']], [201, 'yes']);
  assert.equal(await textOf(stream), 'ab');

  const { port } = listener;
  const old = request({
    host: '127.0.0.1',
    port,
    ca,
    method: 'POST',
    path: '/api?x=1',
    headers: { 'x-own': 'one' },
    agent: false,
  });
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

test('a large answer leaves room for others on its connection', async (t) => {
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

test('a client that goes away is noticed on its stream alone', async (t) => {
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

test('a fault in an answer resets its stream, which a client tells from an end', async (t) => {
  const { open } = await listen(t, async () => ({
    status: 200,
    headers: {},
    body: (async function* () {
      yield* textBody('begun');
      throw new Error('a fault');
    })(),
  }));
  const stream = open().request({ ':path': '/' });
  await assert.rejects(textOf(stream), { code: 'ERR_HTTP2_STREAM_ERROR' });
});

test('close ends HTTP/2 connections at once, with what they carry', async (t) => {
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
  const closed = sessions.map(
    (session) => new Promise((resolve) => session.once('close', resolve)),
  );
  await listener.close();
  assert.equal(ended, 2);
  await Promise.all(closed);
});

/** Begins, and ends with the signal. */
async function* endless(signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void> {
  yield* textBody('begun');
  if (signal && !signal.aborted) await once(signal, 'abort');
}

test('an answer over HTTP/1.1 does not wait until the client has acknowledged the one before', async (t) => {
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
