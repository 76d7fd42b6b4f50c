import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { COUNTS } from '../../api/generated/count.ts';
import type { Count } from '../../api/generated/count.ts';
import { keyOf, objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { becomesReady } from '../../api/readiness.ts';
import { isActive } from '../../api/workloads.ts';
import type { Lister } from '../../cache/lister.ts';
import {
  deleteChild,
  ensureChild,
  isReplaced,
  nameCollision,
  slowStart,
} from '../../manager/child.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext, SyncHandler } from '../../manager/controller-options.ts';
import { OWNER_INDEX, ownerIndexers } from '../../manager/enqueue.ts';
import type { ControllerKit } from '../../manager/run-controllers.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { StatusEvent } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/values.ts';
import { done, TerminalError } from '../../workqueue/outcome.ts';
import {
  AskedImages,
  buildCountPod,
  COUNT_COMPONENT,
  countKeyOf,
  isSelected,
  planPods,
  podLabels,
  podProblem,
} from './pods.ts';
import { buildCountStatus, invalidCountStatus } from './status.ts';
import type { CountFailure } from './status.ts';

/** Number of requests in a row that fail before a sync stops: fewer Pods that admission denies do not prevent the others. */
const MAX_FAILURES = 5;

/** Keeps `spec.count` Pods with the image `spec.name` for every Count. */
export function countController(kit: ControllerKit): Controller {
  const counts = kit.informers.for(COUNTS);
  const pods = kit.informers.for(PODS);
  pods.addIndexers(ownerIndexers);
  counts.addHandler({
    onDelete: (count) => kit.log.v(2).info('Count was deleted', { count: keyOf(count) }),
  });
  const sync = countSync({
    counts: counts.lister,
    pods: pods.lister,
    recorder: kit.events.recorder(COUNT_COMPONENT),
    clock: kit.clock,
  });
  return new Controller(kit, { name: 'count', kind: COUNTS.kind, sync })
    .for(counts)
    .owns(pods, COUNTS, { orNamed: countKeyOf });
}

/** Dependencies of `countSync`. */
export interface CountSyncDeps {
  readonly counts: Lister<Count>;
  /** Has the index `OWNER_INDEX`. */
  readonly pods: Lister<Pod>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

/** Creates and deletes the Pods of a Count, and writes its status. */
export function countSync({ counts, pods, recorder, clock }: CountSyncDeps): SyncHandler {
  const statuses = new StatusWriter(COUNTS, COUNT_COMPONENT, {
    events: { recorder: () => recorder },
  });
  const images = new AskedImages();

  const deletePod = async (
    context: SyncContext,
    count: DeepReadonly<Count>,
    pod: DeepReadonly<Pod>,
  ): Promise<CountFailure | undefined> => {
    try {
      if (!(await deleteChild(context, PODS, pod))) return undefined;
    } catch (cause) {
      if (context.signal.aborted) throw cause;
      return failureOf('FailedDelete', `Error deleting: ${messageOf(cause)}`, cause);
    }
    context.log.v(2).info('Deleted Pod', { pod: keyOf(pod) });
    recorder.normal(count, 'SuccessfulDelete', `Deleted pod: ${pod.metadata.name}`);
    return undefined;
  };

  const createPod = async (
    context: SyncContext,
    count: DeepReadonly<Count>,
    ordinal: number,
  ): Promise<DeepReadonly<Pod> | CountFailure | undefined> => {
    const desired = buildCountPod(count, ordinal);
    const { name } = desired.metadata;
    const pod = objectKey(count.metadata.namespace, name);
    const child = { resource: PODS, owner: count, desired, cached: pods.get(pod), update: false };
    try {
      const { kind, object } = await ensureChild(context, {
        ...child,
        fieldManager: COUNT_COMPONENT,
      });
      if (kind === 'nameCollision') return { ...nameCollision(COUNTS, name), stalled: true };
      if (kind !== 'created') return undefined;
      context.log.v(2).info('Created Pod', { pod });
      recorder.normal(count, 'SuccessfulCreate', `Created pod: ${name}`);
      images.created(count, object);
      return images.restore(count, [object])[0];
    } catch (cause) {
      // The Count is about to be deleted with its namespace.
      if (isNamespaceTerminating(cause)) return undefined;
      if (context.signal.aborted || isApiError(cause, 'alreadyExists')) throw cause;
      return failureOf('FailedCreate', `Error creating: ${messageOf(cause)}`, cause);
    }
  };

  /** Restores the labels of a Pod, and replaces it in `present`. */
  const labelPod = async (
    { client, signal }: SyncContext,
    count: DeepReadonly<Count>,
    pod: DeepReadonly<Pod>,
    present: DeepReadonly<Pod>[],
  ): Promise<CountFailure | undefined> => {
    const body = { metadata: { uid: pod.metadata.uid, labels: podLabels(count) } };
    try {
      const options = { fieldManager: COUNT_COMPONENT, signal };
      const labelled = client.patch(PODS, pod.metadata, { type: 'merge', body }, options);
      present.splice(present.indexOf(pod), 1, ...images.restore(count, [await labelled]));
      return undefined;
    } catch (cause) {
      // The event of the deletion enqueues the Count.
      if (isReplaced(cause)) return undefined;
      if (signal.aborted) throw cause;
      return failureOf('FailedPatch', `Error restoring labels: ${messageOf(cause)}`, cause);
    }
  };

  return async (key, context) => {
    const count = counts.get(key);
    // The garbage collector deletes the Pods of a deleted Count.
    if (!count || count.metadata.deletionTimestamp !== undefined) return done();
    const now = clock.now();
    const problem = podProblem(count);
    if (problem) {
      await statuses.report(context, {
        object: count,
        status: invalidCountStatus(count, problem, now),
        event: { type: 'Warning', ...problem },
        error: new TerminalError(problem.message),
      });
      return done();
    }
    const present = images.restore(count, pods.byIndex(OWNER_INDEX, count.metadata.uid));
    const plan = planPods(count, present);
    let collision: CountFailure | undefined;
    const deleteFailure = await slowStart(
      plan.delete,
      (pod) => deletePod(context, count, pod),
      MAX_FAILURES,
    );
    const create = async (ordinal: number) => {
      const result = await createPod(context, count, ordinal);
      if (!result) return undefined;
      if ('metadata' in result) present.push(result);
      else if (result.cause !== undefined) return result;
      // A name collision does not stop the creation of other Pods.
      else collision ??= result;
      return undefined;
    };
    const createFailure = await slowStart(plan.create, create, MAX_FAILURES);
    const unlabelled = present.filter(
      (pod) => isActive(pod) && !isSelected(count, pod) && !plan.delete.includes(pod),
    );
    const label = (pod: DeepReadonly<Pod>) => labelPod(context, count, pod, present);
    const labelFailure = await slowStart(unlabelled, label, MAX_FAILURES);
    const failure = deleteFailure ?? createFailure ?? labelFailure ?? collision;
    const status = buildCountStatus(count, present, failure, now);
    const isNew = await statuses.report(context, {
      object: count,
      status,
      event: eventOf(failure, becomesReady(count, status)),
    });
    const { healthy, readyReplicas } = status;
    if (isNew && healthy !== count.status?.healthy) {
      const fields = { ready: readyReplicas, desired: count.spec.count };
      context.log.v(2).info(healthy ? 'Count is healthy' : 'Count is not healthy', fields);
    }
    if (failure) throw new Error(failure.message, { cause: failure.cause });
    return done();
  };
}

function failureOf(reason: string, message: string, cause: unknown): CountFailure {
  return { reason, message, stalled: isApiError(cause, 'invalid'), cause };
}

function eventOf(
  failure: CountFailure | undefined,
  isNewlyReady: boolean,
): StatusEvent | undefined {
  if (failure) {
    const { reason, message, cause } = failure;
    // Retries of a Pod that the server rejects record no further event.
    return { type: 'Warning', reason, message, repeats: !isApiError(cause, 'invalid') };
  }
  if (!isNewlyReady) return undefined;
  return { type: 'Normal', reason: 'Synced', message: 'Count synced successfully' };
}
