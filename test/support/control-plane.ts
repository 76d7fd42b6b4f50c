import { ApiServer } from '../../src/apiserver/api-server.ts';
import type { ApiServerOptions } from '../../src/apiserver/api-server.ts';
import { temporaryKubeconfig } from '../../src/cli/kubeconfig-file.ts';
import type { Client } from '../../src/client/client.ts';
import type { ClusterConfig } from '../../src/client/kube-config/cluster-config.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import { Cluster } from '../../src/cluster/cluster.ts';
import type { ClusterOptions } from '../../src/cluster/cluster.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/logger.ts';
import type { Logger } from '../../src/util/logger.ts';
import { startRealCluster } from '../../hack/envtest/real-cluster.ts';
import { startRealControlPlane } from '../../hack/envtest/real-control-plane.ts';
import type { RealControlPlane } from '../../hack/envtest/real-control-plane.ts';
import type { ClusterConnection } from '../../src/client/cluster-connection.ts';
import type { Runnable } from '../../src/util/runnable.ts';

export interface ControlPlaneOptions {
  /**
   * Attach the controllers that make a cluster of an API server: garbage collection, deletion of
   * namespaces, a scheduler and a kubelet that pretend. A cluster that was given has its own.
   * @default false
   */
  readonly cluster?: false | ClusterOptions;
  /**
   * More flags of a bare kube-apiserver, if one is started.
   * @default none
   */
  readonly apiServerFlags?: readonly string[];
  /**
   * The release of Kubernetes that a bare kube-apiserver is of, if one is started.
   * @default that of `$KUBERNETES_VERSION`
   */
  readonly kubernetes?: string;
  /** @default says nothing */
  readonly log?: Logger;
}

/** A Kubernetes API, reached as in production: over TLS, through a kubeconfig. */
export interface ControlPlane {
  /**
   * `embedded`: our own server. `real`: etcd and kube-apiserver, started for this test.
   * `cluster`: these and Kubernetes' own controllers and scheduler, with kwok for kubelets. `given`: somebody's cluster, which others may be using.
   */
  readonly kind: 'embedded' | 'real' | 'cluster' | 'given';
  readonly kubeconfigPath: string;
  readonly config: ClusterConfig;
  /** A client of the test's own. */
  readonly client: Client;
  /**
   * Forgets what happened before now, as every server does in time: no list and no watch can go back
   * to it. Absent of a cluster that was given, where others may need it.
   */
  readonly expireHistory?: () => Promise<void>;
  /**
   * What an administrator does to etcd, with the API server stopped meanwhile. Absent of a cluster that
   * was given.
   */
  readonly etcd?: Pick<RealControlPlane, 'backUp' | 'wipe'>;
  /** Its processes, for those who end them. Present of `real` and `cluster`. */
  readonly processes?: Pick<
    RealControlPlane,
    'crash' | 'terminate' | 'restart' | 'replaceAuthority'
  >;
  /** Ends everything that was started; resolves when it has ended. */
  close(): Promise<void>;
}

/**
 * The control plane that `$CONTROL_PLANE` asks for: `embedded` (the default), `real`, `cluster`, or the
 * path of a kubeconfig. Every call starts a new one, so that tests cannot see each other's objects; start
 * one for a file, not for a test. `npm run test:real` sets the variable.
 */
export async function startControlPlane({
  cluster = false,
  apiServerFlags = [],
  kubernetes,
  log = silentLogger,
}: ControlPlaneOptions = {}): Promise<ControlPlane> {
  let attached: ReturnType<typeof runCluster> | undefined;
  const started = await start(process.env['CONTROL_PLANE'] ?? 'embedded', {
    apiServerFlags,
    kubernetes,
    log,
    kubelets: (node) => attached?.cluster.kubelet(node),
  });
  const { kind, kubeconfigPath, expireHistory, etcd, processes } = started;
  const config = await loadClusterConfig({ kubeconfig: kubeconfigPath });
  const connection = connectCluster(config);
  const isBare = kind === 'embedded' || kind === 'real';
  if (cluster && isBare) attached = runCluster(config, cluster, log);
  return {
    kind,
    kubeconfigPath,
    config,
    client: connection.client,
    ...(expireHistory && { expireHistory }),
    ...(etcd && { etcd }),
    ...(processes && { processes }),
    async close() {
      await attached?.stop();
      await connection.close();
      await started.close();
    },
  };
}

type Started = Pick<
  ControlPlane,
  'kind' | 'kubeconfigPath' | 'expireHistory' | 'etcd' | 'processes' | 'close'
>;

async function start(
  wanted: string,
  {
    apiServerFlags,
    kubernetes,
    ...options
  }: {
    readonly apiServerFlags: readonly string[];
    readonly kubernetes: string | undefined;
  } & Required<Pick<ApiServerOptions, 'log' | 'kubelets'>>,
): Promise<Started> {
  switch (wanted) {
    case 'embedded': {
      const server = new ApiServer(options);
      let listening = await server.listen();
      const { port } = listening;
      const whileStopped = async (work: () => void) => {
        await listening.close();
        work();
        listening = await server.listen({ port });
      };
      const file = await temporaryKubeconfig(listening.kubeconfig());
      return {
        kind: 'embedded',
        kubeconfigPath: file.path,
        expireHistory: async () => server.faults.expireHistory(),
        etcd: {
          async backUp() {
            const snapshot = server.faults.snapshot();
            return () => whileStopped(() => server.faults.restore(snapshot));
          },
          wipe: () => whileStopped(() => server.faults.wipe()),
        },
        async close() {
          await server.close();
          await file.remove();
        },
      };
    }
    case 'real':
    case 'cluster': {
      const report = (line: string) => options.log.info(line);
      const real = await (wanted === 'real'
        ? startRealControlPlane(report, apiServerFlags, kubernetes)
        : startRealCluster(report));
      return {
        kind: wanted,
        kubeconfigPath: real.kubeconfigPath,
        expireHistory: () => real.compact(),
        etcd: real,
        processes: real,
        close: () => real.stop(),
      };
    }
    default:
      return { kind: 'given', kubeconfigPath: wanted, close: () => Promise.resolve() };
  }
}

function runCluster(config: ClusterConfig, options: ClusterOptions, log: Logger) {
  const connection = connectCluster(config);
  const cluster = new Cluster({ client: connection.client, clock: systemClock, log }, options);
  return { cluster, stop: runOver(connection, cluster) };
}

/**
 * Runs `runnable` over its own connection. The returned function stops both, and rejects if `runnable`
 * failed.
 */
export function runOver(
  connection: ClusterConnection,
  runnable: Pick<Runnable, 'run'>,
): () => Promise<void> {
  const stopping = new AbortController();
  const running = runnable.run(stopping.signal);
  // The returned function reports the error.
  running.catch(() => undefined);
  return async () => {
    stopping.abort();
    await running;
    await connection.close();
  };
}
