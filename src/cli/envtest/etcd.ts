import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { messageOf } from '../../util/values.ts';
import { untilAborted } from '../../util/abort.ts';
import type { EnvtestProgram } from './program.ts';
import { parseGoFlags, flagNames } from './go-flags.ts';

const FLAGS = {
  names: flagNames(`
    advertise-client-urls auto-compaction-mode auto-compaction-retention data-dir force-new-cluster h help
    initial-advertise-peer-urls initial-cluster initial-cluster-state initial-cluster-token listen-client-urls
    listen-metrics-urls listen-peer-urls log-level log-outputs logger max-request-bytes max-txn-ops name
    quota-backend-bytes snapshot-count unsafe-no-fsync version`),
  booleans: flagNames('force-new-cluster h help unsafe-no-fsync version'),
};

const DOCUMENTS: Readonly<Record<string, object>> = {
  '/health': { health: 'true', reason: '' },
  '/livez': {},
  '/readyz': {},
  '/version': { etcdserver: '3.6.0', etcdcluster: '3.6.0', storage: '3.6.0' },
};

/** Stands in for etcd: answers health checks. The API server keeps its objects itself. */
export const etcd: EnvtestProgram = async (args, { signal, print, warn }) => {
  const flags = parseGoFlags(args, FLAGS);
  if (flags.kind === 'wrong') {
    warn(`etcd: ${flags.problem}`);
    return 2;
  }
  if (flags.values.has('help') || flags.values.has('h')) {
    print([...FLAGS.names].map((name) => `  --${name}`).join('\n'));
    return 0;
  }
  if (flags.values.has('version')) {
    print('etcd Version: 3.6.0');
    return 0;
  }
  const servers: Server[] = [];
  try {
    const urls = flags.values.get('listen-client-urls') ?? 'http://localhost:2379';
    for (const url of urls.split(',')) {
      const server = await listen(new URL(url));
      servers.push(server);
      warn(`etcd: answers health checks at port ${(server.address() as AddressInfo).port}`);
    }
    await untilAborted(signal);
    return 0;
  } catch (error) {
    warn(`etcd: ${messageOf(error)}`);
    return 1;
  } finally {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  }
};

async function listen({ protocol, hostname, port }: URL): Promise<Server> {
  if (protocol !== 'http:') throw new Error('client URLs must start with http://');
  const server = createServer(({ url = '' }, response) => {
    const document = DOCUMENTS[url.replace(/\?.*/, '')];
    response.writeHead(document ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document ?? {}));
  });
  server.listen(Number(port || 80), hostname.replaceAll(/[[\]]/g, ''));
  await once(server, 'listening');
  return server;
}
