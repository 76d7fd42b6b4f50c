import { ApiServer } from '../../src/apiserver/api-server.ts';
import type { ApiServerOptions } from '../../src/apiserver/api-server-options.ts';
import { temporaryKubeconfig } from '../../src/cli/embedded/kubeconfig-file.ts';
import type { Client } from '../../src/client/client.ts';
import type { ClusterConfig } from '../../src/client/kube-config/cluster-config.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import { Cluster } from '../../src/cluster/cluster.ts';
import type { ClusterOptions } from '../../src/cluster/cluster.ts';
import { apiServerMetrics } from '../../src/metrics/api-server-metrics.ts';
import { createRegistry } from '../../src/metrics/registry.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/logger.ts';
import type { Logger } from '../../src/util/logger.ts';
import { startRealCluster } from '../../hack/envtest/real-cluster.ts';
import { startRealControlPlane } from '../../hack/envtest/real-control-plane.ts';
import type { RealControlPlane } from '../../hack/envtest/real-control-plane.ts';
import type { ClusterConnection } from '../../src/client/cluster-connection.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import type { Runnable } from '../../src/util/runnable.ts';

export interface ControlPlaneOptions {
  /**
   * Run cluster controllers: garbage collection, namespace deletion, a fake scheduler and a fake kubelet.
   * Ignored for `given` control planes.
   * @default false
   */
  readonly cluster?: false | ClusterOptions;
  /**
   * Additional flags of a kube-apiserver that is started.
   * @default none
   */
  readonly apiServerFlags?: readonly string[];
  /**
   * Enable the admission plugin ServiceAccount. Ignored for `given` control planes.
   * @default false
   */
  readonly serviceAccounts?: boolean;
  /**
   * Version of a kube-apiserver that is started.
   * @default `$KUBERNETES_VERSION`
   */
  readonly kubernetes?: string;
  /** @default a silent logger */
  readonly log?: Logger;
}

/** A Kubernetes API, accessed over TLS with a kubeconfig, as in production. */
export interface ControlPlane {
  /**
   * `embedded`: our server. `real`: etcd and kube-apiserver, started for this test. `cluster`: also
   * kube-controller-manager, kube-scheduler and kwok. `given`: an existing cluster, which may be shared.
   */
  readonly kind: 'embedded' | 'real' | 'cluster' | 'given';
  readonly kubeconfigPath: string;
  readonly config: ClusterConfig;
  /** The client of the test. */
  readonly client: Client;
  /**
   * Compacts the history, so that lists and watches of earlier resourceVersions fail. Absent for `given`
   * control planes, which may be shared.
   */
  readonly expireHistory?: () => Promise<void>;
  /**
   * Operations of an administrator on etcd while the API server is stopped. Absent for `given` control
   * planes.
   */
  readonly etcd?: Pick<RealControlPlane, 'backUp' | 'wipe'>;
  /** Processes of `real` and `cluster` control planes. */
  readonly processes?: Pick<
    RealControlPlane,
    'crash' | 'terminate' | 'restart' | 'replaceAuthority'
  >;
  /** Stops everything that was started. */
  close(): Promise<void>;
}

/**
 * Starts the control plane in `$CONTROL_PLANE`: `embedded` (the default), `real`, `cluster`, or the path of
 * a kubeconfig. Each call starts a new one to isolate tests. Start one per file, not per test.
 * `npm run test:real` sets the variable.
 */
export async function startControlPlane({
  cluster = false,
  apiServerFlags = [],
  serviceAccounts = false,
  kubernetes,
  log = silentLogger,
}: ControlPlaneOptions = {}): Promise<ControlPlane> {
  let attached: ReturnType<typeof runCluster> | undefined;
  const started = await start(process.env['CONTROL_PLANE'] ?? 'embedded', {
    apiServerFlags: [
      ...apiServerFlags,
      ...(serviceAccounts ? ['--enable-admission-plugins=ServiceAccount'] : []),
    ],
    kubernetes,
    log,
    serviceAccounts,
    storageProtection: cluster !== false,
    kubelets: (node) => attached?.cluster.kubelet(node),
  });
  const { kind, kubeconfigPath, expireHistory, etcd, processes, handler } = started;
  const config = await loadClusterConfig({ kubeconfig: kubeconfigPath });
  const connection = connectCluster(config);
  const isBare = kind === 'embedded' || kind === 'real';
  if (cluster && isBare) attached = runCluster({ config, handler }, cluster, log);
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
> & {
  /** Of a server in this process. */
  readonly handler?: HttpHandler | undefined;
};

async function start(
  wanted: string,
  {
    apiServerFlags,
    kubernetes,
    ...options
  }: {
    readonly apiServerFlags: readonly string[];
    readonly kubernetes: string | undefined;
  } & Required<
    Pick<ApiServerOptions, 'log' | 'kubelets' | 'serviceAccounts' | 'storageProtection'>
  >,
): Promise<Started> {
  switch (wanted) {
    case 'embedded': {
      const metrics = apiServerMetrics(createRegistry());
      const server = new ApiServer({ ...options, metrics });
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
        handler: server.handler,
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

/** Runs the controllers of a cluster; without a connection if the server is in this process. */
function runCluster(
  { config, handler }: Pick<Started, 'handler'> & { readonly config: ClusterConfig },
  options: ClusterOptions,
  log: Logger,
) {
  const connection: Pick<ClusterConnection, 'client' | 'close'> = handler
    ? {
        client: new HttpClient({ handler, server: config.server, clock: systemClock, log }),
        close: () => Promise.resolve(),
      }
    : connectCluster(config);
  const { ca } = config;
  const cluster = new Cluster(
    { client: connection.client, clock: systemClock, log },
    { ...(ca?.kind === 'data' && { rootCaPem: ca.pem }), ...options },
  );
  return { cluster, stop: runOver(connection, cluster) };
}

/**
 * Runs `runnable` over its own connection. The returned function stops both, and rejects if `runnable`
 * failed.
 */
export function runOver(
  connection: Pick<ClusterConnection, 'close'>,
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
