import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { startEmbeddedCluster } from '../../../../src/cli/embedded/embedded-cluster.ts';
import { silentLogger } from '../../../../src/util/logger.ts';

const HOST = '127.0.0.1';

test('listens on a free port if the previous one is in use, and only then', async (context) => {
  const other = createServer().listen(0, HOST);
  context.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const cluster = await startEmbeddedCluster(
    { host: HOST, port: 0, previousPort: port },
    silentLogger,
  );
  assert.notEqual(Number(new URL(cluster.url).port), port);
  await cluster.close();
  await assert.rejects(startEmbeddedCluster({ host: HOST, port }, silentLogger), {
    name: 'UsageError',
    message: new RegExp(`Port ${port} on ${HOST} is in use`),
  });
});

test('reports an address that does not belong to the machine', async () => {
  await assert.rejects(startEmbeddedCluster({ host: '192.0.2.1', port: 0 }, silentLogger), {
    name: 'UsageError',
    message: /--host/,
  });
});
