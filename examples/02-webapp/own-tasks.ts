/**
 * WebApps with tasks of one's own, instead of the program's, until SIGTERM or SIGINT. Where the cluster
 * is: --kubeconfig, $KUBECONFIG, the service account of the Pod, ~/.kube/config.
 */
import { parseArgs } from 'node:util';
import { connectCluster, loadClusterConfig, runControllers, textLogger } from 'crd-controller';
import { webAppWithPage } from './page-task.ts';

const { values } = parseArgs({ options: { kubeconfig: { type: 'string' } } });

const log = textLogger({ verbosity: 2 });
const cluster = await loadClusterConfig({ kubeconfig: values.kubeconfig });
const connection = connectCluster(cluster, { log });
try {
  await runControllers({
    client: connection.client,
    log,
    controllers: (kit) => [webAppWithPage(kit)],
  });
} finally {
  await connection.close();
}
