import { HttpClient } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';
import { ApiServer, installWebhooks } from 'crd-controller/testing';
import { Webhooks } from 'crd-controller/webhook';

const names = { group: 'example.com', kind: 'Probe', plural: 'probes' };
const V1 = s.customResource({
  ...names,
  version: 'v1',
  spec: s.object({ timeoutSeconds: s.integer() }),
});
const V2 = s.customResource({
  ...names,
  version: 'v2',
  spec: s.object({ timeout: s.string() }),
  otherVersions: [V1],
});

const webhooks = new Webhooks().converts(V1, V2, {
  up: ({ spec: { timeoutSeconds } = {} }) => ({
    spec: { timeout: timeoutSeconds === undefined ? undefined : `${timeoutSeconds}s` },
  }),
  down: ({ spec: { timeout } = {} }) => ({
    spec: { timeoutSeconds: timeout === undefined ? undefined : Number.parseInt(timeout) },
  }),
});

const server = new ApiServer();
const client = new HttpClient({ handler: server.handler, server: 'https://test' });
await client.create(CUSTOM_RESOURCE_DEFINITIONS, V2.definition);
await installWebhooks(server, client, webhooks);

const at = { namespace: 'default', name: 'web' };
const web = { apiVersion: 'example.com/v1', kind: 'Probe', metadata: at };
await client.create(V1, { ...web, spec: { timeoutSeconds: 10 } });
console.log((await client.get(V2, at)).spec.timeout); // prints: 10s
await client.patch(V2, at, { type: 'merge', body: { spec: { timeout: '20s' } } });
console.log((await client.get(V1, at)).spec.timeoutSeconds); // prints: 20
