import { Controller, done, Finalizer, HttpClient, requeueAfter } from 'crd-controller';
import { runControllers } from 'crd-controller';
import { NAMESPACES } from 'crd-controller/kinds';
import { ApiServer, FakeClock } from 'crd-controller/testing';
import type { ControllerKit } from 'crd-controller';

/** An external system. */
const buckets = new Set<string>();

/** Keeps a bucket for each Namespace. */
function bucketController(kit: ControllerKit): Controller {
  const namespaces = kit.informers.for(NAMESPACES, { labelSelector: 'bucket=yes' });
  const finalizer = new Finalizer(NAMESPACES, 'example.com/bucket', 'bucket-controller');
  return new Controller(kit, {
    name: 'bucket',
    kind: 'Namespace',
    sync: async (key, context) => {
      const namespace = namespaces.lister.get(key);
      if (!namespace) return done();
      const { uid } = namespace.metadata;
      return finalizer.sync(namespace, context, {
        apply: async () => {
          buckets.add(uid);
          // Another program may delete the bucket, and no event reports it.
          return requeueAfter(60_000, 'checks its bucket', { jitter: 0.1 });
        },
        cleanUp: async () => {
          buckets.delete(uid);
          return undefined; // Nothing is left: the finalizer is removed.
        },
      });
    },
  }).for(namespaces);
}

const clock = new FakeClock();
const handler = new ApiServer({ clock }).handler;
const client = new HttpClient({ handler, server: 'https://test', clock });
const stop = new AbortController();
const running = runControllers(
  { client, clock, controllers: (kit) => [bucketController(kit)] },
  stop.signal,
);
await client.create(NAMESPACES, {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'team', labels: { bucket: 'yes' } },
});
await clock.advance(5000);
console.log(buckets.size); // prints: 1
await client.delete(NAMESPACES, { name: 'team' });
await clock.advance(5000);
console.log(buckets.size); // prints: 0
stop.abort();
await clock.advance(30_000);
await running;
