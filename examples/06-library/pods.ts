import { parseArgs } from 'node:util';
import { connectCluster, loadClusterConfig, runControllers, textLogger } from 'crd-controller';
import { podController } from './pod-controller.ts';

const { values } = parseArgs({
  options: {
    kubeconfig: { type: 'string' },
    namespace: { type: 'string', multiple: true },
    state: { type: 'string', default: 'pods.state.json' },
    v: { type: 'string', short: 'v', default: '0' },
  },
});

const log = textLogger({ verbosity: Number(values.v) });
const connection = connectCluster(await loadClusterConfig({ kubeconfig: values.kubeconfig }), {
  log,
});
try {
  await runControllers({
    client: connection.client,
    log,
    controllers: (kit) => [
      podController(kit, {
        stateFile: values.state,
        namespaces: values.namespace ?? [],
        print: (line) => process.stdout.write(`${line}\n`),
      }),
    ],
  });
} finally {
  await connection.close();
}
