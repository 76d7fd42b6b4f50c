import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { ApiError } from '../../../../src/api/api-error.ts';
import {
  isConnectionRefused,
  isNeverSent,
} from '../../../../src/client/transport/connection-error.ts';
import type { TlsMaterial } from '../../../../src/client/transport/dial.ts';
import type { Transport, TransportOptions } from '../../../../src/client/transport/transport.ts';
import { undiciTransport } from '../../../../src/client/transport/transport.ts';
import type { HttpRequest, HttpResponse } from '../../../../src/util/http.ts';
import { FakeClock, settle } from '../../../../src/util/fake-clock.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';
import { bodyOf, serve, serveTls } from '../server.ts';

function open(t: TestContext, options: TransportOptions): Transport {
  const transport = undiciTransport(options);
  t.after(() => transport.close());
  return transport;
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

test('a request and its answer pass unchanged, under the path of the server', async (t) => {
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

test('both sides prove who they are by certificates', async (t) => {
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

  const stranger = open(t, { server: url, tls: () => ({ ca: authority.certificatePem }) });
  const error = await failure(get(stranger));
  assert.equal(error.kind, 'unreachable');
  assert.match(error.message, /did not accept this client's certificate|connection broke/);
});

test('rotated TLS material takes effect with the next request, and old connections end', async (t) => {
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

test('a server of an unknown authority is refused, in words that say what to do', async (t) => {
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

test('the name in the certificate counts, unless another is expected', async (t) => {
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

test('refused, unresolved and not TLS are told apart', async (t) => {
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
  assert.match(notTls.message, /does not speak TLS/);

  const unresolved = await failure(get(open(t, { server: 'https://nobody.invalid' })));
  assert.match(unresolved.message, /host name cannot be resolved/);
  assert.ok(!isConnectionRefused(unresolved));
});

test('a TLS handshake that does not come to an end is given up', async (t) => {
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
  assert.match((await outcome).message, /no connection within the time allowed/);
});

test('an abort ends a request that waits, and a body that is being read, with its reason', async (t) => {
  const { url, server } = await serve(t, (request, response) => {
    if (request.url === '/stream') response.write('begun');
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
      assert.equal(Buffer.from(chunk).toString(), 'begun');
      reading.abort(reason);
    }
  }, reason);

  await assert.rejects(get(transport, { signal: AbortSignal.abort(reason) }), reason);
});

test('leaving a body closes its connection', async (t) => {
  const { url, server } = await serve(t, (_request, response) => response.write('begun'));
  const transport = open(t, { server: url });
  const connection = once(server, 'connection');
  const response = await get(transport);
  const [socket] = (await connection) as [Socket];
  const closed = once(socket, 'close');
  const reading = response.body[Symbol.asyncIterator]();
  await reading.next();
  await reading.return?.();
  await closed;
});

test('a connection that breaks in mid body is an error, read or not', async (t) => {
  const { url } = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('begun', () => response.destroy());
  });
  const transport = open(t, { server: url });
  const error = await failure(get(transport).then(textOf));
  assert.equal(error.kind, 'unreachable');
  assert.match(error.message, /connection broke before the answer was complete/);
  await get(transport);
  await settle(50);
});

test('watches do not hold up requests', async (t) => {
  const { url } = await serve(t, (request, response) => {
    if (request.url === '/watch') response.write('begun');
    else response.end('ok');
  });
  const transport = open(t, { server: url });
  await Promise.all(Array.from({ length: 50 }, () => get(transport, { path: '/watch' })));
  assert.equal(await textOf(await get(transport)), 'ok');
});

test('many calls under one signal leave no listener behind and raise no warning', async (t) => {
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

test('a request is judged when there is a connection for it, not when it was made', async (t) => {
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
