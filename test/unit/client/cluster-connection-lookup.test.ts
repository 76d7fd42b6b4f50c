import assert from 'node:assert/strict';
import type { LookupFunction } from 'node:net';
import { test } from 'node:test';
import type { ClusterConfig } from '../../../src/client/kube-config/cluster-config.ts';
import { connectCluster } from '../../../src/client/cluster-connection.ts';
import { noRestClientMetrics } from '../../../src/metrics/no-metrics.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { serve } from './server.ts';

/** Requests the version of `server`, with a slow resolver. */
async function askedOnce(server: string, { proxyUrl }: { readonly proxyUrl?: string } = {}) {
  const clock = new FakeClock();
  await clock.advance(1000);
  const resolved: object[] = [];
  const lookup: LookupFunction = (host, { all }, callback) => {
    const takesMs = host === 'slow.test' ? 250 : 7;
    clock.after(takesMs, () => {
      if (host.startsWith('missing')) callback(new Error(`ENOTFOUND ${host}`), []);
      else if (all) callback(null, [{ address: '127.0.0.1', family: 4 }]);
      else callback(null, '127.0.0.1', 4);
    });
    void clock.advance(takesMs);
  };
  const metrics = {
    ...noRestClientMetrics,
    resolved: (measurement: object) => resolved.push(measurement),
  };
  const config: ClusterConfig = {
    server,
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
    source: 'test',
    insecureSkipTlsVerify: false,
    credentials: { kind: 'none' },
    namespace: 'default',
  };
  const connection = connectCluster(config, { clock, metrics, lookup });
  const ask = () =>
    connection.client.raw({ method: 'GET', path: '/version' }).then(
      () => 'answered',
      () => 'failed',
    );
  const first = await ask();
  // Wait until the connection is idle.
  await settle();
  const answers = [first, await ask()];
  await connection.close();
  return { answers, resolved };
}

test('measures the name resolution once for each connection', async (t) => {
  const { port } = await serve(t, (_, response) => response.end('{}'));
  const { answers, resolved } = await askedOnce(`http://slow.test:${port}`);
  assert.deepEqual(answers, ['answered', 'answered']);
  assert.deepEqual(resolved, [{ host: 'slow.test', seconds: 0.25 }]);
});

test('measures the resolution of a name that is not found', async () => {
  const { answers, resolved } = await askedOnce('http://missing.test:1');
  assert.deepEqual(new Set(answers), new Set(['failed']));
  assert.deepEqual(resolved[0], { host: 'missing.test', seconds: 0.007 });
});

test('measures no addresses, and with a proxy the name of the proxy', async (t) => {
  const { url, port } = await serve(t, (_, response) => response.end('{}'));
  assert.deepEqual((await askedOnce(url)).resolved, []);
  const proxyUrl = `http://proxy.test:${port}`;
  const { resolved } = await askedOnce('http://server.test:80', { proxyUrl });
  assert.deepEqual(resolved[0], { host: 'proxy.test', seconds: 0.007 });
});
