import { ApiServer } from '../../apiserver/api-server.ts';
import type { ApiServerOptions, Listening } from '../../apiserver/api-server-options.ts';
import type { KubernetesVersion } from '../../apiserver/objects/kubernetes-version.ts';
import { FolderLockedError } from '../../apiserver/storage/folder-lock.ts';
import type { ClusterConnection } from '../../client/cluster-connection.ts';
import { connectCluster } from '../../client/cluster-connection.ts';
import { HttpClient } from '../../client/http-client.ts';
import { Cluster } from '../../cluster/cluster.ts';
import type { ClusterOptions } from '../../cluster/cluster.ts';
import { systemClock } from '../../util/clock.ts';
import type { ApiServerMetrics } from '../../metrics/api-server-metrics.ts';
import type { Logger } from '../../util/logger.ts';
import { goQuote } from '../../util/go-quote.ts';
import { CLUSTER_CONTROLLERS_AGENT, clusterPages } from './cluster-pages.ts';
import { paced } from './controller-pace.ts';
import { kindsWithSimulationWarning } from './simulation-warning.ts';
import { pathError, UsageError } from '../common/errors.ts';
import type { ServerIdentity } from './kubeconfig-file.ts';

/** Options of `startEmbeddedCluster`. */
export interface EmbeddedClusterOptions {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  /**
   * Tried first if `port` is 0.
   * @default none
   */
  readonly previousPort?: number | undefined;
  /** @default a new identity */
  readonly identity?: ServerIdentity | undefined;
  /** @default none: objects are in memory only */
  readonly dataDir?: string | undefined;
  /** @default the version that the server behaves like */
  readonly kubernetesVersion?: KubernetesVersion | undefined;
  /**
   * Whether new Pods need an existing ServiceAccount.
   * @default false
   */
  readonly serviceAccounts?: boolean | undefined;
  /**
   * Whether objects of storage are protected while they are in use.
   * @default false
   */
  readonly storageProtection?: boolean | undefined;
  /**
   * Whether users get a warning for Pods and workloads whose programs are not simulated.
   * @default false
   */
  readonly warnsOfSimulation?: boolean | undefined;
  /** @default no audit events */
  readonly audit?: ApiServerOptions['audit'] | undefined;
  /** @default none are recorded */
  readonly metrics?: ApiServerMetrics | undefined;
}

/** API server in this process, listening with TLS. */
export interface EmbeddedCluster {
  /** `https://127.0.0.1:6444` */
  readonly url: string;
  /** Kubeconfig for kubectl and for the program. */
  readonly kubeconfig: Listening['kubeconfig'];
  /** Number of requests received. */
  readonly requests: number;
  /** Number of the last write; unchanged while nothing is written. */
  readonly revision: number;
  /** Returns debug pages about the objects and requests, and switches for faults. Call it once. */
  debugRoutes(): ReturnType<typeof clusterPages>;
  /** Returns a client with its own connections. */
  connect(userAgent: string): ClusterConnection;
  /** Runs the controllers of a cluster until `signal` aborts. */
  runControllers(signal: AbortSignal, options?: ClusterOptions): Promise<void>;
  /** Closes all connections and releases the port. */
  close(): Promise<void>;
}

/**
 * Starts an API server that listens on the given address.
 *
 * @throws {Error} with the next step, if the address cannot be used
 */
export async function startEmbeddedCluster(
  options: EmbeddedClusterOptions,
  log: Logger,
): Promise<EmbeddedCluster> {
  let running: Cluster | undefined;
  const kubelets = (node: string) => running?.kubelet(node);
  const { dataDir, kubernetesVersion, identity, metrics, audit } = options;
  const { serviceAccounts = false, storageProtection = false, warnsOfSimulation = false } = options;
  const server = createServer({
    log,
    kubelets,
    dataDir,
    serviceAccounts,
    storageProtection,
    metrics,
    audit,
    ...(warnsOfSimulation && { kinds: kindsWithSimulationWarning() }),
    ...(kubernetesVersion && { kubernetesVersion }),
    ...(identity && { authority: identity.authority, token: identity.token }),
  });
  const endpoint = await listening(server, options);
  const connect = (userAgent: string) =>
    connectCluster(
      {
        source: 'embedded',
        server: endpoint.url,
        ca: { kind: 'data', pem: endpoint.caPem },
        insecureSkipTlsVerify: false,
        credentials: { kind: 'token', token: endpoint.token },
        namespace: 'default',
      },
      { userAgent, log },
    );
  return {
    url: endpoint.url,
    kubeconfig: (client) => endpoint.kubeconfig(client),
    debugRoutes: () => clusterPages(server, endpoint.url),
    get requests() {
      return server.requests.count();
    },
    get revision() {
      return server.revision;
    },
    connect,
    runControllers: async (signal, options) => {
      // Without a connection: as a client of its own network address the server would encrypt and decrypt all
      // events of its controllers.
      const client = new HttpClient({
        handler: paced(server.handler, { requests: server.requests, clock: systemClock }),
        server: endpoint.url,
        userAgent: CLUSTER_CONTROLLERS_AGENT,
        clock: systemClock,
        log,
      });
      const authority = await server.authority();
      const checkPolicyTypes: ClusterOptions['checkPolicyTypes'] = (policy) =>
        server.checkPolicyTypes(policy);
      const all = { rootCaPem: endpoint.caPem, authority, checkPolicyTypes, ...options };
      running = new Cluster({ client, clock: systemClock, log }, all);
      try {
        await running.run(signal);
      } finally {
        running = undefined;
      }
    },
    close: async () => {
      await endpoint.close();
      await server.close();
    },
  };
}

/**
 * Returns an API server.
 *
 * @throws {UsageError} if the data folder cannot be used
 */
export function createServer(options: ApiServerOptions): ApiServer {
  try {
    return new ApiServer(options);
  } catch (error) {
    if (error instanceof FolderLockedError) throw new UsageError(error.message);
    throw pathError(`Could not use the data folder ${options.dataDir}`, error);
  }
}

/** Listens, or closes the server. */
async function listening(server: ApiServer, options: EmbeddedClusterOptions) {
  try {
    return await listen(server, options);
  } catch (error) {
    await server.close();
    throw error;
  }
}

async function listen(server: ApiServer, options: EmbeddedClusterOptions) {
  const { host, port, previousPort = 0 } = options;
  try {
    return await server.listen({ host, port: port || previousPort });
  } catch (error) {
    if (port !== 0 || previousPort === 0) throw listenError(error, options);
    return listen(server, { host, port });
  }
}

/** Turns known errors into a `UsageError` with the next step. */
function listenError(error: unknown, { host, port }: EmbeddedClusterOptions): unknown {
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'EADDRINUSE':
      return new UsageError(
        `Port ${port} on ${host} is in use: choose another --port, or omit it to use a free port`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new UsageError(
        `${goQuote(host)} is not an address of this machine: choose another --host`,
      );
    case 'EACCES':
      return new UsageError(`No permission to listen on port ${port}: choose a --port above 1023`);
    default:
      return error;
  }
}
