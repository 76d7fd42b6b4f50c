import type { Deployment } from '../../api/builtin.ts';
import { hasFinalizer, withFinalizer, withoutFinalizer } from '../../api/finalizer.ts';
import { WEB_APPS } from '../../api/generated/web-app.ts';
import type { WebApp } from '../../api/generated/web-app.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isReadyAt } from '../../api/standing.ts';
import type { Lister } from '../../cache/lister.ts';
import type { SyncContext, SyncHandler } from '../../manager/controller.ts';
import type { StatusWriter } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import type { Outcome } from '../../workqueue/outcome.ts';
import { COMPONENT, deploymentName, FINALIZER } from './children.ts';
import { setUp, takeDown } from './pipeline.ts';
import type { Progress } from './pipeline.ts';
import { buildStatus, describe } from './status.ts';
import type { Task } from './task.ts';

export interface WebAppSyncDeps {
  readonly webapps: Lister<WebApp>;
  readonly deployments: Pick<Lister<Deployment>, 'get'>;
  readonly tasks: readonly Task[];
  readonly recorder: EventRecorder;
  readonly statuses: StatusWriter<WebApp>;
  readonly clock: Clock;
}

/**
 * Runs the tasks of one WebApp, forward to set it up and backward to take it down.
 *
 * The finalizer stands around the pipeline: it is there before the first task does anything, and
 * goes when the last one has nothing left, so that no deletion can overtake a task. Every run
 * begins at the first task: what is done already is found to be done.
 */
export function webAppSync(deps: WebAppSyncDeps): SyncHandler {
  return async (key, context) => {
    const webapp = deps.webapps.get(key);
    if (!webapp) return done();
    const isLeaving = webapp.metadata.deletionTimestamp !== undefined;
    if (!hasFinalizer(webapp, FINALIZER)) {
      // The finalizer's own event brings it back here; one that leaves without has nothing of ours.
      if (!isLeaving) await writeFinalizers(webapp, withFinalizer(webapp, FINALIZER), context);
      return done();
    }
    const progress = await (isLeaving ? takeDown : setUp)(deps.tasks, { ...context, webapp });
    if (isLeaving && progress.kind === 'done') {
      await writeFinalizers(webapp, withoutFinalizer(webapp, FINALIZER), context);
      context.log.v(2).info('WebApp was taken down');
      return done();
    }
    await tell(deps, context, webapp, progress);
    return outcomeOf(progress);
  };
}

async function tell(
  { deployments, tasks, recorder, statuses, clock }: WebAppSyncDeps,
  context: SyncContext,
  webapp: DeepReadonly<WebApp>,
  progress: Progress,
): Promise<void> {
  if (progress.kind === 'failed') {
    recorder.warning(webapp, 'TaskFailed', `Task ${progress.task}: ${describe(progress.cause)}`);
  }
  const { namespace, generation } = webapp.metadata;
  const deployment = deployments.get(objectKey(namespace, deploymentName(webapp)));
  const status = buildStatus(webapp, { tasks, progress, deployment, now: clock.now() });
  if (!statuses.differs(webapp, status)) return;
  const isReady = isReadyAt(status.conditions, generation);
  if (isReady && !isReadyAt(webapp.status?.conditions, generation)) {
    // Before the status that says so: a crash in between repeats the event rather than losing it.
    const recorded = recorder.normal(webapp, 'Synced', 'WebApp synced successfully');
    await recorded.attempted(context.signal);
  }
  await statuses.write(context, webapp, status);
}

function outcomeOf(progress: Progress): Outcome {
  switch (progress.kind) {
    case 'done':
      return done();
    case 'waiting': {
      const { afterMs } = progress.wait;
      return afterMs === undefined ? done() : requeueAfter(afterMs);
    }
    case 'failed': {
      const { task, hook, cause } = progress;
      throw new Error(`Task ${task} failed at ${hook}: ${describe(cause)}`, { cause });
    }
  }
}

async function writeFinalizers(
  { metadata }: DeepReadonly<WebApp>,
  finalizers: readonly string[],
  { client, signal }: SyncContext,
): Promise<void> {
  const { uid, resourceVersion } = metadata;
  await client.patch(
    WEB_APPS,
    metadata,
    { type: 'merge', body: { metadata: { uid, resourceVersion, finalizers } } },
    { fieldManager: COMPONENT, signal },
  );
}
