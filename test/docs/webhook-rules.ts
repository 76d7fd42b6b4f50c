import { HttpClient, isApiError } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';
import { ApiServer, installWebhooks } from 'crd-controller/testing';
import { invalid, Webhooks } from 'crd-controller/webhook';

const VOLUMES = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Volume',
  plural: 'volumes',
  spec: s.object({ size: s.integer({ minimum: 1 }), replicas: s.optional(s.integer()) }),
});

export const webhooks = new Webhooks()
  .defaults(VOLUMES, (draft) => {
    draft.spec.replicas ??= 3;
  })
  .validates(VOLUMES, ({ metadata }) =>
    metadata.name?.startsWith('tmp') ? [invalid('metadata.name', 'must not start with tmp')] : [],
  )
  .rules(VOLUMES, [
    {
      rule: 'self.spec.size >= oldSelf.spec.size',
      message: 'must not shrink',
      fieldPath: '.spec.size',
    },
  ]);

const server = new ApiServer();
const client = new HttpClient({ handler: server.handler, server: 'https://test' });
await client.create(CUSTOM_RESOURCE_DEFINITIONS, VOLUMES.definition);
await installWebhooks(server, client, webhooks);

const at = { namespace: 'default', name: 'data' };
const data = { apiVersion: 'example.com/v1', kind: 'Volume', metadata: at, spec: { size: 5 } };
const { spec } = await client.create(VOLUMES, data);
console.log(spec.replicas); // prints: 3
try {
  await client.patch(VOLUMES, at, { type: 'merge', body: { spec: { size: 4 } } });
} catch (error) {
  console.log(isApiError(error, 'invalid') && error.message.endsWith('spec.size: must not shrink')); // prints: true
}
