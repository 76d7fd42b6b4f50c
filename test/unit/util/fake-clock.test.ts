import assert from 'node:assert/strict';
import { it } from 'node:test';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Controller } from '../../../src/manager/controller.ts';
import { runControllers } from '../../../src/manager/run-controllers.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { done } from '../../../src/workqueue/outcome.ts';

const AT = { namespace: 'default', name: 'x' };
const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap', metadata: AT };

function server() {
  const clock = new FakeClock();
  const { handler } = new ApiServer({ clock });
  return { clock, client: new HttpClient({ handler, server: 'https://test', clock }) };
}

it('advance rejects, and names controller and key, if a controller keeps itself busy', async () => {
  const { clock, client } = server();
  const stop = new AbortController();
  let isLooping = true;
  const running = runControllers(
    {
      client,
      clock,
      log: silentLogger,
      controllers: (kit) => [
        new Controller(kit, {
          name: 'looping',
          kind: 'ConfigMap',
          sync: async (key) => {
            if (key !== 'default/x' || !isLooping) return done();
            // Not the client of the sync, whose writes are slowed down.
            await client.delete(CONFIG_MAPS, AT);
            await client.create(CONFIG_MAPS, CONFIG_MAP);
            return done();
          },
        }).for(kit.informers.for(CONFIG_MAPS)),
      ],
    },
    stop.signal,
  );
  await client.create(CONFIG_MAPS, CONFIG_MAP);
  const expected =
    /time stays at 2026-01-01T[^]*controller "looping" synced default\/x \d+ times: .*ConfigMap default\/x .*[^]*DELETE \/api\/v1\/namespaces\/default\/configmaps\/x \(100 times\)/;
  await assert.rejects(clock.advance(10_000), expected);
  // The process and the server stay usable, and the controller can be stopped.
  assert.ok((await client.list(CONFIG_MAPS)).items.length > 0);
  isLooping = false;
  await clock.advance(10_000);
  stop.abort();
  await clock.advance(60_000);
  await running;
});

it('advance rejects, and names controller and key, if a sync repeats a request without end', async () => {
  const { clock, client } = server();
  const stop = new AbortController();
  const fix = new AbortController();
  const running = runControllers(
    {
      client,
      clock,
      log: silentLogger,
      controllers: (kit) => [
        new Controller(kit, {
          name: 'endless',
          kind: 'ConfigMap',
          sync: async (key) => {
            if (key !== 'default/x') return done();
            while (!fix.signal.aborted) {
              await client.patch(CONFIG_MAPS, AT, { type: 'merge', body: {} });
            }
            return done();
          },
        }).for(kit.informers.for(CONFIG_MAPS)),
      ],
    },
    stop.signal,
  );
  // The end of this sync is recorded.
  await client.create(CONFIG_MAPS, { ...CONFIG_MAP, metadata: { ...AT, name: 'ended' } });
  await clock.advance(1000);
  await client.create(CONFIG_MAPS, CONFIG_MAP);
  await assert.rejects(clock.advance(10_000), ({ message }: Error) => {
    assert.match(message, /controller "endless" .* default\/x: ConfigMap default\/x added/);
    assert.match(message, /PATCH \/api\/v1\/namespaces\/default\/configmaps\/x/);
    assert.doesNotMatch(message, /default\/ended/);
    return true;
  });
  fix.abort();
  await clock.advance(10_000);
  stop.abort();
  await clock.advance(60_000);
  await running;
});

it('advance rejects if an object is read again without end', async () => {
  const clock = new FakeClock();
  clock.after(1000, () => {
    for (let count = 0; count < 10_000; count++) {
      void clock.active({ kind: 'request', method: 'GET', path: '/api/v1/nodes/x' });
    }
  });
  await assert.rejects(clock.advance(5000), /GET \/api\/v1\/nodes\/x \(10000 times\)/);
});

it('advance rejects if a timer is set again for the same time without end', async () => {
  const clock = new FakeClock();
  let isLooping = true;
  const again = () => {
    if (isLooping) clock.after(0, again);
  };
  clock.after(1000, again);
  const advanced = clock.advance(5000);
  await assert.rejects(advanced, /time stays at 2026-01-01T00:00:01\.000Z[^]*timers/);
  isLooping = false;
});

it('requests in a chain of promises leave turns to other callbacks', async () => {
  const { client } = server();
  const seen: string[] = [];
  setImmediate(() => seen.push('turn'));
  for (let count = 0; count < 1000; count++) await client.list(CONFIG_MAPS, { limit: 1 });
  seen.push('end');
  assert.deepEqual(seen, ['turn', 'end']);
});
