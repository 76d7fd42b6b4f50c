import { HttpClient, silentLogger } from 'crd-controller';
import { PODS } from 'crd-controller/kinds';
import { ApiServer, Cluster, FakeClock } from 'crd-controller/testing';

const clock = new FakeClock();
const server = new ApiServer({ clock });
const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
const stop = new AbortController();
const running = new Cluster({ client, clock, log: silentLogger }).run(stop.signal);

await client.create(PODS, {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'default', name: 'web' },
  spec: { containers: [{ name: 'app', image: 'nginx' }] },
});
await clock.advance(60_000);
const pod = await client.get(PODS, { namespace: 'default', name: 'web' });
console.log(pod.status?.phase); // prints: Running

stop.abort();
await clock.advance(1000);
await running;
