import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { maxClientConnections } from '../../../src/util/descriptor-limit.ts';
import { ConnectionPool, ServerConnections } from '../../../src/util/server-connections.ts';
import { closed } from '../../support/closed.ts';

async function serve(t: TestContext, pool: ConnectionPool, maxConnections = 1000) {
  const server = createServer((_, response) => response.end('ok'));
  const connections = new ServerConnections(server, {
    maxConnections,
    firstRequestMs: 10_000,
    idleMs: 10_000,
    pool,
  });
  server.listen(0);
  await once(server, 'listening');
  t.after(async () => {
    connections.destroy();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  const dial = async (localAddress = '127.0.0.1') => {
    const accepted = once(server, 'connection');
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined).resume();
    await accepted;
    return socket;
  };
  return { connections, dial };
}

test('servers share the connections of the process: the one with most gives up its own', async (t) => {
  const pool = new ConnectionPool(4);
  const busy = await serve(t, pool);
  const probes = await serve(t, pool);
  const first = await busy.dial();
  for (let more = 0; more < 3; more++) await busy.dial();
  const probe = await probes.dial();
  await closed(first);
  for (let more = 0; more < 10; more++) await busy.dial();
  assert.deepEqual([busy.connections.size, probes.connections.size], [3, 1]);
  probe.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(probe, 'data');
});

test('addresses with many connections do not replace those of others', async (t) => {
  const { connections, dial } = await serve(t, new ConnectionPool(100), 4);
  const other = await dial('127.0.0.2');
  for (let more = 0; more < 10; more++) await dial();
  assert.equal(connections.size, 4);
  other.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(other, 'data');
});

test('descriptors remain for everything but connections', () => {
  assert.deepEqual(
    [16, 64, 256, 1024, 65_536].map((limit) => maxClientConnections(limit)),
    [8, 24, 192, 768, 49_152],
  );
  assert.ok(maxClientConnections() >= 8);
});
