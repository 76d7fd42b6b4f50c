import { HttpClient } from 'crd-controller';
import { CONFIG_MAPS, DEPLOYMENTS } from 'crd-controller/kinds';
import type { Container, Deployment } from 'crd-controller/kinds';
import type { ApplyConfiguration } from 'crd-controller/objects';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const at = { namespace: 'default', name: 'web' };
const container: Container = { name: 'app', image: 'nginx:1.29', imagePullPolicy: 'Always' };
const body: ApplyConfiguration<Deployment> = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', labels: { app: 'web', tier: 'front' } },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    // `contaners` does not compile.
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [container] } },
  },
};
await client.patch(DEPLOYMENTS, at, { type: 'apply', body }, { fieldManager: 'example' });

// `null` removes a field; `replicas: '3'` does not compile.
const patch = { type: 'merge', body: { spec: { replicas: 3, paused: null } } } as const;
const { spec } = await client.patch(DEPLOYMENTS, at, patch);
console.log(spec.replicas); // prints: 3

const labelSelector = {
  matchLabels: { app: 'web' },
  matchExpressions: [{ key: 'tier', operator: 'In', values: ['front', 'back'] }],
} as const;
console.log((await client.list(DEPLOYMENTS, { labelSelector })).items.length); // prints: 1
console.log((await client.list(CONFIG_MAPS, { labelSelector })).items.length); // prints: 0
