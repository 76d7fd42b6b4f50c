import { InformerSet } from '../cache/informer-set.ts';
import type { ControllerDeps } from '../manager/controller-options.ts';
import { Manager } from '../manager/manager.ts';
import type { HttpHandler } from '../util/http.ts';
import type { Runnable } from '../util/runnable.ts';
import type { ClusterDeps } from './resource-monitors.ts';
import { JOBS, PODS, REPLICA_SETS } from '../api/builtin.ts';
import { EventBroadcaster } from '../record/event-broadcaster.ts';
import { claimIndexers } from './claim.ts';
import { eventExpiry, NO_EVENTS } from './event-expiry.ts';
import { fakeKubelet } from './fake-kubelet.ts';
import type { FakeKubeletOptions } from './fake-kubelet.ts';
import { fakeNode } from './fake-node.ts';
import { fakeScheduler } from './fake-scheduler.ts';
import { garbageCollection } from './garbage-collector.ts';
import { nodeIndexers } from './node-usage.ts';
import { taintEviction } from './taints.ts';
import { namespaceDeletion } from './namespace-deletion.ts';
import { deployments } from './deployment.ts';
import { cronJobs } from './cron-job.ts';
import { jobs } from './job.ts';
import { ttlAfterFinished } from './ttl-after-finished.ts';
import { disruptionBudgets } from './disruption.ts';
import { replicaSets } from './replica-set.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const CLUSTER_OPTIONS: OptionNames<ClusterOptions> = {
  garbageCollection: true,
  namespaceDeletion: true,
  workloads: true,
  kubelet: true,
  events: true,
};

const KUBELET_OPTIONS: OptionNames<ClusterKubeletOptions> = {
  nodeName: true,
  startupMs: true,
  terminationMs: true,
};

const EVENT_OPTIONS: OptionNames<{ ttlMs?: number }> = { ttlMs: true };

/** Default of kube-apiserver's `--event-ttl`. */
const EVENT_TTL_MS = 3_600_000;

/** Time to write buffered events after the stop, in milliseconds. */
const EVENT_FLUSH_MS = 1000;

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
   * Runs the controllers of Deployments, ReplicaSets, Jobs, CronJobs and PodDisruptionBudgets.
   * @default true
   */
  readonly workloads?: boolean;
  /**
   * Runs one simulated node with a scheduler and a kubelet. `false` disables them.
   * @default {}
   */
  readonly kubelet?: false | ClusterKubeletOptions;
  /**
   * Records the events of the controllers, and deletes events after `ttlMs` milliseconds. `false` records
   * and deletes none.
   * @default { ttlMs: 3_600_000 }
   */
  readonly events?: false | { readonly ttlMs?: number };
}

/** Options of `ClusterKubelet`. */
export interface ClusterKubeletOptions extends Omit<FakeKubeletOptions, 'nodeName'> {
  /** @default 'node-1' */
  readonly nodeName?: string;
}

/**
 * Cluster controllers: garbage collector, namespace deletion, workloads, scheduler, taint eviction, event
 * expiry and a simulated kubelet. They use a `Client`, so they work with the embedded API server and with a
 * kube-apiserver that has no controller manager.
 */
export class Cluster implements Runnable {
  readonly name = 'cluster';
  readonly #manager: Manager;
  readonly #kubelets = new Map<string, HttpHandler>();

  constructor(deps: ControllerDeps, options: ClusterOptions = {}) {
    checkOptions(options, CLUSTER_OPTIONS, 'Cluster');
    const { kubelet = {}, events = {} } = options;
    if (kubelet) checkOptions(kubelet, KUBELET_OPTIONS, 'Cluster: kubelet');
    if (events) checkOptions(events, EVENT_OPTIONS, 'Cluster: events');
    const log = deps.log.named('cluster');
    const informers = new InformerSet(deps.client, { clock: deps.clock, log });
    const broadcaster = new EventBroadcaster(
      { ...deps, log },
      { random: deps.random, flushTimeoutMs: EVENT_FLUSH_MS },
    );
    const clusterDeps: ClusterDeps = {
      ...deps,
      log,
      informers,
      events: events ? broadcaster : NO_EVENTS,
    };
    this.#manager = new Manager(clusterDeps).add('caches', informers);
    if (events) {
      const expiry = eventExpiry(clusterDeps, events.ttlMs ?? EVENT_TTL_MS);
      this.#manager.add('events', broadcaster).add('controllers', expiry);
    }
    if (options.garbageCollection ?? true) {
      const { monitors, controller } = garbageCollection(clusterDeps);
      this.#manager.add('caches', monitors).add('controllers', controller);
    }
    if (options.namespaceDeletion ?? true)
      this.#manager.add('controllers', namespaceDeletion(clusterDeps));
    if (options.workloads ?? true) {
      informers.for(PODS).addIndexers(claimIndexers);
      informers.for(REPLICA_SETS).addIndexers(claimIndexers);
      informers.for(JOBS).addIndexers(claimIndexers);
      this.#manager.add(
        'controllers',
        deployments(clusterDeps),
        replicaSets(clusterDeps),
        disruptionBudgets(clusterDeps),
        jobs(clusterDeps),
        ttlAfterFinished(clusterDeps),
        cronJobs(clusterDeps),
      );
    }
    if (kubelet) {
      const { nodeName = 'node-1' } = kubelet;
      informers.for(PODS).addIndexers(nodeIndexers);
      const { controller, api } = fakeKubelet(clusterDeps, { ...kubelet, nodeName });
      this.#kubelets.set(nodeName, api);
      this.#manager.add(
        'controllers',
        fakeNode(clusterDeps, nodeName),
        fakeScheduler(clusterDeps),
        taintEviction(clusterDeps),
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
