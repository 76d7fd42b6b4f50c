import type { Deployment } from '../../api/builtin.ts';
import { removeCondition, setCondition } from '../../api/conditions.ts';
import type { Condition } from '../../api/conditions.ts';
import type { WebApp, WebAppStatus } from '../../api/generated/web-app.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { withReadiness } from '../../api/readiness.ts';
import type { Readiness } from '../../api/readiness.ts';
import { messageOf } from '../../util/values.ts';
import { webAppSelector } from './owned-objects.ts';
import { CONDITION_SUFFIX, conditionType, TaskError } from './task.ts';
import type { TaskProgress, Task } from './task.ts';

export interface StatusInputs {
  readonly tasks: readonly Task[];
  readonly progress: TaskProgress;
  /** Controlled by the WebApp. */
  readonly deployment: DeepReadonly<Deployment> | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Returns the status of a WebApp after its hooks ran as far as `progress`. */
export function buildWebAppStatus(
  webapp: DeepReadonly<WebApp>,
  inputs: StatusInputs,
): WebAppStatus {
  const { metadata, status } = webapp;
  const { now, deployment } = inputs;
  const observedGeneration = metadata.generation ?? 0;
  const { replicas = 0, availableReplicas = 0 } = deployment?.status ?? {};
  const isDeleting = metadata.deletionTimestamp !== undefined;
  const readiness = readinessOf(webapp, inputs, isDeleting);
  const conditions = withTasks(
    withReadiness(status?.conditions, readiness, observedGeneration, now),
    inputs,
    { isDeleting, observedGeneration },
  );
  const phase = isDeleting ? 'Deleting' : PHASES[readiness.kind];
  // Conditions of other writers stay as they are.
  const own = new Set([...READINESS_TYPES, ...inputs.tasks.map(conditionType)]);
  const inPhase = (condition: Condition) =>
    own.has(condition.type) ? { ...condition, phase } : condition;
  return {
    observedGeneration,
    replicas,
    availableReplicas,
    selector: webAppSelector(webapp),
    conditions: conditions.map(inPhase),
  };
}

/** Condition types that `withReadiness` sets. */
const READINESS_TYPES = ['Ready', 'Reconciling', 'Stalled'];

const PHASES = { ready: 'Available', reconciling: 'Progressing', stalled: 'Failed' } as const;

function readinessOf(
  { spec }: DeepReadonly<WebApp>,
  { progress, deployment }: StatusInputs,
  isDeleting: boolean,
): Readiness {
  switch (progress.kind) {
    case 'done': {
      if (isDeleting) {
        return { kind: 'reconciling', reason: 'Deleting', message: 'All delete hooks are done' };
      }
      const available = deployment?.status?.availableReplicas ?? 0;
      const message = `${available} of ${spec.replicas} replicas are available`;
      return { kind: 'ready', reason: 'TasksDone', message };
    }
    case 'waiting': {
      const message = `Task ${progress.task}: ${progress.wait.message}`;
      return { kind: 'reconciling', reason: isDeleting ? 'Deleting' : 'TaskWaiting', message };
    }
    case 'failed': {
      const { cause, task } = progress;
      const message = `Task ${task}: ${messageOf(cause)}`;
      const reason = cause instanceof TaskError ? cause.reason : 'TaskFailed';
      const isStalled = cause instanceof TaskError && cause.stalled;
      return { kind: isStalled ? 'stalled' : 'reconciling', reason, message };
    }
    case 'invalid':
      return { kind: 'stalled', reason: 'InvalidSpec', message: progress.problem };
  }
}

/** Sets one condition for each task, and removes those of tasks that no longer exist. */
function withTasks(
  conditions: readonly Condition[],
  { tasks, progress, now }: StatusInputs,
  at: { readonly isDeleting: boolean; readonly observedGeneration: number },
): readonly Condition[] {
  const { isDeleting, observedGeneration } = at;
  const types = new Set(tasks.map(conditionType));
  let next = conditions;
  for (const { type } of conditions) {
    if (type.endsWith(CONDITION_SUFFIX) && !types.has(type)) next = removeCondition(next, type);
  }
  // No task ran: the previous conditions may still hold.
  if (progress.kind === 'invalid') return next;
  const stoppedAt = progress.kind === 'done' ? undefined : progress.task;
  let isAfterStop = false;
  for (const task of isDeleting ? tasks.toReversed() : tasks) {
    const isStoppedHere = task.name === stoppedAt;
    const verdict = verdictOf(progress, { isStoppedHere, isAfterStop, isDeleting });
    next = setCondition(next, { type: conditionType(task), observedGeneration, ...verdict }, now);
    isAfterStop ||= isStoppedHere;
  }
  return next;
}

type Verdict = Pick<Condition, 'status' | 'reason' | 'message'>;

function verdictOf(
  progress: TaskProgress,
  where: {
    readonly isStoppedHere: boolean;
    readonly isAfterStop: boolean;
    readonly isDeleting: boolean;
  },
): Verdict {
  if (where.isStoppedHere && progress.kind === 'waiting') {
    return { status: 'False', reason: 'Waiting', message: progress.wait.message };
  }
  if (where.isStoppedHere && progress.kind === 'failed') {
    const { cause, hook } = progress;
    const reason = cause instanceof TaskError ? cause.reason : 'Failed';
    return { status: 'False', reason, message: `${hook}: ${messageOf(cause)}` };
  }
  if (where.isDeleting) {
    return where.isAfterStop
      ? { status: 'True', reason: 'NotYetTakenDown', message: 'A task after it is not deleted yet' }
      : { status: 'False', reason: 'TakenDown', message: 'The delete hooks are done' };
  }
  return where.isAfterStop
    ? { status: 'Unknown', reason: 'NotYetRun', message: 'A task before it is not done' }
    : { status: 'True', reason: 'Done', message: 'The create hooks are done' };
}
