/**
 * Compares the embedded API server with kube-apiserver on generated requests: sequences of creates, updates,
 * patches, applies, deletions and lists of several kinds, with invalid values. Prints each kind of difference with a
 * short sequence that shows it.
 *
 *   node hack/api-fuzz/main.ts [OPERATIONS [SEED [LIMIT]]]    100,000 operations by default
 */
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { credentialsOf } from '../../src/client/kube-config/credentials.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import { http1Transport } from '../../src/client/transport/transport.ts';
import { startRealControlPlane } from '../envtest/real-control-plane.ts';
import { compareServers, describe } from './compare.ts';

const [operations = 100_000, seed = Date.now() % 2 ** 31, limit = 100] = process.argv
  .slice(2)
  .map(Number);

const real = await startRealControlPlane((line) => console.error(`api-fuzz: ${line}`));
const server = new ApiServer();
const config = await loadClusterConfig({ kubeconfig: real.kubeconfigPath });
const credentials = credentialsOf(config);
const transport = http1Transport({ server: config.server, tls: () => credentials.tls() });
try {
  const found = await compareServers(
    server.handler,
    async (request) =>
      transport.handle({
        ...request,
        headers: { ...(await credentials.headers()), ...request.headers },
      }),
    { seed, operations, limit },
  );
  for (const difference of found) console.log(`${describe(difference)}\n`);
  console.log(`${operations} operations, seed ${seed}: ${found.length} kinds of differences`);
  if (found.length > 0) process.exitCode = 1;
} finally {
  await transport.close();
  await server.close();
  await real.stop();
}
