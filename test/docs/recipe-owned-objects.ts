import { Controller, done, HttpClient, OwnedObjects, runControllers } from 'crd-controller';
import { DEPLOYMENTS, SERVICES } from 'crd-controller/kinds';
import { ApiServer, FakeClock } from 'crd-controller/testing';
import type { ControllerKit, DeepReadonly, OwnedDraft } from 'crd-controller';
import type { Deployment, Service } from 'crd-controller/kinds';

const PORTS = 'example.com/ports';

/** Keeps a Service for each port in the annotation of a Deployment. */
function exposer(kit: ControllerKit): Controller {
  const deployments = kit.informers.for(DEPLOYMENTS);
  const services = kit.informers.for(SERVICES);
  const owned = new OwnedObjects(DEPLOYMENTS, 'exposer').add(services, {
    prune: true,
    adopt: ({ metadata }) => metadata.labels?.['expose'] === 'adopt',
  });
  return new Controller(kit, {
    name: 'exposer',
    kind: 'Deployment',
    sync: async (key, context) => {
      const deployment = deployments.lister.get(key);
      if (!deployment) return done();
      const ports = deployment.metadata.annotations?.[PORTS]?.split(',') ?? [];
      const desired = ports.map((port) => serviceOf(deployment, Number(port)));
      await owned.ensure(context, deployment, desired);
      return done();
    },
  })
    .for(deployments)
    .owns(owned);
}

function serviceOf({ metadata }: DeepReadonly<Deployment>, port: number): OwnedDraft<Service> {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `${metadata.name}-${port}` },
    spec: { selector: { app: metadata.name }, ports: [{ port }] },
  };
}

const clock = new FakeClock();
const handler = new ApiServer({ clock }).handler;
const client = new HttpClient({ handler, server: 'https://test', clock });
const stop = new AbortController();
const running = runControllers(
  { client, clock, controllers: (kit) => [exposer(kit)] },
  stop.signal,
);
const AT = { namespace: 'default', name: 'web' };
const labels = { app: 'web' };
await client.create(DEPLOYMENTS, {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { ...AT, annotations: { [PORTS]: '80,443' } },
  spec: {
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: { containers: [{ name: 'web', image: 'nginx' }] },
    },
  },
});
const names = async () => {
  await clock.advance(10_000);
  const { items } = await client.list(SERVICES, { namespace: 'default' });
  return items.map(({ metadata }) => metadata.name).join();
};
console.log(await names()); // prints: kubernetes,web-443,web-80
const body = { metadata: { annotations: { [PORTS]: '443' } } };
await client.patch(DEPLOYMENTS, AT, { type: 'merge', body });
console.log(await names()); // prints: kubernetes,web-443
stop.abort();
await clock.advance(30_000);
await running;
