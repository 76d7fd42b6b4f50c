/**
 * Runs the operator: `node main.ts --hub=CONTEXT --member=CONTEXT --member=CONTEXT`, with contexts of the kubeconfig.
 * Several replicas can run; one of them leads.
 */
import { parseArgs } from 'node:util';
import { connectCluster, loadClusterConfig, runControllers, textLogger } from 'crd-controller';
import { secretCopiers } from './secret-copier.ts';

const { values } = parseArgs({
  options: {
    kubeconfig: { type: 'string' },
    hub: { type: 'string' },
    member: { type: 'string', multiple: true, default: [] },
    v: { type: 'string', short: 'v', default: '0' },
  },
});
const log = textLogger({ verbosity: Number(values.v) });
const connect = async (context: string | undefined) =>
  connectCluster(await loadClusterConfig({ kubeconfig: values.kubeconfig, context }), { log });

const hub = await connect(values.hub);
const members = new Map<string, Awaited<ReturnType<typeof connect>>>();
for (const name of values.member) members.set(name, await connect(name));
try {
  await runControllers({
    name: 'secret-copier',
    client: hub.client,
    log,
    leaderElection: true,
    controllers: (kit) =>
      secretCopiers(kit, new Map(Array.from(members, ([name, { client }]) => [name, client]))),
  });
} finally {
  await Promise.all([hub, ...members.values()].map((connection) => connection.close()));
}
