import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { messageOf } from '../../util/values.ts';
import { untilAborted } from '../../util/abort.ts';
import type { EnvtestProgram } from './program.ts';
import { parseGoFlags, flagNames } from './go-flags.ts';
import { nodeHttp } from '../../util/node-http.ts';

/** The flags of etcd 3.7. */
const FLAGS = {
  names: flagNames(`
    advertise-client-urls auth-token auth-token-ttl auto-compaction-mode auto-compaction-retention auto-tls
    backend-batch-interval backend-batch-limit backend-bbolt-freelist-type bcrypt-cost
    bootstrap-defrag-threshold-megabytes cert-file cipher-suites client-cert-allowed-hostname
    client-cert-auth client-cert-file client-crl-file client-key-file compact-hash-check-time
    compaction-batch-limit compaction-sleep-interval config-file corrupt-check-time cors data-dir discovery
    discovery-cacert discovery-cert discovery-dial-timeout discovery-endpoints discovery-fallback
    discovery-insecure-skip-tls-verify discovery-insecure-transport discovery-keepalive-time
    discovery-keepalive-timeout discovery-key discovery-password discovery-proxy discovery-request-timeout
    discovery-srv discovery-srv-name discovery-token discovery-user distributed-tracing-address
    distributed-tracing-instance-id distributed-tracing-sampling-rate distributed-tracing-service-name
    downgrade-check-time election-timeout enable-distributed-tracing enable-grpc-gateway enable-log-rotation
    enable-pprof feature-gates force-new-cluster grpc-keepalive-interval grpc-keepalive-min-time
    grpc-keepalive-timeout h heartbeat-interval help host-whitelist initial-advertise-peer-urls
    initial-cluster initial-cluster-state initial-cluster-token initial-election-tick-advance key-file
    listen-client-http-urls listen-client-urls listen-metrics-urls listen-peer-urls log-format log-level
    log-outputs log-rotation-config-json logger max-concurrent-streams max-learners max-request-bytes
    max-snapshots max-txn-ops max-wals memory-mlock metrics name peer-auto-tls peer-cert-allowed-cn
    peer-cert-allowed-hostname peer-cert-file peer-client-cert-auth peer-client-cert-file
    peer-client-key-file peer-crl-file peer-key-file peer-skip-client-san-verification peer-trusted-ca-file
    pre-vote quota-backend-bytes raft-read-timeout raft-write-timeout self-signed-cert-validity
    snapshot-catchup-entries snapshot-count socket-reuse-address socket-reuse-port strict-reconfig-check
    tls-max-version tls-min-version trusted-ca-file unsafe-no-fsync v2-deprecation version wal-dir
    warning-apply-duration warning-unary-request-duration watch-progress-notify-interval`),
  booleans: flagNames(`
    auto-tls client-cert-auth discovery-insecure-skip-tls-verify discovery-insecure-transport
    enable-distributed-tracing enable-grpc-gateway enable-log-rotation enable-pprof force-new-cluster h help
    initial-election-tick-advance memory-mlock peer-auto-tls peer-client-cert-auth
    peer-skip-client-san-verification pre-vote socket-reuse-address socket-reuse-port strict-reconfig-check
    unsafe-no-fsync version`),
};

const DOCUMENTS: Readonly<Record<string, object>> = {
  '/health': { health: 'true', reason: '' },
  '/livez': {},
  '/readyz': {},
  '/version': { etcdserver: '3.7.0', etcdcluster: '3.7.0', storage: '3.7.0' },
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
    print('etcd Version: 3.7.0');
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
  const server = nodeHttp().createServer(({ url = '' }, response) => {
    const document = DOCUMENTS[url.replace(/\?.*/, '')];
    response.writeHead(document ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document ?? {}));
  });
  server.listen(Number(port || 80), hostname.replaceAll(/[[\]]/g, ''));
  await once(server, 'listening');
  return server;
}
