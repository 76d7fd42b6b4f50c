import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import type { ApiServerOptions } from '../../../../src/apiserver/api-server-options.ts';
import { FrameReader, acceptHandshake } from '../../../../src/apiserver/http/websocket.ts';
import { protocolToken } from '../../../../src/apiserver/http/websocket-request.ts';
import { pod } from '../../../conformance/objects.ts';

const HANDSHAKE = {
  connection: 'keep-alive, Upgrade',
  upgrade: 'WebSocket',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-version': '13',
};
const PING = 0x89;
const CLOSE = 0x88;

function ping(payload: Uint8Array): Uint8Array {
  const mask = [7, 8, 9, 10];
  const length =
    payload.length < 126
      ? [0x80 | payload.length]
      : [0xfe, payload.length >> 8, payload.length & 255];
  return Uint8Array.of(
    PING,
    ...length,
    ...mask,
    ...payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0)),
  );
}

test('frames are read however they are divided', () => {
  const bytes = Buffer.concat([
    ping(Buffer.from('one')),
    ping(Buffer.alloc(0)),
    ping(Buffer.from('2')),
  ]);
  for (const size of [1, 2, 5, 9, bytes.length]) {
    const reader = new FrameReader();
    const pongs: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      const { response, isClosed } = reader.read(bytes.subarray(at, at + size));
      assert.equal(isClosed, false);
      pongs.push(response);
    }
    assert.equal(Buffer.concat(pongs).toString('latin1'), '\x8a\x03one\x8a\x00\x8a\x012');
  }
});

test('a ping that is too long is answered with its start', () => {
  const { response } = new FrameReader().read(ping(Buffer.alloc(300, 'a')));
  assert.equal(Buffer.from(response).toString('latin1'), `\x8a\x7d${'a'.repeat(125)}`);
});

test('a close frame, a frame without a mask and a frame that is too large end the connection', () => {
  const closed = (...bytes: number[]) => new FrameReader().read(Uint8Array.from(bytes));
  assert.deepEqual([...closed(CLOSE, 0x80, 0, 0, 0, 0).response], []);
  assert.equal(closed(CLOSE, 0x80, 0, 0, 0, 0).isClosed, true);
  assert.deepEqual([...closed(PING, 0).response], [CLOSE, 2, 0x03, 0xea]);
  const huge = [0x82, 0xff, 0, 0, 0, 0, 0x02, 0, 0, 1, 0, 0, 0, 0];
  assert.equal(closed(...huge).isClosed, true);
  assert.equal(closed(...huge.with(9, 0)).isClosed, false);
});

test('a bearer token can be a subprotocol, which is not selected', () => {
  const protocol = (...names: string[]) => ({
    ...HANDSHAKE,
    origin: '/',
    'sec-websocket-protocol': names.join(', '),
  });
  const bearer = `base64url.bearer.authorization.k8s.io.${Buffer.from('secret').toString('base64url')}`;
  assert.equal(protocolToken(protocol(bearer, 'other')), 'secret');
  assert.equal(protocolToken(protocol(bearer)), undefined);
  assert.equal(protocolToken(protocol(bearer, bearer, 'other')), undefined);
  assert.equal(protocolToken({ 'sec-websocket-protocol': `${bearer}, other` }), undefined);
  const accepted = acceptHandshake(protocol(bearer, 'other'), 'lines');
  assert.equal(accepted.headers['sec-websocket-protocol'], 'other');
});

async function serve(t: TestContext, options: ApiServerOptions = {}) {
  const server = new ApiServer(options);
  const { port, token, caPem: ca } = await server.listen();
  t.after(() => server.close());
  const send = (options: RequestOptions, headers: Record<string, string> = {}) =>
    request({
      host: '127.0.0.1',
      port,
      ca,
      agent: false,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...options,
    }).on('error', () => undefined);
  const upgrade = async (path: string, headers = {}): Promise<Duplex> => {
    const sent = send({ path }, { ...HANDSHAKE, origin: '/', ...headers });
    const [, socket, head] = (await once(sent.end(), 'upgrade')) as [unknown, Duplex, Uint8Array];
    socket.unshift(head);
    t.after(() => socket.destroy());
    return socket;
  };
  return { server, send, upgrade };
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test('a watch over a WebSocket ends when its client goes away', async (t) => {
  const { server, upgrade } = await serve(t);
  const socket = await upgrade('/api/v1/configmaps?watch=1');
  assert.equal(server.watches, 1);
  socket.destroy();
  while (server.watches > 0) await new Promise((resolve) => setImmediate(resolve));
});

test('a WebSocket whose handshake is rejected leaves no watch behind', async (t) => {
  const { server, send } = await serve(t);
  const sent = send({ path: '/api/v1/configmaps?watch=1' }, HANDSHAKE);
  const [response] = (await once(sent.end(), 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 403);
  assert.equal(server.watches, 0);
  response.resume();
});

test('dropped watches break a WebSocket without a close frame', async (t) => {
  const { server, upgrade } = await serve(t);
  const socket = await upgrade('/api/v1/namespaces?watch=1&resourceVersion=1');
  server.faults.dropWatches();
  assert.ok(!(await textOf(socket)).includes('\x88'));
});

test('an upgrade to another protocol is ignored, and the body of the request is received', async (t) => {
  const { send } = await serve(t);
  const sent = send(
    { method: 'POST', path: '/api/v1/namespaces/default/configmaps' },
    { connection: 'Upgrade', upgrade: 'h2c', 'content-type': 'application/json' },
  );
  sent.end(JSON.stringify({ metadata: { name: 'a' }, data: { long: 'x'.repeat(100_000) } }));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 201, await textOf(response));
});

test('a log over a WebSocket has an empty message and then the text, in the form of the subprotocol', async (t) => {
  const kubelet = async () => ({
    status: 200,
    headers: {},
    body: (async function* () {
      yield Buffer.from('line\n');
    })(),
  });
  const { server, upgrade } = await serve(t, { kubelets: () => kubelet });
  const post = (path: string, body: object) =>
    server.handler({ method: 'POST', path, headers: {}, body: JSON.stringify(body) });
  await post('/api/v1/nodes', { metadata: { name: 'n' } });
  const running = pod('p');
  running.spec.nodeName = 'n';
  await post('/api/v1/namespaces/default/pods', running);
  const path = '/api/v1/namespaces/default/pods/p/log';
  const binary = await upgrade(path);
  assert.equal(
    await textOf(binary),
    Buffer.from('\x82\x00\x82\x05line\n\x88\x02\x03\xe8', 'latin1').toString(),
  );
  const base64 = await upgrade(path, { 'sec-websocket-protocol': 'x, base64.binary.k8s.io' });
  assert.ok((await textOf(base64)).includes(Buffer.from('line\n').toString('base64')));
  const reply = await server.handler({
    method: 'POST',
    path: path.replace('log', 'exec'),
    headers: {},
  });
  assert.equal(reply.status, 400, 'an exec needs another protocol');
});
