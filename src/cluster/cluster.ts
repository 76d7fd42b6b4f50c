import { InformerSet } from '../cache/informer-set.ts';
import type { ControllerDeps } from '../manager/controller-options.ts';
import { Manager } from '../manager/manager.ts';
import type { HttpHandler } from '../util/http.ts';
import type { Runnable } from '../util/runnable.ts';
import type { ClusterDeps } from './resource-monitors.ts';
import { fakeKubelet } from './fake-kubelet.ts';
import type { FakeKubeletOptions } from './fake-kubelet.ts';
import { fakeNode } from './fake-node.ts';
import { fakeScheduler } from './fake-scheduler.ts';
import { garbageCollection } from './garbage-collector.ts';
import { namespaceDeletion } from './namespace-deletion.ts';
import { deployments } from './deployment.ts';
import { replicaSets } from './replica-set.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const CLUSTER_OPTIONS: OptionNames<ClusterOptions> = {
  garbageCollection: true,
  namespaceDeletion: true,
  workloads: true,
  kubelet: true,
};

const KUBELET_OPTIONS: OptionNames<ClusterKubeletOptions> = {
  nodeName: true,
  startupMs: true,
  terminationMs: true,
};

/** Options of `Cluster`. */
export interface ClusterOptions {
  /**
   * Runs the garbage collector.
   * @default true
   */
  readonly garbageCollection?: boolean;
  /**
   * Deletes the content of namespaces that are being deleted.
   * @default true
   */
  readonly namespaceDeletion?: boolean;
  /**
   * Runs the Deployment and ReplicaSet controllers.
   * @default true
   */
  readonly workloads?: boolean;
  /**
   * Runs one simulated node with a scheduler and a kubelet. `false` disables them.
   * @default {}
   */
  readonly kubelet?: false | ClusterKubeletOptions;
}

/** Options of `ClusterKubelet`. */
export interface ClusterKubeletOptions extends Omit<FakeKubeletOptions, 'nodeName'> {
  /** @default 'node-1' */
  readonly nodeName?: string;
}

/**
 * Cluster controllers: garbage collector, namespace deletion, Deployments, ReplicaSets, scheduler and a
 * simulated kubelet. They use a `Client`, so they work with the embedded API server and with a
 * kube-apiserver that has no controller manager.
 */
export class Cluster implements Runnable {
  readonly name = 'cluster';
  readonly #manager: Manager;
  readonly #kubelets = new Map<string, HttpHandler>();

  constructor(deps: ControllerDeps, options: ClusterOptions = {}) {
    checkOptions(options, CLUSTER_OPTIONS, 'Cluster');
    const { kubelet = {} } = options;
    if (kubelet) checkOptions(kubelet, KUBELET_OPTIONS, 'Cluster: kubelet');
    const log = deps.log.named('cluster');
    const informers = new InformerSet(deps.client, { clock: deps.clock, log });
    const clusterDeps: ClusterDeps = { ...deps, log, informers };
    this.#manager = new Manager(clusterDeps).add('caches', informers);
    if (options.garbageCollection ?? true) {
      const { monitors, controller } = garbageCollection(clusterDeps);
      this.#manager.add('caches', monitors).add('controllers', controller);
    }
    if (options.namespaceDeletion ?? true)
      this.#manager.add('controllers', namespaceDeletion(clusterDeps));
    if (options.workloads ?? true) {
      this.#manager.add('controllers', deployments(clusterDeps), replicaSets(clusterDeps));
    }
    if (kubelet) {
      const { nodeName = 'node-1' } = kubelet;
      const { controller, api } = fakeKubelet(clusterDeps, { ...kubelet, nodeName });
      this.#kubelets.set(nodeName, api);
      this.#manager.add(
        'controllers',
        fakeNode(clusterDeps, nodeName),
        fakeScheduler(clusterDeps, nodeName),
        controller,
      );
    }
  }

  /** Returns the HTTP API of a node's kubelet, to which an API server forwards requests for logs. */
  kubelet(nodeName: string): HttpHandler | undefined {
    return this.#kubelets.get(nodeName);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#manager.run(signal);
  }
}
