import type { Deployment } from '../../api/builtin.ts';
import { removeCondition, setCondition } from '../../api/conditions.ts';
import type { Condition } from '../../api/conditions.ts';
import type { WebApp, WebAppStatus } from '../../api/generated/web-app.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { withReadiness } from '../../api/readiness.ts';
import type { Readiness } from '../../api/readiness.ts';
import { messageOf } from '../../util/values.ts';
import { podSelector } from './children.ts';
import { CONDITION_SUFFIX, conditionType } from './pipeline.ts';
import type { Progress } from './pipeline.ts';
import { TaskError } from './task.ts';
import type { Task } from './task.ts';

export interface StatusInputs {
  readonly tasks: readonly Task[];
  readonly progress: Progress;
  /** That of the WebApp, and no other of its name. */
  readonly deployment: DeepReadonly<Deployment> | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The status of a WebApp whose pipeline came as far as `progress` says. */
export function buildStatus(webapp: DeepReadonly<WebApp>, inputs: StatusInputs): WebAppStatus {
  const { metadata, status } = webapp;
  const { now, deployment } = inputs;
  const observedGeneration = metadata.generation ?? 0;
  const { replicas = 0, availableReplicas = 0 } = deployment?.status ?? {};
  const isLeaving = metadata.deletionTimestamp !== undefined;
  const readiness = readinessOf(webapp, inputs, isLeaving);
  const conditions = withTasks(
    withReadiness(status?.conditions, readiness, observedGeneration, now),
    inputs,
    { isLeaving, observedGeneration },
  );
  const phase = isLeaving ? 'Deleting' : PHASES[readiness.kind];
  // Conditions of other writers stay as they are.
  const own = new Set([...STANDING_TYPES, ...inputs.tasks.map(conditionType)]);
  const inPhase = (condition: Condition) =>
    own.has(condition.type) ? { ...condition, phase } : condition;
  return {
    observedGeneration,
    replicas,
    availableReplicas,
    selector: podSelector(webapp),
    conditions: conditions.map(inPhase),
  };
}

/** Types that `withReadiness` sets. */
const STANDING_TYPES = ['Ready', 'Reconciling', 'Stalled'];

const PHASES = { ready: 'Available', reconciling: 'Progressing', stalled: 'Failed' } as const;

function readinessOf(
  { spec }: DeepReadonly<WebApp>,
  { progress, deployment }: StatusInputs,
  isLeaving: boolean,
): Readiness {
  switch (progress.kind) {
    case 'done': {
      if (isLeaving) {
        return { kind: 'reconciling', reason: 'Deleting', message: 'All tasks are taken down' };
      }
      const available = deployment?.status?.availableReplicas ?? 0;
      const message = `${available} of ${spec.replicas} replicas are available`;
      return { kind: 'ready', reason: 'TasksDone', message };
    }
    case 'waiting': {
      const message = `Task ${progress.task}: ${progress.wait.message}`;
      return { kind: 'reconciling', reason: isLeaving ? 'Deleting' : 'TaskWaiting', message };
    }
    case 'failed': {
      const { cause, task } = progress;
      const message = `Task ${task}: ${messageOf(cause)}`;
      const reason = cause instanceof TaskError ? cause.reason : 'TaskFailed';
      const isStalled = cause instanceof TaskError && cause.stalled;
      return { kind: isStalled ? 'stalled' : 'reconciling', reason, message };
    }
    case 'refused':
      return { kind: 'stalled', reason: 'InvalidSpec', message: progress.problem };
  }
}

/** `conditions` with one for each task, and none for tasks that the pipeline no longer has. */
function withTasks(
  conditions: readonly Condition[],
  { tasks, progress, now }: StatusInputs,
  at: { readonly isLeaving: boolean; readonly observedGeneration: number },
): readonly Condition[] {
  const { isLeaving, observedGeneration } = at;
  const types = new Set(tasks.map(conditionType));
  let next = conditions;
  for (const { type } of conditions) {
    if (type.endsWith(CONDITION_SUFFIX) && !types.has(type)) next = removeCondition(next, type);
  }
  // Nothing is known of tasks that did not run; what was known of them may still hold.
  if (progress.kind === 'refused') return next;
  const stoppedAt = progress.kind === 'done' ? undefined : progress.task;
  let isBehind = false;
  for (const task of isLeaving ? tasks.toReversed() : tasks) {
    const isHere = task.name === stoppedAt;
    const verdict = verdictOf(progress, { isHere, isBehind, isLeaving });
    next = setCondition(next, { type: conditionType(task), observedGeneration, ...verdict }, now);
    isBehind ||= isHere;
  }
  return next;
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
    return { status: 'False', reason, message: `${hook}: ${messageOf(cause)}` };
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
