import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { HttpClient, isApiError, runControllers } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS, EVENTS } from 'crd-controller/kinds';
import { ApiServer, FakeClock, FakeFetch } from 'crd-controller/testing';
import { DNS_RECORDS, dnsRecordController } from '../dns-record.ts';

const AT = { namespace: 'default', name: 'www' };
const SPEC = {
  hostname: 'www.example.com',
  type: 'A' as const,
  values: ['192.0.2.1'],
  ttlSeconds: 300,
};
const MINUTE_MS = 60_000;

/** A DNS service. Each hostname can have one record. */
class DnsService {
  readonly records = new Map<string, { hostname: string }>();
  readonly calls = new FakeFetch();
  /** Status of all responses; 0: the service does not answer. */
  failsWith: number | undefined;

  constructor() {
    this.calls.respond = (request) => this.#respond(request);
  }

  get requests(): number {
    return this.calls.requests.length;
  }

  async #respond(request: Request): Promise<Response> {
    const { failsWith: status, records } = this;
    if (status === 0) await new Promise(() => undefined);
    if (status !== undefined) return new Response('out of order', { status });
    const id = request.url.split('/').at(-1) ?? '';
    if (request.method === 'PUT') {
      const record = (await request.json()) as { hostname: string };
      const isTaken = [...records].some(
        ([other, { hostname }]) => other !== id && hostname === record.hostname,
      );
      if (isTaken) return new Response('the hostname is taken', { status: 409 });
      records.set(id, record);
    }
    const record = records.get(id);
    if (request.method === 'DELETE') records.delete(id);
    return record ? Response.json({ id, ...record }) : new Response('not found', { status: 404 });
  }
}

async function start(context: TestContext) {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, DNS_RECORDS.definition);
  const service = new DnsService();
  const { fetch } = service.calls;
  const options = { service: 'https://dns.test/' };
  const stop = new AbortController();
  const running = runControllers(
    {
      client,
      clock,
      fetch,
      freeze: true,
      controllers: (kit) => [dnsRecordController(kit, options)],
    },
    stop.signal,
  );
  context.after(async () => {
    stop.abort();
    await clock.advance(MINUTE_MS);
    await running;
  });
  return {
    clock,
    server,
    client,
    service,
    create: (spec: object = {}) =>
      client.create(DNS_RECORDS, {
        apiVersion: 'example.com/v1',
        kind: 'DnsRecord',
        metadata: AT,
        spec: { ...SPEC, ...spec },
      }),
    ready: async () => {
      const { status } = await client.get(DNS_RECORDS, AT);
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      return `${ready?.status} ${ready?.reason}: ${ready?.message}`;
    },
    reasons: async () => (await client.list(EVENTS)).items.map(({ reason }) => reason),
  };
}

const SYNCED = 'True RecordSynced: A record www.example.com is at the service';

test('corrects changes at the service within six minutes, and writes nothing else', async (context) => {
  const { clock, server, client, service, create, ready, reasons } = await start(context);
  const { metadata } = await create();
  await clock.advance(1000);
  assert.equal(await ready(), SYNCED);
  assert.deepEqual(service.records.get(metadata.uid), SPEC);

  const { revision } = server;
  const { requests } = service;
  await clock.advance(60 * MINUTE_MS);
  assert.equal(server.revision, revision);
  const checks = service.requests - requests;
  assert.ok(checks >= 10 && checks <= 12, `${checks} requests in an hour`);

  service.records.clear();
  await clock.advance(6 * MINUTE_MS);
  assert.deepEqual(service.records.get(metadata.uid), SPEC);
  assert.deepEqual(new Set(await reasons()), new Set(['RecordSynced', 'DriftCorrected']));

  const values = ['192.0.2.2'];
  await client.patch(DNS_RECORDS, AT, { type: 'merge', body: { spec: { values } } });
  await clock.advance(1000);
  assert.deepEqual(service.records.get(metadata.uid), { ...SPEC, values });
});

test('retries with backoff while the service fails or does not answer', async (context) => {
  const { clock, service, create, ready } = await start(context);
  service.failsWith = 503;
  await create();
  await clock.advance(1000);
  assert.match(await ready(), /^False ServiceFailed: GET to https:\/\/dns.test failed: .* 503$/);
  await clock.advance(MINUTE_MS);
  assert.ok(service.requests >= 4 && service.requests <= 7, `${service.requests} requests`);
  service.failsWith = 0;
  await clock.advance(2 * MINUTE_MS);
  assert.match(await ready(), /^False ServiceUnreachable: GET to https:\/\/dns.test failed/);
  service.failsWith = undefined;
  await clock.advance(6 * MINUTE_MS);
  assert.equal(await ready(), SYNCED);
});

test('reports a rejected record, and creates it when the hostname is free', async (context) => {
  const { clock, service, create, ready, reasons } = await start(context);
  service.records.set('other', { hostname: 'www.example.com' });
  await create();
  await clock.advance(MINUTE_MS);
  assert.equal(
    await ready(),
    'False RecordRejected: the service answered 409: the hostname is taken',
  );
  assert.equal(service.requests, 2);
  assert.deepEqual(await reasons(), ['RecordRejected']);
  service.records.clear();
  await clock.advance(6 * MINUTE_MS);
  assert.equal(await ready(), SYNCED);
});

test('a deleted DnsRecord stays until its record is deleted at the service', async (context) => {
  const { clock, client, service, create, ready } = await start(context);
  await create();
  await clock.advance(1000);
  service.failsWith = 500;
  await client.delete(DNS_RECORDS, AT);
  await clock.advance(MINUTE_MS);
  assert.match(await ready(), /^False ServiceFailed/);
  assert.equal(service.records.size, 1);
  service.failsWith = undefined;
  await clock.advance(2 * MINUTE_MS);
  assert.equal(service.records.size, 0);
  await assert.rejects(client.get(DNS_RECORDS, AT), (error) => isApiError(error, 'notFound'));
});
