import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { COUNTS } from '../../api/generated/count.ts';
import type { Count, CountStatus } from '../../api/generated/count.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { controllerOf, isControlledBy } from '../../api/metadata.ts';
import { isReadyAt } from '../../api/readiness.ts';
import type { Lister } from '../../cache/lister.ts';
import { OWNER_INDEX } from '../../manager/enqueue.ts';
import type { SyncContext, SyncHandler } from '../../manager/controller.ts';
import type { StatusWriter } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/values.ts';
import { done, TerminalError } from '../../workqueue/outcome.ts';
import { obstacleIn } from './obstacle.ts';
import type { Obstacle } from './obstacle.ts';
import { planPods } from './plan.ts';
import { buildPod, COMPONENT, podName } from './pod.ts';
import { slowStart } from './slow-start.ts';
import { buildStatus, refusedStatus } from './status.ts';

/** Dependencies of `CountSync`. */
export interface CountSyncDeps {
  readonly counts: Lister<Count>;
  /** Indexed by `OWNER_INDEX`. */
  readonly pods: Lister<Pod>;
  readonly recorder: EventRecorder;
  readonly statuses: StatusWriter<Count>;
  readonly clock: Clock;
}

/**
 * Makes the Pods of one Count what its spec says, and its status what they are.
 *
 * Each run compares everything anew; nothing is remembered between runs but what the server knows.
 * It touches only Pods that the Count controls by uid. The `Synced` event precedes the status that
 * makes it unnecessary, so that a crash in between repeats the event, under the same name, rather
 * than losing it.
 */
export function countSync(deps: CountSyncDeps): SyncHandler {
  return async (key, context) => {
    const count = deps.counts.get(key);
    // Its Pods go with it: the garbage collector follows their owner references.
    if (!count || count.metadata.deletionTimestamp !== undefined) return done();
    await new CountSync(deps, context, count).run();
    return done();
  };
}

/** One run for one Count. */
class CountSync {
  readonly #deps: CountSyncDeps;
  readonly #context: SyncContext;
  readonly #count: DeepReadonly<Count>;
  /** Pods that this run has created: its status counts them, though no cache has them yet. */
  readonly #created: DeepReadonly<Pod>[] = [];

  constructor(deps: CountSyncDeps, context: SyncContext, count: DeepReadonly<Count>) {
    this.#deps = deps;
    this.#context = context;
    this.#count = count;
  }

  async run(): Promise<void> {
    const count = this.#count;
    const now = this.#deps.clock.now();
    const fault = obstacleIn(count);
    if (fault) {
      const isNews = await this.#writeStatus(refusedStatus(count, fault, now), fault);
      if (isNews) throw new TerminalError(fault.message);
      return;
    }
    const owned = this.#deps.pods.byIndex(OWNER_INDEX, count.metadata.uid);
    const plan = planPods(count, owned);
    const { obstacle, cause } =
      (await this.#deletePods(plan.delete)) ?? (await this.#createPods(plan.create)) ?? {};
    await this.#writeStatus(
      buildStatus(count, [...owned, ...this.#created], obstacle, now),
      isApiError(cause, 'invalid') ? obstacle : undefined,
    );
    if (obstacle) throw new Error(obstacle.message, { cause });
  }

  async #deletePods(pods: readonly DeepReadonly<Pod>[]): Promise<Failure | undefined> {
    const { client, signal, log } = this.#context;
    const { recorder } = this.#deps;
    return slowStart(pods, async (pod) => {
      const { name, namespace, uid } = pod.metadata;
      try {
        await client.delete(PODS, { namespace, name }, { uid, signal });
      } catch (cause) {
        // Gone already, or another of its name has come: either way ours is no longer there.
        if (isApiError(cause, 'notFound', 'conflict')) return undefined;
        // We are stopping; the Count is not to blame.
        if (signal.aborted) throw cause;
        return this.#failure('FailedDelete', `Error deleting: ${messageOf(cause)}`, cause);
      }
      log.v(2).info('Deleted Pod', { pod: objectKey(namespace, name) });
      recorder.normal(this.#count, 'SuccessfulDelete', `Deleted pod: ${name}`);
      return undefined;
    });
  }

  async #createPods(ordinals: readonly number[]): Promise<Failure | undefined> {
    // Names that others hold are known from the cache; the Pods that can be created still are.
    const foreign = ordinals.map((ordinal) => this.#holderOf(ordinal)).find((pod) => pod);
    const free = ordinals.filter((ordinal) => !this.#isTaken(ordinal));
    const failure = await slowStart(free, (ordinal) => this.#createPod(ordinal));
    return failure ?? (foreign && this.#refuse(foreign.metadata.name));
  }

  async #createPod(ordinal: number): Promise<Failure | undefined> {
    const { client, signal, log } = this.#context;
    const { recorder } = this.#deps;
    const pod = buildPod(this.#count, ordinal);
    const name = podName(this.#count, ordinal);
    const namespace = this.#count.metadata.namespace;
    try {
      this.#created.push(await client.create(PODS, pod, { fieldManager: COMPONENT, signal }));
    } catch (cause) {
      if (isApiError(cause, 'alreadyExists')) return this.#explainExisting(name, cause);
      // The Count goes with its namespace; there is nothing to tell anybody.
      if (isNamespaceTerminating(cause)) return undefined;
      if (signal.aborted) throw cause;
      return this.#failure('FailedCreate', `Error creating: ${messageOf(cause)}`, cause);
    }
    log.v(2).info('Created Pod', { pod: objectKey(namespace, name) });
    recorder.normal(this.#count, 'SuccessfulCreate', `Created pod: ${name}`);
    return undefined;
  }

  /** The cache did not know of this Pod: it may be our own, from a create whose answer was lost. */
  async #explainExisting(name: string, cause: unknown): Promise<Failure | undefined> {
    const { client, signal } = this.#context;
    const { namespace } = this.#count.metadata;
    try {
      const existing = await client.get(PODS, { namespace, name }, { signal });
      return this.#mayTake(existing) ? undefined : this.#refuse(name, cause);
    } catch (error) {
      // Gone again: the next run creates it.
      if (isApiError(error, 'notFound')) throw cause;
      throw error;
    }
  }

  #failure(reason: string, message: string, cause: unknown): Failure {
    const stalled = isApiError(cause, 'invalid');
    // Retries of a write that the server rejects repeat no event: it goes with the status.
    if (!stalled) this.#deps.recorder.warning(this.#count, reason, message);
    return { obstacle: { reason, message, stalled }, cause };
  }

  #refuse(name: string, cause?: unknown): Failure {
    const message = `Resource "${name}" already exists and is not managed by Count`;
    this.#deps.recorder.warning(this.#count, 'ErrResourceExists', message);
    return { obstacle: { reason: 'ErrResourceExists', message, stalled: true }, cause };
  }

  #isTaken(ordinal: number): boolean {
    const { namespace } = this.#count.metadata;
    return this.#deps.pods.get(objectKey(namespace, podName(this.#count, ordinal))) !== undefined;
  }

  /** The Pod of somebody else that has the name of ours. */
  #holderOf(ordinal: number): DeepReadonly<Pod> | undefined {
    const { namespace } = this.#count.metadata;
    const pod = this.#deps.pods.get(objectKey(namespace, podName(this.#count, ordinal)));
    return pod && !this.#mayTake(pod) ? pod : undefined;
  }

  /**
   * The Pod is ours, or was our forerunner's of the same name, and is about to be collected; its
   * deletion wakes this Count.
   */
  #mayTake(pod: DeepReadonly<Pod>): boolean {
    const controller = controllerOf(pod);
    return (
      isControlledBy(pod, this.#count) ||
      (controller?.kind === COUNTS.kind && controller.name === this.#count.metadata.name)
    );
  }

  /**
   * @param fault is told by an event, if it is news
   * @returns false if the Count says so already
   */
  async #writeStatus(status: CountStatus, fault?: Obstacle): Promise<boolean> {
    const count = this.#count;
    const { statuses, recorder } = this.#deps;
    if (!statuses.differs(count, status)) return false;
    const { signal, log } = this.#context;
    const { generation } = count.metadata;
    const isFirstAttempt = !statuses.hasFailed(count, status);
    const wasReady = isReadyAt(count.status?.conditions, generation);
    if (isFirstAttempt && isReadyAt(status.conditions, generation) && !wasReady) {
      await recorder.normal(count, 'Synced', 'Count synced successfully').attempted(signal);
    }
    if (isFirstAttempt && fault) {
      await recorder.warning(count, fault.reason, fault.message).attempted(signal);
    }
    await statuses.write(this.#context, count, status);
    const { healthy = false, readyReplicas } = status;
    if (healthy !== count.status?.healthy) {
      const fields = { ready: readyReplicas, desired: count.spec.count };
      log.v(2).info(healthy ? 'Count is healthy' : 'Count is not healthy', fields);
    }
    return true;
  }
}

interface Failure {
  readonly obstacle: Obstacle;
  readonly cause: unknown;
}
