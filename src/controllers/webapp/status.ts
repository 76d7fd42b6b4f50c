import type { Deployment } from '../../api/builtin.ts';
import { removeCondition, setCondition } from '../../api/conditions.ts';
import type { Condition } from '../../api/conditions.ts';
import type { WebApp, WebAppStatus } from '../../api/generated/web-app.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { withStanding } from '../../api/standing.ts';
import type { Standing } from '../../api/standing.ts';
import { podSelector } from './children.ts';
import type { Progress } from './pipeline.ts';
import { TaskError } from './task.ts';
import type { Task } from './task.ts';

export interface StatusInputs {
  readonly tasks: readonly Task[];
  readonly progress: Progress;
  readonly deployment: DeepReadonly<Deployment> | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The status of a WebApp whose pipeline came as far as `progress` says. */
export function buildStatus(
  webapp: DeepReadonly<WebApp>,
  { tasks, progress, deployment, now }: StatusInputs,
): WebAppStatus {
  const observedGeneration = webapp.metadata.generation ?? 0;
  const isLeaving = webapp.metadata.deletionTimestamp !== undefined;
  const { replicas = 0, availableReplicas = 0 } = deployment?.status ?? {};
  const standing = standingOf(webapp, progress, isLeaving);
  const types = new Set(tasks.map(conditionType));
  let conditions = withStanding(webapp.status?.conditions, standing, observedGeneration, now);
  for (const { type } of conditions) {
    // A task that the pipeline no longer has.
    if (type.endsWith(SUFFIX) && !types.has(type)) conditions = removeCondition(conditions, type);
  }
  const reached = isLeaving ? tasks.toReversed() : tasks;
  const stoppedAt = progress.kind === 'done' ? undefined : progress.task;
  let isBehind = false;
  for (const task of reached) {
    const isHere = task.name === stoppedAt;
    const verdict = verdictOf(progress, { isHere, isBehind, isLeaving });
    const type = conditionType(task);
    conditions = setCondition(conditions, { type, observedGeneration, ...verdict }, now);
    isBehind ||= isHere;
  }
  const phase = isLeaving ? 'Deleting' : PHASES[standing.kind];
  const inPhase = (condition: Condition) => ({ ...condition, phase });
  return {
    observedGeneration,
    replicas,
    availableReplicas,
    selector: podSelector(webapp),
    conditions: conditions.map(inPhase),
  };
}

const PHASES = { ready: 'Available', reconciling: 'Progressing', stalled: 'Failed' } as const;
const SUFFIX = 'Done';

/** `DeploymentDone` of the task `deployment`. */
export function conditionType({ name }: Pick<Task, 'name'>): string {
  const words = name.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join('')}${SUFFIX}`;
}

export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function standingOf(
  webapp: DeepReadonly<WebApp>,
  progress: Progress,
  isLeaving: boolean,
): Standing {
  const { replicas } = webapp.spec;
  switch (progress.kind) {
    case 'done':
      return isLeaving
        ? { kind: 'reconciling', reason: 'Deleting', message: 'All tasks are taken down' }
        : {
            kind: 'ready',
            reason: 'TasksDone',
            message: `${replicas} of ${replicas} replicas are available`,
          };
    case 'waiting': {
      const message = `Task ${progress.task}: ${progress.wait.message}`;
      return { kind: 'reconciling', reason: isLeaving ? 'Deleting' : 'TaskWaiting', message };
    }
    case 'failed': {
      const { cause, task } = progress;
      const message = `Task ${task}: ${describe(cause)}`;
      const reason = cause instanceof TaskError ? cause.reason : 'TaskFailed';
      const isStalled = cause instanceof TaskError && cause.stalled;
      return { kind: isStalled ? 'stalled' : 'reconciling', reason, message };
    }
  }
}

type Verdict = Pick<Condition, 'status' | 'reason' | 'message'>;

function verdictOf(
  progress: Progress,
  where: { readonly isHere: boolean; readonly isBehind: boolean; readonly isLeaving: boolean },
): Verdict {
  if (where.isHere && progress.kind === 'waiting') {
    return { status: 'False', reason: 'Waiting', message: progress.wait.message };
  }
  if (where.isHere && progress.kind === 'failed') {
    const { cause, hook } = progress;
    const reason = cause instanceof TaskError ? cause.reason : 'Failed';
    return { status: 'False', reason, message: `${hook}: ${describe(cause)}` };
  }
  if (where.isLeaving) {
    return where.isBehind
      ? { status: 'True', reason: 'NotYetTakenDown', message: 'Its turn is yet to come' }
      : { status: 'False', reason: 'TakenDown', message: 'Nothing is left of it' };
  }
  return where.isBehind
    ? { status: 'Unknown', reason: 'NotYetRun', message: 'A task before it is not done' }
    : { status: 'True', reason: 'Done', message: 'Everything is as wanted' };
}
