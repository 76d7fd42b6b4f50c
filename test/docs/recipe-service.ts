import { callService, HttpClient, objectController, requeueAfter } from 'crd-controller';
import { runControllers } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';
import { ApiServer, FakeClock, FakeFetch } from 'crd-controller/testing';
import type { Controller, ControllerKit, SyncContext } from 'crd-controller';

const ZONES = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Zone',
  plural: 'zones',
  spec: s.object({ domain: s.string(), server: s.string() }),
  status: s.status({ url: s.optional(s.string()), serial: s.optional(s.integer()) }),
});

/** Keeps a zone at a server for each Zone. Its id there is the uid, so that a repeated PUT creates no second one. */
function zoneController(kit: ControllerKit): Controller {
  return objectController(kit, kit.informers.for(ZONES), {
    name: 'zone',
    finalizer: 'example.com/zone',
    reconcile: async ({ metadata, spec, status }, context) => {
      const { domain, server } = spec;
      const url = `${server}/${metadata.uid}`;
      if (status?.url !== url) {
        if (status?.url !== undefined) await remove(context, status.url);
        // Stored before the request that creates the zone: `cleanUp` removes it, whatever happens next.
        const message = `Moving to ${server}`;
        return {
          kind: 'reconciling',
          reason: 'Moving',
          message,
          status: { url, serial: undefined },
        };
      }
      if (status.serial === undefined) {
        const response = await callService(context, 'PUT', url, { body: { domain } });
        const { serial } = (await response.json()) as { serial: number };
        // Stored even if the next call fails.
        context.status.serial = serial;
      }
      const response = await callService(context, 'GET', `${url}/delegation`, { accept: [404] });
      const delegated = response.ok
        ? ({ status: 'True', reason: 'Found', message: 'The parent zone has NS records' } as const)
        : ({ status: 'False', reason: 'NotFound', message: 'No NS records were found' } as const);
      return {
        kind: 'ready',
        reason: 'Registered',
        message: `${domain} is registered`,
        conditions: [{ type: 'Delegated', ...delegated }],
        // No event reports changes at the service.
        outcome: requeueAfter(60_000, 'checks the delegation', { jitter: 0.1 }),
      };
    },
    cleanUp: async ({ status }, context) => {
      if (status?.url !== undefined) await remove(context, status.url);
    },
  });
}

async function remove(context: SyncContext, url: string): Promise<void> {
  // Repeated after a crash: then the server answers 404.
  await callService(context, 'DELETE', url, { accept: [404] });
}

const clock = new FakeClock();
const service = new FakeFetch();
const handler = new ApiServer({ clock }).handler;
const client = new HttpClient({ handler, server: 'https://test', clock });
await client.create(CUSTOM_RESOURCE_DEFINITIONS, ZONES.definition);
const stop = new AbortController();
const running = runControllers(
  { client, clock, fetch: service.fetch, controllers: (kit) => [zoneController(kit)] },
  stop.signal,
);
const AT = { namespace: 'default', name: 'acme' };
const condition = async (type: string) => {
  const { status } = await client.get(ZONES, AT);
  const found = status?.conditions?.find((each) => each.type === type);
  return `${found?.status} ${found?.reason}`;
};

service.answer('PUT', new Error('refused'), 503, Response.json({ serial: 7 }));
service.respond = ({ method }) => (method === 'GET' ? 404 : 200);
const spec = { domain: 'acme.org', server: 'https://dns.test/zones' };
await client.create(ZONES, { apiVersion: 'example.com/v1', kind: 'Zone', metadata: AT, spec });
await clock.advance(10_000);
console.log(await condition('Ready')); // prints: True Registered
console.log(await condition('Delegated')); // prints: False NotFound
service.answer('PUT https://other.test', Response.json({ serial: 1 }));
const body = { spec: { server: 'https://other.test/zones' } };
await client.patch(ZONES, AT, { type: 'merge', body });
await clock.advance(1_000);
const writes = service.calls.filter((call) => !call.startsWith('GET')).slice(-2);
console.log(writes.map((call) => call.split('/zones')[0]).join()); // prints: DELETE https://dns.test,PUT https://other.test
service.respond = () => 503;
await client.delete(ZONES, AT);
await clock.advance(60_000);
console.log(await condition('Ready')); // prints: False ServiceFailed
service.respond = () => 404;
await clock.advance(300_000);
console.log((await client.list(ZONES)).items.length); // prints: 0
stop.abort();
await clock.advance(30_000);
await running;
