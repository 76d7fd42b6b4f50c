import type { Deployment } from '../../api/builtin.ts';
import { isApiError, isCausedByInvalid } from '../../api/api-error.ts';
import {
  hasFinalizer,
  isControlledBy,
  withFinalizer,
  withoutFinalizer,
} from '../../api/metadata.ts';
import { WEB_APPS } from '../../api/generated/web-app.ts';
import type { WebApp } from '../../api/generated/web-app.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isReadyAt } from '../../api/readiness.ts';
import type { Lister } from '../../cache/lister.ts';
import type { SyncContext, SyncHandler } from '../../manager/controller.ts';
import type { StatusWriter } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/values.ts';
import { done, requeueAfter, TerminalError } from '../../workqueue/outcome.ts';
import type { Outcome } from '../../workqueue/outcome.ts';
import { COMPONENT, deploymentName, FINALIZER, problemOf } from './children.ts';
import { setUp, takeDown } from './pipeline.ts';
import type { Progress } from './pipeline.ts';
import { buildStatus } from './status.ts';
import { TaskError } from './task.ts';
import type { Task } from './task.ts';

/** Dependencies of `WebAppSync`. */
export interface WebAppSyncDeps {
  readonly webapps: Lister<WebApp>;
  readonly deployments: Pick<Lister<Deployment>, 'get'>;
  readonly tasks: readonly Task[];
  readonly recorder: EventRecorder;
  readonly statuses: StatusWriter<WebApp>;
  readonly clock: Clock;
}

/** Of a deletion that is to leave the children: the garbage collector has them let go first. */
const ORPHAN = 'orphan';

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
    if (isLeaving && hasFinalizer(webapp, ORPHAN)) return done();
    const progress = await progressOf(deps.tasks, webapp, context);
    if (isLeaving && progress.kind === 'done') {
      await writeFinalizers(webapp, withoutFinalizer(webapp, FINALIZER), context);
      context.log.v(2).info('WebApp was taken down');
      return done();
    }
    const isNews = await tell(deps, context, webapp, progress);
    return outcomeOf(progress, isNews);
  };
}

async function progressOf(
  tasks: readonly Task[],
  webapp: DeepReadonly<WebApp>,
  context: SyncContext,
): Promise<Progress> {
  if (webapp.metadata.deletionTimestamp !== undefined) {
    return takeDown(tasks, { ...context, webapp });
  }
  const problem = problemOf(webapp);
  return problem === undefined
    ? setUp(tasks, { ...context, webapp })
    : { kind: 'refused', problem };
}

/** @returns false if the WebApp says so already */
async function tell(
  { deployments, tasks, recorder, statuses, clock }: WebAppSyncDeps,
  { signal, ...context }: SyncContext,
  webapp: DeepReadonly<WebApp>,
  progress: Progress,
): Promise<boolean> {
  const { namespace, generation } = webapp.metadata;
  const named = deployments.get(objectKey(namespace, deploymentName(webapp)));
  const deployment = named && isControlledBy(named, webapp) ? named : undefined;
  const status = buildStatus(webapp, { tasks, progress, deployment, now: clock.now() });
  const isNews = statuses.differs(webapp, status);
  // Events go before the status that says so: a crash in between repeats them rather than losing them.
  const isFirstAttempt = isNews && !statuses.hasFailed(webapp, status);
  if (progress.kind === 'failed' && (isFirstAttempt || !isToldOnce(progress))) {
    const message = `Task ${progress.task}: ${messageOf(progress.cause)}`;
    await recorder.warning(webapp, 'TaskFailed', message).attempted(signal);
  }
  if (!isNews) return false;
  if (isFirstAttempt && progress.kind === 'refused') {
    await recorder.warning(webapp, 'InvalidSpec', progress.problem).attempted(signal);
  }
  const wasReady = isReadyAt(webapp.status?.conditions, generation);
  if (isFirstAttempt && isReadyAt(status.conditions, generation) && !wasReady) {
    await recorder.normal(webapp, 'Synced', 'WebApp synced successfully').attempted(signal);
  }
  await statuses.write({ ...context, signal }, webapp, status);
  return true;
}

/** @throws what stopped the pipeline; if a retry could not help, once */
function outcomeOf(progress: Progress, isNews: boolean): Outcome {
  switch (progress.kind) {
    case 'done':
      return done();
    case 'waiting': {
      const { task, wait } = progress;
      if (wait.afterMs === undefined) return done();
      return requeueAfter(wait.afterMs, `${task}: ${wait.message}`);
    }
    case 'failed': {
      const { task, hook, cause } = progress;
      const message = `Task ${task} failed at ${hook}: ${messageOf(cause)}`;
      if (!isTerminal(progress)) throw new Error(message, { cause });
      if (isNews) throw new TerminalError(message, { cause });
      return done();
    }
    case 'refused':
      if (isNews) throw new TerminalError(progress.problem);
      return done();
  }
}

/** A failure whose retries say nothing new: a rejected object is the same until rules change. */
function isToldOnce(progress: Extract<Progress, { kind: 'failed' }>): boolean {
  return isTerminal(progress) || isCausedByInvalid(progress.cause);
}

function isTerminal({ cause }: Extract<Progress, { kind: 'failed' }>): boolean {
  return cause instanceof TaskError && cause.terminal;
}

async function writeFinalizers(
  { metadata }: DeepReadonly<WebApp>,
  finalizers: readonly string[],
  { client, signal }: SyncContext,
): Promise<void> {
  const { uid, resourceVersion } = metadata;
  const body = { metadata: { uid, resourceVersion, finalizers } };
  try {
    const patch = { type: 'merge', body } as const;
    await client.patch(WEB_APPS, metadata, patch, { fieldManager: COMPONENT, signal });
  } catch (error) {
    // Gone, and its deletion is about to be told.
    if (!isApiError(error, 'notFound')) throw error;
  }
}
