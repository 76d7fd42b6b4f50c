import { connectCluster, InformerSet, loadClusterConfig, textLogger } from 'crd-controller';
import { PODS } from 'crd-controller/kinds';

const log = textLogger();
const connection = connectCluster(await loadClusterConfig(), { log });
const informers = new InformerSet(connection.client, { log });
const pods = informers.for(PODS, { namespaces: ['default'] });
pods.addHandler({
  onAdd: (pod) => console.log('added', pod.metadata.name),
  onUpdate: (old, pod) => console.log('updated', pod.metadata.name, old.status?.phase),
  onDelete: (pod) => console.log('deleted', pod.metadata.name),
});

await informers.run(AbortSignal.timeout(60_000));
await connection.close();
