import { isApiError } from '../../api/api-error.ts';
import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isFinished } from '../../api/workloads.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import type { Clock } from '../../util/clock.ts';
import { goQuote } from '../../util/go-quote.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import type { Outcome } from '../../workqueue/outcome.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import { ContainerEvents } from './container-events.ts';
import { connectToContainer, logError, readContainerLog } from './container-access.ts';
import { KubeletPod } from './kubelet-pod.ts';
import { kubeletApi } from './kubelet-api.ts';
import type { LogRequest } from './kubelet-api.ts';
import { patchPodStatus } from '../support/pod-control.ts';
import { podEnvironment } from './pod-environment.ts';
import type { PodEnvironment } from './pod-environment.ts';
import { hasContainerStates, podStatus, waitingStatus } from './pod-status.ts';
import type { Kubelet } from '../../api/kubelet.ts';
import { podPorts } from './container-port.ts';
import { OverBudget, WorkBudget } from '../shell/work-budget.ts';

/** Options of `FakeKubelet`. */
export interface FakeKubeletOptions {
  readonly nodeName: string;
  /**
   * Time from the first observation of a Pod until its containers run, in milliseconds.
   * @default 0
   */
  readonly startupMs?: number | undefined;
  /**
   * Maximum time from the deletion of a Pod until it is removed, in milliseconds. A shorter grace
   * period of the Pod applies. The default is not 0, because `kubectl delete` waits by name and can
   * miss a Pod that is replaced immediately.
   * @default 1000
   */
  readonly terminationMs?: number | undefined;
}

/**
 * Simulated kubelet of one node. Pods bound to the node get an address, run and become ready, unless a
 * ConfigMap or Secret is missing. Containers with a supported command exit and log like that command.
 * Deleted Pods are removed after their grace period. Nothing is executed: `kubectl exec` interprets its command, too.
 *
 * An API server forwards requests for logs and connections to `kubelet`.
 */
export function fakeKubelet(
  deps: ClusterDeps,
  options: FakeKubeletOptions,
): { readonly controller: Controller; readonly kubelet: Kubelet } {
  const pods = deps.informers.for(PODS);
  const events = new ContainerEvents(deps.events.recorder('kubelet'));
  pods.addIndexers({
    [ADDRESS_INDEX]: ({ status }) => (status?.podIP ? [status.podIP] : []),
  });
  const isUsed = (address: string) => pods.lister.byIndex(ADDRESS_INDEX, address).length > 0;
  const kubelet = new FakeKubelet(deps.clock, events, { ...options, isUsed });
  const podOf = (namespace: string, name: string) => {
    const pod = pods.lister.get(objectKey(namespace, name));
    return pod?.spec?.nodeName === options.nodeName ? pod : undefined;
  };
  const controller = new Controller(deps, {
    name: 'fake-kubelet',
    kind: PODS.kind,
    concurrency: 10,
    sync: async (key, context) => {
      const pod = pods.lister.get(key);
      if (pod?.spec?.nodeName === options.nodeName) return kubelet.sync(pod, context);
      kubelet.forget(key);
      return done();
    },
  }).for(pods);
  const readPodLog = (request: LogRequest) => {
    const pod = podOf(request.namespace, request.pod);
    return pod
      ? readContainerLog(pod, kubelet.stateOf(pod), request)
      : logError(404, `pod ${goQuote(request.pod)} does not exist\n`);
  };
  const connections: Pick<Kubelet, 'exec' | 'ports'> = {
    exec: (request) => {
      const pod = podOf(request.namespace, request.pod);
      return pod ? connectToContainer(pod, kubelet.stateOf(pod), request) : NO_POD;
    },
    ports: (namespace, name) => {
      const pod = podOf(namespace, name);
      return pod ? { kind: 'connected', target: podPorts(pod) } : NO_POD;
    },
  };
  const api = kubeletApi(readPodLog, () => deps.clock.now());
  return { controller, kubelet: Object.assign(api, connections) };
}

const NO_POD = { kind: 'error', status: 404, message: 'pod does not exist' } as const;

const ADDRESS_INDEX = 'podIP';
const MAX_ADDRESSES = 65_000;

/** Interval at which the kubelet looks for a missing ConfigMap or Secret, in milliseconds. */
const RETRY_MS = 5000;

class FakeKubelet {
  readonly #clock: Clock;
  readonly #events: ContainerEvents;
  readonly #startupMs: number;
  readonly #terminationMs: number;
  readonly #isUsed: (address: string) => boolean;
  readonly #known = new Map<ObjectKey, KubeletPod>();
  #addresses = 0;

  constructor(
    clock: Clock,
    events: ContainerEvents,
    {
      startupMs = 0,
      terminationMs = 1000,
      isUsed,
    }: FakeKubeletOptions & { readonly isUsed: (address: string) => boolean },
  ) {
    this.#isUsed = isUsed;
    this.#clock = clock;
    this.#events = events;
    this.#startupMs = startupMs;
    this.#terminationMs = terminationMs;
  }

  async sync(pod: DeepReadonly<Pod>, context: SyncContext): Promise<Outcome> {
    const known = this.stateOf(pod);
    if (pod.metadata.deletionTimestamp !== undefined) {
      const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
      if (known.stage !== 'terminating') this.#events.killing(pod);
      const waitMs = known.left('terminating', Math.min(this.#terminationMs, graceMs));
      if (waitMs > 0) return requeueAfter(waitMs);
      // Only finalizers keep it.
      if (graceMs === 0) return done();
      // As in a kubelet, clients see that the containers have stopped before the Pod is removed.
      if (pod.status?.phase === 'Running') {
        const { status } = this.#statusOf(known, pod, known.elapsed(pod) ?? 0, true);
        await this.#writeStatus(pod, status, context);
      }
      await this.#remove(pod, context);
      return done();
    }
    if (isFinished(pod)) return done();
    if ((pod.status?.phase ?? 'Pending') === 'Pending' && known.stage !== 'running') {
      const waitMs = known.left('starting', this.#startupMs);
      if (waitMs > 0) return requeueAfter(waitMs);
    }
    if (!known.environment && !(await this.#prepare(known, pod, context))) {
      return requeueAfter(RETRY_MS);
    }
    return this.#updateStatus(known, pod, context);
  }

  /** Reads the environment of the containers. Reports in the status why the Pod cannot start. */
  async #prepare(
    known: KubeletPod,
    pod: DeepReadonly<Pod>,
    context: SyncContext,
  ): Promise<boolean> {
    // Each attempt has its own budget, because a Pod can wait for its data for any time.
    const budget = new WorkBudget();
    const { variables, problems } = await podEnvironment(pod, context, budget).catch(withoutData);
    if (problems.length > 0 && (pod.status?.phase ?? 'Pending') === 'Pending') {
      this.#events.cannotStart(pod, problems);
      const status = waitingStatus(pod, problems, this.#clock.now());
      await this.#writeStatus(pod, status, context);
      return false;
    }
    known.setEnvironment(variables, budget);
    return true;
  }

  /** Forgets a Pod that was removed or belongs to another node. */
  forget(key: ObjectKey): void {
    this.#known.get(key)?.remove();
    this.#known.delete(key);
  }

  /** Returns the state of this Pod, not of an earlier Pod with the same name. */
  stateOf({ metadata: { namespace, name, uid } }: DeepReadonly<Pod>): KubeletPod {
    const key = objectKey(namespace, name);
    const known = this.#known.get(key);
    if (known?.uid === uid) return known;
    this.forget(key);
    const added = new KubeletPod(uid, this.#clock);
    this.#known.set(key, added);
    return added;
  }

  async #remove(pod: DeepReadonly<Pod>, { client, signal }: SyncContext): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    try {
      await client.delete(PODS, { name, namespace }, { uid, gracePeriodSeconds: 0, signal });
    } catch (error) {
      if (!isApiError(error, 'notFound')) throw error;
    }
  }

  /** Updates the status of the Pod from the states of its containers. */
  async #updateStatus(
    known: KubeletPod,
    pod: DeepReadonly<Pod>,
    context: SyncContext,
  ): Promise<Outcome> {
    const monotonic = this.#clock.monotonic();
    const sinceMs = monotonic - (known.elapsed(pod) ?? 0);
    const elapsedMs = monotonic - known.enter('running', sinceMs);
    const { status, nextMs, states } = this.#statusOf(known, pod, elapsedMs);
    this.#events.changed(pod, states);
    await this.#writeStatus(pod, status, context);
    return nextMs === undefined ? done() : requeueAfter(nextMs);
  }

  #statusOf(known: KubeletPod, pod: DeepReadonly<Pod>, elapsedMs: number, isStopped = false) {
    return podStatus(pod, {
      startedMs: this.#clock.now() - elapsedMs,
      address: pod.status?.podIP ?? (known.address ??= this.#nextAddress()),
      isStopped,
      ...known.observe(pod, elapsedMs),
    });
  }

  /** Writes the status if the phase or the state of a container differs. */
  async #writeStatus(
    pod: DeepReadonly<Pod>,
    status: PodStatus,
    context: SyncContext,
  ): Promise<void> {
    if (pod.status?.phase === status.phase && hasContainerStates(pod, status)) return;
    // A strategic merge keeps the fields of a condition that are absent.
    const conditions = (status.conditions ?? []).map((condition): object =>
      Object.assign({ reason: null, message: null }, condition),
    );
    await patchPodStatus(context, pod, { ...status, conditions }, 'kubelet');
  }

  /** Returns the next address of 10.244.0.0/16 that no Pod has, also none of an earlier process. */
  #nextAddress(): string {
    for (let attempt = 1; ; attempt++) {
      const host = (this.#addresses++ % MAX_ADDRESSES) + 2;
      const address = `10.244.${host >> 8}.${host & 255}`;
      if (attempt === MAX_ADDRESSES || !this.#isUsed(address)) return address;
    }
  }
}

/** Returns no variables for a Pod that needs too much work: its containers report it. */
function withoutData(error: unknown): PodEnvironment {
  if (!(error instanceof OverBudget)) throw error;
  return { variables: new Map(), problems: [] };
}

type PodStatus = NonNullable<Pod['status']>;
