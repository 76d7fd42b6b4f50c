import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpClient, runControllers } from 'crd-controller';
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, EVENTS } from 'crd-controller/kinds';
import { ApiServer, FakeClock } from 'crd-controller/testing';
import { greetingController, GREETINGS } from './greeting-controller.ts';

const AT = { namespace: 'default', name: 'hello' };

test('keeps a ConfigMap with the text, and waits while another object has its name', async () => {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, GREETINGS.definition);
  const stop = new AbortController();
  const running = runControllers(
    { client, clock, controllers: (kit) => [greetingController(kit)] },
    stop.signal,
  );
  const ready = async () => {
    await clock.advance(10_000);
    const { status } = await client.get(GREETINGS, AT);
    return status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
  };

  // An unowned ConfigMap has the name.
  await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: AT });
  await client.create(GREETINGS, {
    apiVersion: 'example.com/v1',
    kind: 'Greeting',
    metadata: AT,
    spec: { text: 'Hello' },
  });
  assert.equal(await ready(), 'ErrResourceExists');

  // Its deletion enqueues the Greeting.
  await client.delete(CONFIG_MAPS, AT);
  assert.equal(await ready(), 'Synced');
  assert.deepEqual((await client.get(CONFIG_MAPS, AT)).data, { text: 'Hello' });

  // Changes of the spec and of the ConfigMap are reconciled.
  await client.patch(GREETINGS, AT, { type: 'merge', body: { spec: { text: 'Good day' } } });
  await client.patch(CONFIG_MAPS, AT, { type: 'merge', body: { data: { text: 'Bye' } } });
  assert.equal(await ready(), 'Synced');
  assert.deepEqual((await client.get(CONFIG_MAPS, AT)).data, { text: 'Good day' });

  // Nothing is written in steady state.
  const { revision } = server;
  await clock.advance(3_600_000);
  assert.equal(server.revision, revision);
  const reasons = (await client.list(EVENTS)).items.map(({ reason }) => reason);
  assert.deepEqual(new Set(reasons), new Set(['ErrResourceExists', 'Synced']));

  stop.abort();
  await clock.advance(30_000);
  await running;
});
