import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import type { Duplex } from 'node:stream';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api } from './api.ts';
import { configMap, configMaps } from './objects.ts';

let api: Api;
let space: string;

before(async () => {
  api = await Api.start();
  space = await api.namespace();
  await api.made(api.post(configMaps(space), configMap('a')));
});

after(() => api.close());

const HANDSHAKE = {
  upgrade: 'websocket',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-version': '13',
  origin: 'https://localhost',
};
const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

interface Message {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** Yields the messages that the server sends. */
async function* messagesFrom(socket: Duplex): AsyncGenerator<Message, void> {
  let bytes = Buffer.alloc(0);
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 2) {
      const [first = 0, short = 0] = bytes;
      const start = short < 126 ? 2 : 4;
      if (bytes.length < start) break;
      const end = start + (short < 126 ? short : bytes.readUInt16BE(2));
      if (bytes.length < end) break;
      yield { opcode: first & 0x0f, payload: bytes.subarray(start, end) };
      bytes = bytes.subarray(end);
    }
  }
}

function maskedFrame(opcode: number, text: string): Uint8Array {
  const mask = [1, 2, 3, 4];
  const payload = Buffer.from(text).map((byte, index) => byte ^ (mask[index % 4] ?? 0));
  return Uint8Array.of(0x80 | opcode, 0x80 | payload.length, ...mask, ...payload);
}

async function open(query: string, headers: Record<string, string> = {}) {
  const path = `${configMaps(space)}?watch=true&fieldSelector=metadata.name=a${query}`;
  const {
    status,
    socket,
    headers: received,
  } = await api.upgrade(path, { ...HANDSHAKE, ...headers });
  assert.equal(status, 101);
  assert.ok(socket);
  const messages = messagesFrom(socket);
  const next = async (): Promise<Message> => {
    const { value } = await messages.next();
    assert.ok(value, 'the server closed the connection');
    return value;
  };
  return { socket, received, next };
}

const eventIn = ({ opcode, payload }: Message): Json => {
  assert.equal(opcode, TEXT);
  assert.ok(payload.toString().endsWith('}\n'));
  return JSON.parse(payload.toString());
};

test('a watch sends each event as a text message, and closes normally at its timeout', async () => {
  const { received, next } = await open('&timeoutSeconds=1');
  assert.equal(received['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  const { type, object } = eventIn(await next());
  assert.deepEqual([type, object.kind, object.metadata.name], ['ADDED', 'ConfigMap', 'a']);
  const { opcode, payload } = await next();
  assert.deepEqual([opcode, payload.readUInt16BE()], [CLOSE, 1000]);
});

test('a watch over a WebSocket sends later events and answers pings', async () => {
  const { socket, next } = await open('');
  eventIn(await next());
  socket.write(maskedFrame(TEXT, 'ignored'));
  socket.write(maskedFrame(PING, 'hello'));
  const { opcode, payload } = await next();
  assert.deepEqual([opcode, payload.toString()], [PONG, 'hello']);
  await api.made(api.patch(`${configMaps(space)}/a`, { data: { a: '2' } }));
  const { type, object } = eventIn(await next());
  assert.deepEqual([type, object.data], ['MODIFIED', { a: '2' }]);
  socket.write(maskedFrame(CLOSE, ''));
  assert.equal((await next()).opcode, CLOSE);
});

test('a watch over a WebSocket has the representation that the client accepts', async () => {
  const { next } = await open('', {
    accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  });
  assert.equal(eventIn(await next()).object.kind, 'PartialObjectMetadata');
});

test('a frame without a mask is a protocol error', async () => {
  const { socket, next } = await open('');
  eventIn(await next());
  socket.write(Uint8Array.of(0x89, 0));
  const { opcode, payload } = await next();
  assert.deepEqual([opcode, payload.readUInt16BE()], [CLOSE, 1002]);
});

test('a watch over a WebSocket requires an Origin header of any host', async () => {
  const path = `${configMaps(space)}?watch=true`;
  const statusWith = async (headers: Record<string, string>) => {
    const { socket, status } = await api.upgrade(path, headers);
    socket?.destroy();
    return status;
  };
  const { origin: _origin, ...without } = HANDSHAKE;
  assert.equal(await statusWith(without), 403);
  assert.equal(await statusWith({ ...without, origin: 'null' }), 403);
  assert.equal(await statusWith({ ...without, origin: 'http://elsewhere.example' }), 101);
});

test('a handshake of another version, without a key or with several protocols is rejected', async () => {
  const path = `${configMaps(space)}?watch=true`;
  const { 'sec-websocket-key': _key, ...withoutKey } = HANDSHAKE;
  const version = await api.upgrade(path, { ...HANDSHAKE, 'sec-websocket-version': '8' });
  assert.deepEqual([version.status, version.headers['sec-websocket-version']], [400, '13']);
  assert.equal((await api.upgrade(path, withoutKey)).status, 400);
  const protocols = { ...HANDSHAKE, 'sec-websocket-protocol': 'one, two' };
  assert.equal((await api.upgrade(path, protocols)).status, 400);
  const { socket, received } = await open('', { 'sec-websocket-protocol': 'one' });
  assert.equal(received['sec-websocket-protocol'], 'one');
  socket.destroy();
});

test('an upgrade of a request that is no watch is ignored', async () => {
  const list = await api.upgrade(configMaps(space), HANDSHAKE);
  assert.deepEqual([list.status, JSON.parse(list.text).kind], [200, 'ConfigMapList']);
  const invalid = await api.upgrade(`${configMaps(space)}?watch=true&resourceVersion=x`, HANDSHAKE);
  assert.equal(JSON.parse(invalid.text).kind, 'Status');
  const other = await api.upgrade(`${configMaps(space)}/a`, { upgrade: 'h2c' });
  assert.deepEqual([other.status, JSON.parse(other.text).kind], [200, 'ConfigMap']);
});
