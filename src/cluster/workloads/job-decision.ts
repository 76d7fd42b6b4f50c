import type { Job, Pod } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { conditionOf } from '../../api/workloads.ts';
import { sidecarStatuses } from '../support/pod-control.ts';
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
  readonly backoff: JobBackoff;
}

/** Failures since the last success, which delay new Pods. */
export interface JobBackoff {
  readonly failures: number;
  /** When the last of them ended. */
  readonly lastMs: number;
}

export const NO_BACKOFF: JobBackoff = { failures: 0, lastMs: -Infinity };

/** Returns the backoff after Pods ended. As upstream, failures before a success do not count. */
export function backoffAfter(
  before: JobBackoff,
  succeeded: readonly DeepReadonly<Pod>[],
  failed: readonly DeepReadonly<Pod>[],
): JobBackoff {
  const successMs = latest(succeeded.map(finishedAt));
  const { failures, lastMs } = succeeded.length > 0 ? NO_BACKOFF : before;
  const failedMs = failed.map(finishedAt).filter((ms) => ms > successMs);
  if (failedMs.length === 0) return { failures, lastMs };
  return { failures: failures + failedMs.length, lastMs: latest(failedMs) };
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
  const met = conditionOf(status?.conditions, 'SuccessCriteriaMet', 'True');
  if (met) return { wanted: 0, succeeded: met as Verdict };
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
  const backoffMs = backoffLeft(pods.backoff, nowMs);
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
    .flatMap(({ status }) => [
      ...(status?.initContainerStatuses ?? []),
      ...(status?.containerStatuses ?? []),
    ])
    .reduce((sum, { restartCount }) => sum + restartCount, 0);
  const { backoffLimit = 6 } = spec;
  return backoffLimit === 0 ? restarts > 0 : restarts >= backoffLimit;
}

/** Returns for how long failures delay new Pods, in milliseconds. */
function backoffLeft({ failures, lastMs }: JobBackoff, nowMs: number): number {
  if (failures === 0) return 0;
  return lastMs + Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** (failures - 1)) - nowMs;
}

/** Returns when the last container of a Pod ended; without its status, the time of the deletion or creation. */
function finishedAt(pod: DeepReadonly<Pod>): number {
  const { metadata, status } = pod;
  const statuses = [...(status?.containerStatuses ?? []), ...sidecarStatuses(pod)];
  const endedMs = statuses.map(({ state }) => Date.parse(state?.terminated?.finishedAt ?? ''));
  if (endedMs.length > 0 && !endedMs.some(Number.isNaN)) return latest(endedMs);
  const unready = conditionOf(status?.conditions, 'Ready', 'False')?.lastTransitionTime;
  if (unready !== undefined) return Date.parse(unready);
  const { creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  if (deletionTimestamp === undefined) return Date.parse(creationTimestamp);
  return Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
}

function latest(times: readonly number[]): number {
  return times.reduce((last, ms) => Math.max(last, ms), -Infinity);
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
