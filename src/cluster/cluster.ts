import { InformerSet } from '../cache/informer-set.ts';
import type { ControllerDeps } from '../manager/controller.ts';
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
   * Delete what has lost its owners.
   * @default true
   */
  readonly garbageCollection?: boolean;
  /**
   * Empty namespaces that are being deleted.
   * @default true
   */
  readonly namespaceDeletion?: boolean;
  /**
   * Roll Deployments out, and keep the Pods of ReplicaSets.
   * @default true
   */
  readonly workloads?: boolean;
  /**
   * Bind Pods to one node and pretend to run them there. `false` leaves Pods alone.
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
 * The controllers that a cluster has and a bare API server lacks. They reach it through a `Client`
 * like anyone else, so they complete the embedded server as well as a kube-apiserver without a
 * controller manager.
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
    const own: ClusterDeps = { ...deps, log, informers };
    this.#manager = new Manager(own).add('caches', informers);
    if (options.garbageCollection ?? true) {
      const { monitors, controller } = garbageCollection(own);
      this.#manager.add('caches', monitors).add('controllers', controller);
    }
    if (options.namespaceDeletion ?? true) this.#manager.add('controllers', namespaceDeletion(own));
    if (options.workloads ?? true) {
      this.#manager.add('controllers', deployments(own), replicaSets(own));
    }
    if (kubelet) {
      const { nodeName = 'node-1' } = kubelet;
      const { controller, api } = fakeKubelet(own, { ...kubelet, nodeName });
      this.#kubelets.set(nodeName, api);
      this.#manager.add(
        'controllers',
        fakeNode(own, nodeName),
        fakeScheduler(own, nodeName),
        controller,
      );
    }
  }

  /** The HTTP API of a node's kubelet, for an API server that forwards to it: logs of its Pods. */
  kubelet(nodeName: string): HttpHandler | undefined {
    return this.#kubelets.get(nodeName);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#manager.run(signal);
  }
}
