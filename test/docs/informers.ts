import { connectCluster, InformerSet, loadClusterConfig, NODES, PODS } from 'crd-controller';

const connection = connectCluster(await loadClusterConfig());
const informers = new InformerSet(connection.client, {
  // Of every informer of the set; pages and resourceVersions stay the machinery's.
  tweakListOptions: (options, { plural }) =>
    plural === 'pods' ? { ...options, fieldSelector: 'status.phase!=Succeeded' } : options,
});

// A list and a watch in each namespace, for those who have Roles there and no ClusterRole. To
// handlers, listers and indexes it is one informer; `within('a')` tells how far one has come.
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

const seat = pods.addHandler(
  { onAdd: ({ metadata }) => console.log(metadata.name, 'runs'), onDelete: () => {} },
  // It hears of a Pod when it begins to run, and when it ceases to; until `seat.remove()`.
  { filter: ({ status }) => status?.phase === 'Running', resyncPeriodMs: 600_000 },
);

const stop = AbortSignal.timeout(60_000);
const running = informers.run(stop);
await informers.synced; // The caches are filled,
await seat.synced; // and the handler has heard of all that there was.
console.log(nodes.lister.size, pods.lister.byIndex('node', 'node-1').length);
await running;
await connection.close();
