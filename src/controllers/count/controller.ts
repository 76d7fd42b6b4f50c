import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { COUNTS } from '../../api/generated/count.ts';
import type { Count } from '../../api/generated/count.ts';
import { keyOf, objectKey } from '../../api/object-key.ts';
import { ordinalOwnerKey } from '../../api/ordinal-name.ts';
import { becomesReady } from '../../api/readiness.ts';
import { isActive } from '../../api/workloads.ts';
import type { Lister } from '../../cache/lister.ts';
import { AdmittedValues } from '../../manager/admitted-values.ts';
import { OwnedObjectControl, failureEvent } from '../../manager/owned-object-control.ts';
import type { OwnedObjectFailure } from '../../manager/owned-object-control.ts';
import { slowStart } from '../../manager/owned-object.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncHandler } from '../../manager/controller-options.ts';
import { OWNER_INDEX, ownerIndexers } from '../../manager/enqueue.ts';
import type { ControllerKit } from '../../manager/run-controllers.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { EventBroadcaster } from '../../record/event-broadcaster.ts';
import { done, TerminalError } from '../../workqueue/outcome.ts';
import { buildCountPod, buildCountStatus, COUNT_COMPONENT, imageOf } from './pods.ts';
import { isSelected, planPods, podLabels, podProblem } from './pods.ts';

/** Number of requests in a row that fail before a sync stops: fewer Pods that admission denies do not prevent the others. */
const MAX_FAILURES = 5;

const SYNCED = { type: 'Normal', reason: 'Synced', message: 'Count synced successfully' } as const;

/** Keeps `spec.count` Pods with the image `spec.name` for every Count. */
export function countController(kit: ControllerKit): Controller {
  const counts = kit.informers.for(COUNTS);
  const pods = kit.informers.for(PODS);
  pods.addIndexers(ownerIndexers);
  counts.addHandler({
    onDelete: (count) => kit.log.v(2).info('Count was deleted', { count: keyOf(count) }),
  });
  const sync = countSync(kit, counts.lister, pods.lister);
  return new Controller(kit, { name: 'count', kind: COUNTS.kind, sync })
    .for(counts)
    .owns(pods, COUNTS, { orNamed: ordinalOwnerKey });
}

/** Creates and deletes the Pods of a Count, and writes its status. `pods` has the index `OWNER_INDEX`. */
export function countSync(
  kit: Pick<ControllerKit, 'clock'> & { readonly events: Pick<EventBroadcaster, 'recorder'> },
  counts: Lister<Count>,
  pods: Lister<Pod>,
): SyncHandler {
  const recorder = kit.events.recorder(COUNT_COMPONENT);
  const statuses = new StatusWriter(COUNTS, COUNT_COMPONENT, kit);
  const control = new OwnedObjectControl(COUNTS, PODS, { recorder, fieldManager: COUNT_COMPONENT });
  const images = new AdmittedValues();

  return async (key, context) => {
    const count = counts.get(key);
    // The garbage collector deletes the Pods of a deleted Count.
    if (!count || count.metadata.deletionTimestamp !== undefined) return done();
    const problem = podProblem(count);
    if (problem) {
      const error = new TerminalError(problem.message);
      const report = { readiness: { kind: 'stalled', ...problem }, event: {}, error } as const;
      await statuses.report(context, { object: count, ...report, status: { healthy: false } });
      return done();
    }
    const present = [...pods.byIndex(OWNER_INDEX, count.metadata.uid)];
    const plan = planPods(count, present, images);
    const remove = (pod: (typeof present)[number]) => control.delete(context, count, pod);
    const deleteFailure = await slowStart(plan.delete, remove, MAX_FAILURES);
    let collision: OwnedObjectFailure | undefined;
    const create = async (ordinal: number) => {
      const desired = buildCountPod(count, ordinal);
      const cached = pods.get(objectKey(count.metadata.namespace, desired.metadata.name));
      const failure = await control.create(context, count, { desired, cached }, (pod) => {
        images.created(imageOf(count, pod));
        present.push(pod);
      });
      if (failure?.cause !== undefined) return failure;
      // A name collision does not stop the creation of other Pods.
      collision ??= failure;
      return undefined;
    };
    const createFailure = await slowStart(plan.create, create, MAX_FAILURES);
    const unlabelled = present.filter(
      (pod) => isActive(pod) && !isSelected(count, pod) && !plan.delete.includes(pod),
    );
    const label = (pod: (typeof present)[number]) =>
      control.label(context, pod, podLabels(count), (labelled) => {
        present.splice(present.indexOf(pod), 1, labelled);
      });
    const labelFailure = await slowStart(unlabelled, label, MAX_FAILURES);
    const failure = deleteFailure ?? createFailure ?? labelFailure ?? collision;
    const status = buildCountStatus(count, present, failure, kit.clock.now(), images);
    const isNewlyReady = becomesReady(count, status);
    const event = failure ? failureEvent(failure) : isNewlyReady ? SYNCED : undefined;
    const isNew = await statuses.report(context, { object: count, status, event });
    const { healthy, readyReplicas } = status;
    if (isNew && healthy !== count.status?.healthy) {
      const message = healthy ? 'Count is healthy' : 'Count is not healthy';
      context.log.v(2).info(message, { ready: readyReplicas, desired: count.spec.count });
    }
    if (failure) throw new Error(failure.message, { cause: failure.cause });
    return done();
  };
}
