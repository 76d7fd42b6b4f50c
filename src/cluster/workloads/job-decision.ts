import type { Job, Pod } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { conditionOf } from '../../api/workloads.ts';
import { completedCount } from './job-index.ts';

type Conditions = NonNullable<NonNullable<Job['status']>['conditions']>;

/** Delay of a new Pod after a failure, as in kube-controller-manager: 10 s to 10 min. */
const INITIAL_BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 600_000;

export interface JobPods {
  readonly active: readonly DeepReadonly<Pod>[];
  readonly terminating: readonly DeepReadonly<Pod>[];
  /** Ended Pods whose finalizer is not yet removed. */
  readonly uncounted: readonly DeepReadonly<Pod>[];
  readonly uncountedFailed: readonly string[];
  /** Numbers of Pods whose finalizer is removed. */
  readonly settledSucceeded: number;
  readonly settledFailed: number;
  readonly succeeded: number;
  readonly failed: number;
  /** Those that have the finalizer; the status has the indexes of the others, unless they do not count. */
  readonly succeededPods: readonly DeepReadonly<Pod>[];
  readonly failedPods: readonly DeepReadonly<Pod>[];
}

/** Reason and message of a condition. */
interface Verdict {
  readonly reason: string;
  readonly message: string;
}

export interface JobDecision {
  /** Number of Pods that should be active. */
  readonly wanted: number;
  /** The Job has succeeded, or failed. */
  readonly succeeded?: Verdict;
  readonly failed?: Verdict;
  /** Time until the decision can change without an event, in milliseconds. */
  readonly waitMs?: number | undefined;
}

const COMPLETE: Verdict = {
  reason: 'CompletionsReached',
  message: 'Reached expected number of succeeded pods',
};
const BACKOFF: Verdict = {
  reason: 'BackoffLimitExceeded',
  message: 'Job has reached the specified backoff limit',
};
const DEADLINE: Verdict = {
  reason: 'DeadlineExceeded',
  message: 'Job was active longer than specified deadline',
};

/** Decides whether a Job has ended, and how many Pods it needs. */
export function jobDecision(job: DeepReadonly<Job>, pods: JobPods, nowMs: number): JobDecision {
  const { spec, status } = job;
  const before = conditionOf(status?.conditions, 'FailureTarget', 'True');
  if (before) return { wanted: 0, failed: before as Verdict };
  const startMs = Date.parse(status?.startTime ?? '');
  const deadlineMs = startMs + (spec?.activeDeadlineSeconds ?? Infinity) * 1000;
  const isFailing = pods.failed > (spec?.backoffLimit ?? 6) || hasTooManyRestarts(job, pods);
  if (isFailing) return { wanted: 0, failed: BACKOFF };
  if (!spec?.suspend && nowMs >= deadlineMs) return { wanted: 0, failed: DEADLINE };
  const left = completionsLeft(job, pods);
  if (left <= 0) return { wanted: 0, succeeded: COMPLETE };
  if (spec?.suspend) return { wanted: 0 };
  const untilDeadlineMs = Number.isFinite(deadlineMs) ? deadlineMs - nowMs : undefined;
  const wanted = Math.min(spec?.parallelism ?? 1, left);
  const backoffMs = backoffLeft(pods, nowMs);
  if (wanted <= pods.active.length || backoffMs <= 0) return { wanted, waitMs: untilDeadlineMs };
  return {
    wanted: pods.active.length,
    waitMs: Math.min(backoffMs, untilDeadlineMs ?? Infinity),
  };
}

/** Returns how many Pods have to succeed; without `completions`, the active ones once one has succeeded. */
function completionsLeft(job: DeepReadonly<Job>, pods: JobPods): number {
  const { completions, completionMode, parallelism = 1 } = job.spec ?? {};
  if (completions === undefined) return pods.succeeded > 0 ? pods.active.length : parallelism;
  const succeeded =
    completionMode === 'Indexed' ? completedCount(job, pods.succeededPods) : pods.succeeded;
  return completions - succeeded;
}

function hasTooManyRestarts({ spec }: DeepReadonly<Job>, { active }: JobPods): boolean {
  if (spec?.template.spec?.restartPolicy !== 'OnFailure') return false;
  const restarts = active
    .flatMap(({ status }) => status?.containerStatuses ?? [])
    .reduce((sum, { restartCount }) => sum + restartCount, 0);
  const { backoffLimit = 6 } = spec;
  return backoffLimit === 0 ? restarts > 0 : restarts >= backoffLimit;
}

/** Returns for how long a failure delays new Pods, in milliseconds. */
function backoffLeft({ failed, failedPods }: JobPods, nowMs: number): number {
  if (failed === 0) return 0;
  const lastMs = failedPods
    .map(finishedAt)
    .reduce<number>((latest, ms) => Math.max(latest, ms), -Infinity);
  const backoffMs = Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** (failed - 1));
  return lastMs + backoffMs - nowMs;
}

function finishedAt({ metadata, status }: DeepReadonly<Pod>): number {
  const times = (status?.containerStatuses ?? []).map(({ state }) =>
    Date.parse(state?.terminated?.finishedAt ?? ''),
  );
  const latest = times.reduce((last, ms) => Math.max(last, ms || 0), 0);
  return latest || Date.parse(metadata.deletionTimestamp ?? metadata.creationTimestamp);
}

/** Returns the conditions. A Job is complete or failed once all its Pods have ended and are counted. */
export function jobConditions(
  { spec, status }: DeepReadonly<Job>,
  pods: JobPods,
  { succeeded, failed }: JobDecision,
  nowMs: number,
): Conditions {
  const now = timestamp(nowMs);
  const conditions = structuredClone(status?.conditions ?? []) as Conditions;
  const set = (type: string, is: 'True' | 'False', { reason, message }: Verdict) => {
    const before = conditions.find((condition) => condition.type === type);
    if (before?.status === is) return;
    const next = { type, status: is, lastProbeTime: now, lastTransitionTime: now, reason, message };
    if (before) Object.assign(before, next);
    else conditions.push(next);
  };
  const isOver = pods.active.length + pods.terminating.length + pods.uncounted.length === 0;
  if (succeeded) {
    set('SuccessCriteriaMet', 'True', succeeded);
    if (isOver) set('Complete', 'True', succeeded);
  } else if (failed) {
    set('FailureTarget', 'True', failed);
    if (isOver) set('Failed', 'True', failed);
  } else if (spec?.suspend) {
    set('Suspended', 'True', { reason: 'JobSuspended', message: 'Job suspended' });
  } else if (conditionOf(conditions, 'Suspended', 'True')) {
    set('Suspended', 'False', { reason: 'JobResumed', message: 'Job resumed' });
  }
  return conditions;
}
