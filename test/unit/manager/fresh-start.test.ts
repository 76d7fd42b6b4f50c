import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LEASES, NAMESPACES } from '../../../src/api/builtin.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { freshStart } from '../../../src/manager/fresh-start.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';

function fixture() {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  const informers = new InformerSet(client, { clock });
  const ran: string[] = [];
  const start = (name: string, resources: readonly Resource[], signal: AbortSignal) => {
    const controller = {
      name,
      informers: resources.map((resource) => informers.for<KubernetesObject>(resource)),
      run: async () => void ran.push(name),
    };
    return freshStart(controller, { clock, log: silentLogger, random: () => 0 }).run(signal);
  };
  return { clock, server, informers, ran, start };
}

test('a controller runs once all of its caches are there and fresh; one holds up no other', async () => {
  const { clock, server, informers, ran, start } = fixture();
  const stop = new AbortController();
  server.faults.beforeRequest(({ info }) => (info?.resource === 'namespaces' ? 403 : undefined));
  const held = start('held', [LEASES, NAMESPACES], stop.signal);
  const free = start('free', [LEASES, { ...LEASES, group: 'missing.example.com' }], stop.signal);
  await clock.advance(5000);
  assert.deepEqual(ran, [], 'no cache is there');
  const running = informers.run(stop.signal);
  await clock.advance(5000);
  assert.deepEqual(ran, ['free']);
  server.faults.clear();
  await clock.advance(60_000);
  assert.deepEqual(ran, ['free', 'held']);
  stop.abort();
  await Promise.all([held, free, running]);
});

test('a controller that is stopped before never runs', async () => {
  const { ran, start } = fixture();
  const stop = new AbortController();
  const run = start('late', [LEASES], stop.signal);
  await settle();
  stop.abort();
  await run;
  assert.deepEqual(ran, []);
});
