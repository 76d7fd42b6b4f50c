import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SECRETS } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { ObjectSync } from '../../../src/webhook/object-sync.ts';

test('syncs again at once after a change during a sync, otherwise after its delay', async () => {
  const clock = new FakeClock();
  const { handler } = new ApiServer({ clock });
  const client = new HttpClient({ handler, server: 'https://test', clock });
  const deps = { client, clock, log: silentLogger, random: () => 0 };
  const object = new ObjectSync(deps, SECRETS, { namespace: 'default', name: 'a' });
  const syncs: number[] = [];
  const sync = async () => {
    syncs.push(clock.monotonic());
    if (syncs.length === 1) object.changed();
    return 60_000;
  };
  const stop = new AbortController();
  const running = object.run(sync, stop.signal);
  await clock.advance(61_000);
  assert.deepEqual(syncs, [0, 0, 60_000]);
  stop.abort();
  await clock.advance(1000);
  await running;
});

test('syncs an object again within an hour, and lists it again after a failed write', async () => {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  const deps = { client, clock, log: silentLogger, random: () => 0 };
  const object = new ObjectSync(deps, SECRETS, { namespace: 'default', name: 'a' });
  const syncs: number[] = [];
  const stop = new AbortController();
  const running = object.run(async () => {
    syncs.push(clock.monotonic());
    return Infinity;
  }, stop.signal);
  await clock.advance(2 * 3_600_000);
  assert.deepEqual(syncs, [0, 3_600_000, 7_200_000]);
  const lists = () => server.requests.count({ verb: 'list', resource: 'secrets' });
  const [before, watches] = [lists(), server.requests.count({ verb: 'watch' })];
  await assert.rejects(
    object.write(() => Promise.reject(new Error('down'))),
    /down/,
  );
  await clock.advance(5000);
  assert.ok(lists() + server.requests.count({ verb: 'watch' }) > before + watches);
  stop.abort();
  await clock.advance(1000);
  await running;
});
