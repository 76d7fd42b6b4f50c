import { connectCluster, InformerSet, loadClusterConfig } from 'crd-controller';
import { NODES, PODS } from 'crd-controller/kinds';

const connection = connectCluster(await loadClusterConfig());
const informers = new InformerSet(connection.client, {
  // Applies to every informer of the set. The reflector controls paging and resourceVersion.
  tweakListOptions: (options, { plural }) =>
    plural === 'pods' ? { ...options, fieldSelector: 'status.phase!=Succeeded' } : options,
});

// One list and one watch in each namespace, for programs with Roles and no ClusterRole.
// Handlers, listers and indexes see one informer.
const pods = informers.for(PODS, {
  namespaces: ['a', 'b'],
  labelSelector: 'app=web',
  pageSize: 100,
  transform: (pod) => {
    delete pod.metadata.annotations;
    return pod;
  },
});
pods.addIndexers({ node: ({ spec }) => (spec?.nodeName ? [spec.nodeName] : []) });

// Metadata alone is sent, cached and typed: there is no `spec` to read.
const nodes = informers.for(NODES, { metadataOnly: true });

const registration = pods.addHandler(
  { onAdd: ({ metadata }) => console.log(metadata.name, 'runs'), onDelete: () => {} },
  // Pods that start or stop running are added or deleted, until `registration.remove()`.
  { filter: ({ status }) => status?.phase === 'Running', resyncPeriodMs: 600_000 },
);

const stop = AbortSignal.timeout(60_000);
const running = informers.run(stop);
await informers.synced; // The caches are filled,
await registration.synced; // and the handler was called for every cached object.
console.log(nodes.lister.size, pods.lister.byIndex('node', 'node-1').length);
await running;
await connection.close();
