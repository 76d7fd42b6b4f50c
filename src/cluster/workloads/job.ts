import { isApiError } from '../../api/api-error.ts';
import { JOBS, PODS } from '../../api/builtin.ts';
import type { Job, Pod } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import {
  controllerOf,
  hasFinalizer,
  isControlledBy,
  withoutFinalizer,
} from '../../api/metadata.ts';
import { splitKey } from '../../api/object-key.ts';
import type { ObjectKey, ObjectName } from '../../api/object-key.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { conditionOf, finishedCondition, isFinished, isPodReady } from '../../api/workloads.ts';
import { Controller } from '../../manager/controller.ts';
import { forEachObject } from '../../manager/rejections.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { claim, claimable, mapToClaimants } from '../support/claim.ts';
import { FIELD_MANAGER } from '../support/field-manager.ts';
import { backoffAfter, jobConditions, jobDecision, NO_BACKOFF } from './job-decision.ts';
import type { JobBackoff, JobDecision, JobPods } from './job-decision.ts';
import { INDEX_LABEL, completedCount, formatIndexes, missingIndexes } from './job-index.ts';
import {
  MAX_REJECTIONS,
  BURST_REPLICAS,
  buildTemplatePod,
  byDeletionPriority,
  nonZero,
  PodControl,
} from '../support/pod-control.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

/** Finalizer of Pods whose result the Job has not counted yet. */
const TRACKING = 'batch.kubernetes.io/job-tracking';

type Status = NonNullable<Job['status']>;

/**
 * Job controller: runs Pods until enough have succeeded or too many have failed. Pods keep a finalizer
 * until their result is counted in the status, so that a deleted Pod counts too. Supports indexed Jobs,
 * deadlines and suspension; ignores failure and success policies and the backoff limit of an index.
 */
export function jobs(deps: ClusterDeps): Controller {
  const cache = deps.informers.for(JOBS);
  const pods = claimable(deps, PODS);
  const statuses = new StatusWriter(JOBS, FIELD_MANAGER);
  const recorder = deps.events.recorder('job-controller');
  const control = new PodControl(recorder);
  /** As upstream, a restart of the controller forgets them. */
  const backoffs = new Map<ObjectKey, JobBackoff & { readonly uid: string }>();
  return new Controller(deps, {
    name: 'job',
    kind: JOBS.kind,
    concurrency: 10,
    sync: async (key, context) => {
      const job = cache.lister.get(key);
      const { namespace, name } = splitKey(key);
      const strays = pods.lister
        .list({ namespace })
        .filter(
          (pod) =>
            hasFinalizer(pod, TRACKING) && isOfJob(pod, name) && !(job && isControlledBy(pod, job)),
        );
      await releaseOrphans(strays, { namespace, name }, context);
      if (!job || finishedCondition(job)) backoffs.delete(key);
      if (!job?.spec || isManagedElsewhere(job)) return done();
      const owned = await claim(context, {
        owner: job,
        ownerResource: JOBS,
        owned: pods,
        finalizer: TRACKING,
      });
      if (finishedCondition(job)) {
        await release(owned.filter(isEnded), context);
        return done();
      }
      const now = deps.clock.now();
      const { uid } = job.metadata;
      const backoff = backoffs.get(key);
      const counted = countPods(job, owned, backoff?.uid === uid ? backoff : NO_BACKOFF);
      const decision = jobDecision(job, counted, now);
      let failure: unknown;
      if (job.metadata.deletionTimestamp === undefined) {
        failure = await apply(job, decision, counted, { context, control });
      }
      const status = statusOf(job, counted, decision, now);
      if (statuses.differs(job, status)) {
        recordChanges(job, status);
        await statuses.write(context, job, status);
        backoffs.set(key, { ...counted.backoff, uid });
      }
      await release(counted.uncounted, context);
      if (failure !== undefined) throw failure;
      return decision.waitMs === undefined ? done() : requeueAfter(decision.waitMs);
    },
  })
    .for(cache)
    .watches(pods, mapToClaimants(cache));

  function recordChanges(job: DeepReadonly<Job>, status: Status): void {
    const isNew = (type: string, is: string) =>
      conditionOf(job.status?.conditions, type, is)
        ? undefined
        : conditionOf(status.conditions, type, is);
    if (isNew('Suspended', 'True')) recorder.normal(job, 'Suspended', 'Job suspended');
    const wasSuspended = conditionOf(job.status?.conditions, 'Suspended', 'True');
    if (wasSuspended && isNew('Suspended', 'False')) recorder.normal(job, 'Resumed', 'Job resumed');
    if (isNew('Complete', 'True')) recorder.normal(job, 'Completed', 'Job completed');
    const failed = isNew('Failed', 'True');
    if (failed) recorder.warning(job, failed.reason ?? '', failed.message ?? '');
  }
}

function isOfJob(pod: DeepReadonly<Pod>, name: string): boolean {
  const owner = controllerOf(pod);
  return owner?.kind === 'Job' && owner.name === name;
}

/** Removes the finalizer of Pods whose Job does not exist. Reads it from the server, because the cache may be older. */
async function releaseOrphans(
  pods: readonly DeepReadonly<Pod>[],
  at: ObjectName,
  context: SyncContext,
): Promise<void> {
  if (pods.length === 0) return;
  const { client, signal } = context;
  let live: Job | undefined;
  try {
    live = await client.get(JOBS, at, { signal });
  } catch (error) {
    if (!isApiError(error, 'notFound')) throw error;
  }
  await release(
    pods.filter((pod) => !live || !isControlledBy(pod, live)),
    context,
  );
}

function isManagedElsewhere({ spec }: DeepReadonly<Job>): boolean {
  return (spec?.managedBy ?? 'kubernetes.io/job-controller') !== 'kubernetes.io/job-controller';
}

/** A deleted Pod counts as failed, because it may never reach the phase Failed. */
function isEnded(pod: DeepReadonly<Pod>): boolean {
  return isFinished(pod) || pod.metadata.deletionTimestamp !== undefined;
}

function countPods(
  job: DeepReadonly<Job>,
  owned: readonly DeepReadonly<Pod>[],
  backoff: JobBackoff,
): JobPods {
  const { status } = job;
  const tracked = owned.filter((pod) => hasFinalizer(pod, TRACKING));
  const uncounted = tracked.filter(isEnded);
  const isSucceeded = ({ status }: DeepReadonly<Pod>) => status?.phase === 'Succeeded';
  const lists = status?.uncountedTerminatedPods;
  const isTracked = (uid: string) => uncounted.some(({ metadata }) => metadata.uid === uid);
  // The finalizers of these Pods were removed after the status had named them.
  const settled = (uids: readonly string[] = []) => uids.filter((uid) => !isTracked(uid)).length;
  const succeeded = uncounted.filter(isSucceeded);
  const failed = uncounted.filter((pod) => !isSucceeded(pod));
  const active = owned.filter((pod) => !isEnded(pod));
  const isNew = ({ metadata: { uid } }: DeepReadonly<Pod>) =>
    !lists?.succeeded?.includes(uid) && !lists?.failed?.includes(uid);
  const settledSucceeded = (status?.succeeded ?? 0) + settled(lists?.succeeded);
  const settledFailed = (status?.failed ?? 0) + settled(lists?.failed);
  return {
    active,
    terminating: owned.filter(
      (pod) => pod.metadata.deletionTimestamp !== undefined && !isFinished(pod),
    ),
    uncounted,
    uncountedFailed: failed.map(({ metadata }) => metadata.uid),
    settledSucceeded,
    settledFailed,
    succeeded: settledSucceeded + succeeded.length,
    failed: settledFailed + failed.length,
    succeededPods: succeeded,
    backoff: backoffAfter(backoff, succeeded.filter(isNew), failed.filter(isNew)),
  };
}

async function apply(
  job: DeepReadonly<Job>,
  { wanted, succeeded, failed }: JobDecision,
  { active, succeededPods }: JobPods,
  { context, control }: { readonly context: SyncContext; readonly control: PodControl },
): Promise<unknown> {
  const missing = wanted - active.length;
  if (missing < 0) {
    const surplus = active.toSorted(byDeletionPriority).slice(0, -missing);
    // As upstream, Pods are not counted if the Job is suspended or needs fewer.
    if (!succeeded && !failed) await release(surplus, context);
    return control.delete(context, job, surplus);
  }
  if (missing === 0) return undefined;
  const isIndexed = job.spec?.completionMode === 'Indexed';
  const count = Math.min(missing, BURST_REPLICAS);
  const indexes = isIndexed ? missingIndexes(job, active, succeededPods, count) : [];
  const drafts = isIndexed
    ? indexes.map((index) => buildJobPod(job, index))
    : Array.from({ length: count }, () => buildJobPod(job, undefined));
  return control.create(context, job, drafts, isIndexed ? MAX_REJECTIONS : 1);
}

function buildJobPod(job: DeepReadonly<Job>, index: number | undefined): Draft<Pod> {
  const draft = buildTemplatePod(job, job.spec?.template);
  draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), TRACKING];
  if (index === undefined || !draft.spec) return draft;
  const { name } = job.metadata;
  draft.metadata.generateName = `${name}-${index}-`;
  draft.metadata.labels = { ...draft.metadata.labels, [INDEX_LABEL]: `${index}` };
  draft.metadata.annotations = { ...draft.metadata.annotations, [INDEX_LABEL]: `${index}` };
  draft.spec.hostname ??= `${name}-${index}`;
  for (const container of [...(draft.spec.initContainers ?? []), ...draft.spec.containers]) {
    const fieldRef = { fieldPath: `metadata.labels['${INDEX_LABEL}']` };
    if (container.env?.some((variable) => variable.name === 'JOB_COMPLETION_INDEX')) continue;
    const variable = { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef } };
    container.env = [...(container.env ?? []), variable];
  }
  return draft;
}

function statusOf(
  job: DeepReadonly<Job>,
  pods: JobPods,
  decision: JobDecision,
  nowMs: number,
): Status {
  const { spec, status } = job;
  const isIndexed = spec?.completionMode === 'Indexed';
  const completed = isIndexed ? formatIndexes(job, pods.succeededPods) : '';
  const conditions = jobConditions(job, pods, decision, nowMs);
  const isComplete = conditionOf(conditions, 'Complete', 'True');
  const startTime = spec?.suspend ? undefined : (status?.startTime ?? timestamp(nowMs));
  return {
    ...(conditions.length > 0 && { conditions }),
    ...(startTime !== undefined && { startTime }),
    ...(isComplete && { completionTime: timestamp(nowMs) }),
    ...nonZero({
      active: pods.active.length,
      succeeded: isIndexed ? completedCount(job, pods.succeededPods) : pods.settledSucceeded,
      failed: pods.settledFailed,
    }),
    ready: pods.active.filter(isPodReady).length,
    terminating: pods.terminating.length,
    ...(completed !== '' && { completedIndexes: completed }),
    uncountedTerminatedPods: {
      ...(pods.succeededPods.length > 0 && {
        succeeded: pods.succeededPods.map(({ metadata }) => metadata.uid),
      }),
      ...(pods.uncountedFailed.length > 0 && { failed: [...pods.uncountedFailed] }),
    },
  };
}

/** Removes the finalizer of Pods. */
async function release(
  pods: readonly DeepReadonly<Pod>[],
  { client, signal }: SyncContext,
): Promise<void> {
  const tracked = pods.filter((pod) => hasFinalizer(pod, TRACKING));
  await forEachObject(tracked, async (pod) => {
    const { uid, resourceVersion } = pod.metadata;
    const finalizers = withoutFinalizer(pod, TRACKING);
    const body = { metadata: { uid, resourceVersion, finalizers } };
    try {
      await client.patch(PODS, pod.metadata, { type: 'merge', body }, { signal });
    } catch (error) {
      if (!isApiError(error, 'notFound')) throw error;
    }
  });
}
