/**
 * Compares the embedded API server with kube-apiserver on generated requests: sequences of creates, updates,
 * patches, applies, deletions, lists and watches of all built-in kinds and of custom kinds, with invalid values, as JSON,
 * YAML, tables and metadata. Values follow from the schemas of kinds: limits, formats and other types. One custom kind has
 * several versions, CRDs with rules in CEL are written in dry runs, and users have permissions of each form. Prints each kind of difference
 * with a short sequence that shows it, as soon as it is found.
 *
 *   node hack/api-fuzz/main.ts [OPERATIONS [SEED [LIMIT]]]    100,000 operations by default
 *   node hack/api-fuzz/main.ts fields [PATTERN]               each field of the built-in kinds that match: ^apps/v1/
 *
 * It starts etcd and kube-apiserver itself. A sequence has 25 requests; 5,000 operations take about a minute and a
 * half on two cores, and longer while there are many differences, because each is shortened. The events of a watch are
 * compared at the end of its sequence, after both servers have sent the same number of them, or after a second. Run
 * several seeds rather than one long run: a server that holds the objects of many sequences is slower. Differences
 * that remain on purpose, with their reasons, are in `accepted.ts`.
 */
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { credentialsOf } from '../../src/client/kube-config/credentials.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import { http1Transport } from '../../src/client/transport/transport.ts';
import { startRealControlPlane } from '../envtest/real-control-plane.ts';
import { compareServers, describe } from './compare.ts';
import { eachField } from './each-field.ts';
import { randomSequences } from './requests.ts';

const [first = '', ...others] = process.argv.slice(2);
const isOfFields = first === 'fields';
const [operations = 100_000, seed = Date.now() % 2 ** 31, limit = 100] = isOfFields
  ? []
  : [first, ...others].filter(Boolean).map(Number);
const sequences = isOfFields
  ? eachField(new RegExp(others[0] ?? '.'))
  : randomSequences(seed, operations);

const real = await startRealControlPlane(
  (line) => console.error(`api-fuzz: ${line}`),
  // As the embedded server has it: enough addresses for the Services of all sequences.
  ['--service-cluster-ip-range=10.96.0.0/12'],
);
const server = new ApiServer({ storageProtection: true });
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
    { sequences, limit, report: (found) => console.log(`${describe(found)}\n`) },
  );
  const what = isOfFields ? 'fields' : `${operations} operations, seed ${seed}`;
  console.log(`${what}: ${found.length} kinds of differences`);
  if (found.length > 0) process.exitCode = 1;
} finally {
  await transport.close();
  await server.close();
  await real.stop();
}
