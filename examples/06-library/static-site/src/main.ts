/**
 * Runs the controller until SIGTERM or SIGINT. Configuration of the cluster, in order of precedence:
 * --kubeconfig, $KUBECONFIG, the service account of the Pod, ~/.kube/config.
 */
import { parseArgs } from 'node:util';
import { connectCluster, loadClusterConfig, runControllers, textLogger } from 'crd-controller';
import { staticSiteController } from './controller.ts';

const { values } = parseArgs({
  options: {
    kubeconfig: { type: 'string' },
    v: { type: 'string', short: 'v', default: '2' },
  },
});

const log = textLogger({ verbosity: Number(values.v) });
const cluster = await loadClusterConfig({ kubeconfig: values.kubeconfig });
const connection = connectCluster(cluster, { log });
try {
  await runControllers({
    client: connection.client,
    log,
    controllers: (kit) => [staticSiteController(kit)],
  });
} finally {
  await connection.close();
}
