import { Controller, done, HttpClient, keyOf, runControllers } from 'crd-controller';
import { NAMESPACES } from 'crd-controller/kinds';
import { ApiServer, FakeClock } from 'crd-controller/testing';
import type { ControllerKit } from 'crd-controller';

/** Creates the Namespaces of a remote cluster that have a label in this cluster, too. */
function copier(kit: ControllerKit, remote: ControllerKit): Controller {
  const theirs = remote.informers.for(NAMESPACES, { labelSelector: 'copy=yes' });
  const ours = kit.informers.for(NAMESPACES);
  return new Controller(kit, {
    name: `copier-${remote.cluster}`,
    kind: 'Namespace',
    sync: async (key, { client, signal }) => {
      if (!theirs.lister.get(key) || ours.lister.get(key)) return done();
      const draft = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: key } };
      await client.create(NAMESPACES, draft, { signal });
      return done();
    },
  })
    .watches(theirs, keyOf)
    .watches(ours, keyOf);
}

const clock = new FakeClock();
const connect = (server: string) =>
  new HttpClient({
    handler: new ApiServer({ clock }).handler,
    server,
    clock,
    namespace: 'default',
  });
const client = connect('https://hub');
const clusters = new Map(['a', 'b'].map((name) => [name, connect(`https://${name}`)]));
const stop = new AbortController();
const running = runControllers(
  {
    name: 'copier',
    client,
    clock,
    leaderElection: true,
    controllers: (kit) =>
      Array.from(clusters, ([name, remote]) => copier(kit, kit.forCluster(name, remote))),
  },
  stop.signal,
);
for (const [name, remote] of clusters) {
  const metadata = { name: `team-${name}`, labels: { copy: 'yes' } };
  await remote.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
}
await clock.advance(10_000);
const { items } = await client.list(NAMESPACES);
const copied = items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('team'));
console.log(copied.join()); // prints: team-a,team-b
stop.abort();
await clock.advance(30_000);
await running;
