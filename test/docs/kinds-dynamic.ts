import { HttpClient, InformerSet, keyOf } from 'crd-controller';
import { RestMapper } from 'crd-controller/client';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const mapper = new RestMapper(client);
const resource = await mapper.get('v1', 'ConfigMap');
console.log(resource.plural, resource.namespaced, resource.verbs.includes('watch')); // prints: configmaps true true
console.log((await mapper.resolve('deploy')).kind); // prints: Deployment

const metadata = { namespace: 'default', name: 'colours' };
const stored = await client.create(resource, {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata,
  data: { sky: 'blue' },
});
console.log(stored['data']); // prints: { sky: 'blue' }

const informers = new InformerSet(client);
const informer = informers.for(resource, { namespace: 'default' });
const stop = new AbortController();
const running = informers.run(stop.signal);
await informer.addHandler({}).synced;
const cached: unknown = informer.lister.get(keyOf(stored))?.['data'];
console.log(cached); // prints: { sky: 'blue' }
stop.abort();
await running;
