import { isApiError } from '../api/api-error.ts';
import { PODS } from '../api/builtin.ts';
import type { Pod } from '../api/builtin.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { DeepReadonly } from '../api/object.ts';
import { isFinished } from '../api/pod.ts';
import { Controller } from '../manager/controller.ts';
import type { SyncContext } from '../manager/controller.ts';
import type { Clock } from '../util/clock.ts';
import { done, requeueAfter } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { ClusterDeps } from './cluster-deps.ts';
import { podStatus } from './pod-status.ts';

export interface FakeKubeletOptions {
  readonly nodeName: string;
  /**
   * From seeing a Pod until its containers run, in milliseconds.
   * @default 0
   */
  readonly startupMs?: number | undefined;
  /**
   * From seeing a Pod's deletion until it is gone, in milliseconds; its own grace period if that is
   * less. kubectl waits for the deletion of a name: it can miss a Pod that is replaced within moments,
   * and then waits for ever. Real kubelets are never that quick.
   * @default 1000
   */
  readonly terminationMs?: number | undefined;
}

/**
 * Plays the kubelet of one node: Pods bound to it run, get an address and become ready; containers
 * whose command it understands end as that would; deleted Pods go away after their grace. It
 * executes nothing.
 */
export function fakeKubelet(deps: ClusterDeps, options: FakeKubeletOptions): Controller {
  const pods = deps.informers.for(PODS);
  const kubelet = new FakeKubelet(deps.clock, options);
  return new Controller(deps, {
    name: 'fake-kubelet',
    kind: PODS.kind,
    concurrency: 10,
    sync: async (key, context) => {
      const pod = pods.lister.get(key);
      if (pod?.spec?.nodeName === options.nodeName) return kubelet.sync(key, pod, context);
      kubelet.forget(key);
      return done();
    },
  }).for(pods);
}

/** What a Pod is in, since when. */
interface Stage {
  readonly uid: string;
  readonly name: 'starting' | 'running' | 'terminating';
  /** `Clock.monotonic()`. */
  readonly sinceMs: number;
}

class FakeKubelet {
  readonly #clock: Clock;
  readonly #startupMs: number;
  readonly #terminationMs: number;
  /** Timestamps of objects have whole seconds; this is when the kubelet itself saw it. */
  readonly #stages = new Map<ObjectKey, Stage>();
  #addresses = 0;

  constructor(clock: Clock, { startupMs = 0, terminationMs = 1000 }: FakeKubeletOptions) {
    this.#clock = clock;
    this.#startupMs = startupMs;
    this.#terminationMs = terminationMs;
  }

  async sync(key: ObjectKey, pod: DeepReadonly<Pod>, context: SyncContext): Promise<Outcome> {
    if (pod.metadata.deletionTimestamp !== undefined) {
      const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
      const waitMs = this.#left(key, pod, 'terminating', Math.min(this.#terminationMs, graceMs));
      if (waitMs > 0) return requeueAfter(waitMs);
      await this.#remove(pod, context);
      return done();
    }
    if (isFinished(pod)) return done();
    if ((pod.status?.phase ?? 'Pending') === 'Pending') {
      const waitMs = this.#left(key, pod, 'starting', this.#startupMs);
      if (waitMs > 0) return requeueAfter(waitMs);
    }
    return this.#run(key, pod, context);
  }

  /** The Pod is gone, or another node's. */
  forget(key: ObjectKey): void {
    this.#stages.delete(key);
  }

  /** How much of `totalMs` the Pod still has to wait in this stage. */
  #left(key: ObjectKey, pod: DeepReadonly<Pod>, name: Stage['name'], totalMs: number): number {
    return this.#since(key, pod, name, this.#clock.monotonic()) + totalMs - this.#clock.monotonic();
  }

  /** When the Pod entered the stage: `sinceMs` if it was not known to be in it. */
  #since(key: ObjectKey, pod: DeepReadonly<Pod>, name: Stage['name'], sinceMs: number): number {
    const { uid } = pod.metadata;
    const stage = this.#stages.get(key);
    if (stage?.uid === uid && stage.name === name) return stage.sinceMs;
    this.#stages.set(key, { uid, name, sinceMs });
    return sinceMs;
  }

  async #remove(pod: DeepReadonly<Pod>, { client, signal }: SyncContext): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    try {
      await client.delete(PODS, { name, namespace }, { uid, gracePeriodSeconds: 0, signal });
    } catch (error) {
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
  }

  /** Brings the Pod's status to what its containers are by now. */
  async #run(
    key: ObjectKey,
    pod: DeepReadonly<Pod>,
    { client, signal }: SyncContext,
  ): Promise<Outcome> {
    const { name, namespace, uid } = pod.metadata;
    const now = this.#clock.now();
    const monotonic = this.#clock.monotonic();
    // A Pod that runs already, and which this kubelet did not start: its own word, to the second.
    const knownForMs = Math.max(0, now - (Date.parse(pod.status?.startTime ?? '') || now));
    const sinceMs = this.#since(key, pod, 'running', monotonic - knownForMs);
    const elapsedMs = monotonic - sinceMs;
    const { status, nextMs } = podStatus(pod, {
      startedMs: now - elapsedMs,
      elapsedMs,
      address: pod.status?.podIP ?? this.#nextAddress(),
    });
    if (pod.status?.phase !== status.phase || !isTold(pod, status)) {
      try {
        await client.patch(
          PODS,
          { name, namespace },
          { type: 'strategic', body: { metadata: { uid }, status } },
          { subresource: 'status', fieldManager: 'kubelet', signal },
        );
      } catch (error) {
        if (!isApiError(error, 'notFound', 'conflict')) throw error;
      }
    }
    return nextMs === undefined ? done() : requeueAfter(nextMs);
  }

  /** Addresses of 10.244.0.0/16 in turn. */
  #nextAddress(): string {
    const host = (this.#addresses++ % 65_000) + 2;
    return `10.244.${host >> 8}.${host & 255}`;
  }
}

/** True if the Pod says of its containers what `status` says. */
function isTold(pod: DeepReadonly<Pod>, { containerStatuses = [] }: PodStatus): boolean {
  const told = pod.status?.containerStatuses ?? [];
  return containerStatuses.every(({ name, restartCount, state = {} }) => {
    const before = told.find((container) => container.name === name);
    const [kind] = Object.keys(state);
    return (
      before?.restartCount === restartCount && kind !== undefined && kind in (before.state ?? {})
    );
  });
}

type PodStatus = NonNullable<Pod['status']>;
