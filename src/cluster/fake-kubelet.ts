import { isApiError } from '../api/api-error.ts';
import { PODS } from '../api/builtin.ts';
import type { Pod } from '../api/builtin.ts';
import { timestamp } from '../api/conditions.ts';
import type { DeepReadonly } from '../api/object.ts';
import { Controller } from '../manager/controller.ts';
import type { SyncContext } from '../manager/controller.ts';
import type { Clock } from '../util/clock.ts';
import { done, requeueAfter } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { ClusterDeps } from './cluster-deps.ts';

export interface FakeKubeletOptions {
  readonly nodeName: string;
  /**
   * From a Pod's creation until its containers run, in milliseconds.
   * @default 0
   */
  readonly startupMs?: number;
  /**
   * From a Pod's deletion until it is gone, in milliseconds; its own grace period if that is less.
   * @default 0
   */
  readonly terminationMs?: number;
}

/**
 * Plays the kubelet of one node: Pods bound to it run, get an address and become ready; deleted
 * ones go away after their grace. It executes nothing.
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
      return pod && pod.spec?.nodeName === options.nodeName ? kubelet.sync(pod, context) : done();
    },
  }).for(pods);
}

class FakeKubelet {
  readonly #clock: Clock;
  readonly #options: FakeKubeletOptions;
  #addresses = 0;

  constructor(clock: Clock, options: FakeKubeletOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  sync(pod: DeepReadonly<Pod>, context: SyncContext): Promise<Outcome> {
    if (pod.metadata.deletionTimestamp !== undefined) return this.#terminate(pod, context);
    if ((pod.status?.phase ?? 'Pending') === 'Pending') return this.#start(pod, context);
    return Promise.resolve(done());
  }

  async #terminate(pod: DeepReadonly<Pod>, { client, signal }: SyncContext): Promise<Outcome> {
    const {
      name,
      namespace,
      uid,
      deletionTimestamp = '',
      deletionGracePeriodSeconds = 0,
    } = pod.metadata;
    // The timestamp says when the grace is over, so the deletion was asked for that much earlier.
    const deletedAt = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
    const graceMs = Math.min(this.#options.terminationMs ?? 0, deletionGracePeriodSeconds * 1000);
    const wait = deletedAt + graceMs - this.#clock.now();
    if (graceMs > 0 && wait > 0) return requeueAfter(wait);
    try {
      await client.delete(PODS, { name, namespace }, { uid, gracePeriodSeconds: 0, signal });
    } catch (error) {
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
    return done();
  }

  async #start(pod: DeepReadonly<Pod>, { client, signal }: SyncContext): Promise<Outcome> {
    const { name, namespace, uid, creationTimestamp } = pod.metadata;
    const wait = Date.parse(creationTimestamp) + (this.#options.startupMs ?? 0) - this.#clock.now();
    if (this.#options.startupMs && wait > 0) return requeueAfter(wait);
    const status = runningStatus(pod, this.#nextAddress(), timestamp(this.#clock.now()));
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
    return done();
  }

  /** Addresses of 10.244.0.0/16 in turn. */
  #nextAddress(): string {
    const host = (this.#addresses++ % 65_000) + 2;
    return `10.244.${host >> 8}.${host & 255}`;
  }
}

function runningStatus(pod: DeepReadonly<Pod>, address: string, now: string): object {
  const containers = pod.spec?.containers ?? [];
  const condition = (type: string) => ({ type, status: 'True', lastTransitionTime: now });
  return {
    phase: 'Running',
    startTime: now,
    hostIP: '10.0.0.1',
    hostIPs: [{ ip: '10.0.0.1' }],
    podIP: address,
    podIPs: [{ ip: address }],
    conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(condition),
    containerStatuses: containers.map(({ name, image = '' }) => ({
      name,
      image,
      imageID: '',
      containerID: `fake://${pod.metadata.uid}/${name}`,
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt: now } },
    })),
  };
}
