import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { HttpServer } from '../../../src/serving/http-server.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { silentLogger } from '../../../src/util/logger.ts';

/** Resolves to whether a server accepts connections at the port. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.on('error', () => resolve(false)).once('connect', () => socket.destroy());
  });
}

test('responds to requests in progress after it has closed its port', async () => {
  const arrived = new Deferred();
  const text = new Deferred<string>();
  const metrics = async () => {
    arrived.resolve();
    return { contentType: 'text/plain', text: await text.promise };
  };
  const server = new HttpServer(
    { log: silentLogger },
    { name: 'test', bindAddress: '127.0.0.1:0', routes: { metrics }, drainTimeoutMs: 60_000 },
  );
  const stop = new AbortController();
  const running = server.run(stop.signal);
  const address = await server.listening;
  const response = fetch(`http://${address}/metrics`);
  await arrived.promise;
  stop.abort();
  while (await accepts(Number(address.split(':')[1])));
  text.resolve('up 1\n');
  assert.equal(await (await response).text(), 'up 1\n');
  await running;
});
