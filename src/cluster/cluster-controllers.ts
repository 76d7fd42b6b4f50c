import { InformerSet } from '../cache/informer-set.ts';
import type { ControllerDeps } from '../manager/controller-options.ts';
import { Manager } from '../manager/manager.ts';
import type { Kubelet } from '../api/kubelet.ts';
import type { Runnable } from '../util/runnable.ts';
import type { PolicyTypeCheck } from './admission-policy-status.ts';
import { admissionPolicyStatus } from './admission-policy-status.ts';
import type { ClusterDeps } from './support/resource-monitors.ts';
import { ResourceMonitors } from './support/resource-monitors.ts';
import { resourceQuotas } from './lifecycle/resource-quota.ts';
import { EventBroadcaster } from '../record/event-broadcaster.ts';
import { eventExpiry, NO_EVENTS } from './lifecycle/event-expiry.ts';
import { fakeKubelet } from './kubelet/fake-kubelet.ts';
import type { FakeKubeletOptions } from './kubelet/fake-kubelet.ts';
import { fakeNode } from './nodes/fake-node.ts';
import { fakeScheduler } from './nodes/fake-scheduler.ts';
import { garbageCollection } from './lifecycle/garbage-collector.ts';
import { volumeClaimProtection } from './volumes/storage-protection.ts';
import { taintEviction } from './nodes/taints.ts';
import { nodeLifecycle } from './nodes/node-lifecycle.ts';
import { namespaceDeletion } from './lifecycle/namespace-deletion.ts';
import { daemonSets } from './workloads/daemon-set.ts';
import { deployments } from './workloads/deployment.ts';
import { cronJobs } from './workloads/cron-job.ts';
import { jobs } from './workloads/job.ts';
import { ttlAfterFinished } from './workloads/ttl-after-finished.ts';
import { disruptionBudgets } from './workloads/disruption.ts';
import { endpointsController } from './services/endpoints.ts';
import { endpointSlices } from './services/endpoint-slice.ts';
import { endpointSliceMirroring } from './services/endpoint-slice-mirroring.ts';
import { persistentVolumes } from './volumes/persistent-volumes.ts';
import { rootCaPublisher, serviceAccounts } from './lifecycle/namespace-defaults.ts';
import { replicaSets, replicationControllers } from './workloads/replica-set.ts';
import { statefulSets } from './workloads/stateful-set.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import { selectNames } from '../util/select-names.ts';

/** Default of kube-apiserver's `--event-ttl`. */
const EVENT_TTL_MS = 3_600_000;

/** Time to write buffered events after the stop, in milliseconds. */
const EVENT_FLUSH_MS = 1000;

/** Controllers of objects of all kinds. */
const MONITORING = [
  ['garbage-collector', garbageCollection],
  ['resourcequota', resourceQuotas],
] as const;

/** Controllers that need only `ClusterDeps`, by kube-controller-manager's names without `-controller`. */
const CONTROLLERS: ReadonlyMap<string, (deps: ClusterDeps) => Runnable> = new Map([
  ['namespace', namespaceDeletion],
  ['deployment', deployments],
  ['replicaset', replicaSets],
  ['replicationcontroller', replicationControllers],
  ['statefulset', statefulSets],
  ['daemonset', daemonSets],
  ['job', jobs],
  ['cronjob', cronJobs],
  ['ttl-after-finished', ttlAfterFinished],
  ['disruption', disruptionBudgets],
  ['endpoints', endpointsController],
  ['endpointslice', endpointSlices],
  ['endpointslice-mirroring', endpointSliceMirroring],
  ['persistentvolume-binder', persistentVolumes],
  ['serviceaccount', serviceAccounts],
  ['persistentvolumeclaim-protection', volumeClaimProtection],
  ['scheduler', fakeScheduler],
  ['node-lifecycle', nodeLifecycle],
  ['taint-eviction', taintEviction],
]);

/** Controllers that remove the finalizers of `ApiServerOptions.storageProtection`. */
export const STORAGE_PROTECTION: readonly string[] = [
  'persistentvolumeclaim-protection',
  'persistentvolume-binder',
];

const ROOT_CA_PUBLISHER = 'root-ca-certificate-publisher';
const SIGNER = 'certificatesigningrequest-signing';
const POLICY_STATUS = 'validatingadmissionpolicy-status';

/** Names of the controllers of `Cluster`. */
export const CLUSTER_CONTROLLERS: readonly string[] = [
  ...MONITORING.map(([name]) => name),
  ...CONTROLLERS.keys(),
  ROOT_CA_PUBLISHER,
  SIGNER,
  POLICY_STATUS,
  'kubelet',
  'events',
];

/** Options of `ClusterControllers`. */
export interface ClusterControllersOptions {
  /**
   * Controllers to run: `*` selects all, `statefulset` one, and `-statefulset` removes one, as in
   * kube-controller-manager's `--controllers`. If there are only names with `-`, `*` is implied.
   * @default ['*']
   */
  readonly controllers?: readonly string[];
  /**
   * The simulated node and its kubelet.
   * @default {}
   */
  readonly kubelet?: ClusterKubeletOptions;
  /**
   * Events are deleted after `ttlMs` milliseconds. Without the controller `events`, none are recorded
   * or deleted.
   * @default { ttlMs: 3_600_000 }
   */
  readonly events?: { readonly ttlMs?: number };
  /**
   * CA certificate of the server, published as ConfigMap `kube-root-ca.crt` of each namespace.
   * @default none: nothing is published
   */
  readonly rootCaPem?: string;
  /**
   * Returns the controller that signs approved CertificateSigningRequests.
   * @default none: nothing is signed
   */
  readonly signer?: ((deps: ClusterDeps) => Runnable) | undefined;
  /**
   * Checks the types of the expressions of a ValidatingAdmissionPolicy, for its status:
   * `(policy) => server.checkPolicyTypes(policy)`.
   * @default none: the status is not written
   */
  readonly checkPolicyTypes?: PolicyTypeCheck;
}

/** Options of the simulated node and its kubelet. */
export interface ClusterKubeletOptions extends Omit<FakeKubeletOptions, 'nodeName'> {
  /** @default 'node-1' */
  readonly nodeName?: string;
}

/** The controllers of `Cluster`, without those that need more than the globals of the web. */
export class ClusterControllers implements Runnable {
  readonly name = 'cluster';
  readonly #manager: Manager;
  readonly #kubelets = new Map<string, Kubelet>();

  constructor(deps: ControllerDeps, options: ClusterControllersOptions = {}) {
    const { controllers = ['*'], kubelet = {}, events = {}, rootCaPem, signer } = options;
    const { checkPolicyTypes } = options;
    const { selected, unknown } = selectNames(controllers, CLUSTER_CONTROLLERS);
    if (unknown !== undefined) {
      const suggestion = didYouMean(unknown, CLUSTER_CONTROLLERS);
      throw new TypeError(`Cluster: unknown controller ${unknown}${suggestion}`);
    }
    const log = deps.log.named('cluster');
    const { clock, random } = deps;
    const informers = new InformerSet(deps.client, { clock, log, ...(random && { random }) });
    const broadcaster = new EventBroadcaster(
      { ...deps, log },
      { random, flushTimeoutMs: EVENT_FLUSH_MS },
    );
    const hasEvents = selected.includes('events');
    const clusterDeps: ClusterDeps = {
      ...deps,
      log,
      informers,
      events: hasEvents ? broadcaster : NO_EVENTS,
    };
    this.#manager = new Manager(clusterDeps).add('caches', informers);
    if (hasEvents) {
      const expiry = eventExpiry(clusterDeps, events.ttlMs ?? EVENT_TTL_MS);
      this.#manager.add('events', broadcaster).add('controllers', expiry);
    }
    const monitoring = MONITORING.filter(([name]) => selected.includes(name));
    if (monitoring.length > 0) {
      const monitors = new ResourceMonitors(clusterDeps);
      this.#manager.add('caches', monitors);
      for (const [, create] of monitoring) {
        this.#manager.add('controllers', create(clusterDeps, monitors));
      }
    }
    for (const [name, create] of CONTROLLERS) {
      if (selected.includes(name)) this.#manager.add('controllers', create(clusterDeps));
    }
    if (rootCaPem && selected.includes(ROOT_CA_PUBLISHER)) {
      this.#manager.add('controllers', rootCaPublisher(clusterDeps, rootCaPem));
    }
    if (signer && selected.includes(SIGNER)) {
      this.#manager.add('controllers', signer(clusterDeps));
    }
    if (checkPolicyTypes && selected.includes(POLICY_STATUS)) {
      this.#manager.add('controllers', admissionPolicyStatus(clusterDeps, checkPolicyTypes));
    }
    if (selected.includes('kubelet')) {
      const { nodeName = 'node-1' } = kubelet;
      const { controller, kubelet: served } = fakeKubelet(clusterDeps, { ...kubelet, nodeName });
      this.#kubelets.set(nodeName, served);
      this.#manager.add('controllers', fakeNode(clusterDeps, nodeName), controller);
    }
  }

  /** Returns the kubelet of a node, to which an API server forwards requests for logs and connections. */
  kubelet(nodeName: string): Kubelet | undefined {
    return this.#kubelets.get(nodeName);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#manager.run(signal);
  }
}
