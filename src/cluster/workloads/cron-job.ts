import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { CRON_JOBS, JOBS } from '../../api/builtin.ts';
import type { CronJob, Job } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import { controllerReference } from '../../api/metadata.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { finishedCondition } from '../../api/workloads.ts';
import { deleteOwnedObject } from '../../manager/owned-object.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import { OWNER_INDEX } from '../../manager/enqueue.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import { CronSchedule } from '../../util/cron-schedule.ts';
import { messageOf } from '../../util/values.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { FIELD_MANAGER } from '../support/field-manager.ts';
import { byAge } from '../support/pod-control.ts';
import { claimable } from '../support/claim.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import { forEachObject } from '../../manager/rejections.ts';

type Status = NonNullable<CronJob['status']>;

/**
 * CronJob controller: creates a Job at each scheduled time, and keeps as many finished Jobs as the history
 * limits say.
 */
export function cronJobs(deps: ClusterDeps): Controller {
  const cache = deps.informers.for(CRON_JOBS);
  const jobs = claimable(deps, JOBS);
  const statuses = new StatusWriter(CRON_JOBS, FIELD_MANAGER);
  const recorder = deps.events.recorder('cronjob-controller');

  /** Deletes a Job. Returns whether it existed. */
  const remove = async (
    cron: DeepReadonly<CronJob>,
    job: DeepReadonly<Job>,
    context: SyncContext,
  ) => {
    if (!(await deleteOwnedObject(context, JOBS, job))) return;
    recorder.normal(cron, 'SuccessfulDelete', `Deleted job ${job.metadata.name}`);
  };

  const start = async (cron: DeepReadonly<CronJob>, atMs: number, context: SyncContext) => {
    const { client, signal } = context;
    const draft = buildJob(cron, atMs);
    try {
      await client.create(JOBS, draft, { fieldManager: FIELD_MANAGER, signal });
      recorder.normal(cron, 'SuccessfulCreate', `Created job ${draft.metadata.name}`);
    } catch (error) {
      if (isNamespaceTerminating(error) || isApiError(error, 'alreadyExists')) return;
      recorder.warning(cron, 'FailedCreate', `Error creating job: ${messageOf(error)}`);
      throw error;
    }
  };

  return new Controller(deps, {
    name: 'cronjob',
    kind: CRON_JOBS.kind,
    sync: async (key, context) => {
      const cron = cache.lister.get(key);
      if (!cron?.spec || cron.metadata.deletionTimestamp !== undefined) return done();
      const owned = jobs.lister.byIndex(OWNER_INDEX, cron.metadata.uid).toSorted(byAge);
      let active = owned.filter((job) => !finishedCondition(job));
      for (const job of owned) {
        const finished = finishedCondition(job);
        const wasActive = cron.status?.active?.some(({ uid }) => uid === job.metadata.uid);
        if (!finished || !wasActive) continue;
        const message = `Saw completed job: ${job.metadata.name}, condition: ${finished.type}`;
        recorder.normal(cron, 'SawCompletedJob', message);
      }
      const uids = new Set(owned.map(({ metadata }) => metadata.uid));
      for (const { name, uid = '' } of cron.status?.active ?? []) {
        if (!uids.has(uid)) recorder.normal(cron, 'MissingJob', `Active job went missing: ${name}`);
      }
      await forEachObject(surplus(cron, owned), (job) => remove(cron, job, context));
      const nowMs = deps.clock.now();
      let scheduledMs: number | undefined;
      let nextMs: number | undefined;
      try {
        const schedule = new CronSchedule(cron.spec.schedule, cron.spec.timeZone);
        if (!cron.spec.suspend) scheduledMs = schedule.last(nowMs, earliest(cron, nowMs));
        nextMs = cron.spec.suspend ? undefined : schedule.next(nowMs);
        if (!cron.spec.suspend && nextMs === undefined) {
          const message = `invalid schedule: ${cron.spec.schedule} : time difference between two schedules is less than 1 second`;
          recorder.warning(cron, 'InvalidSchedule', message);
        }
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        const message = `unparseable schedule: "${cron.spec.schedule}" : ${error.message}`;
        recorder.warning(cron, 'UnparseableSchedule', message);
      }
      let startedMs: number | undefined;
      if (scheduledMs !== undefined) {
        const { concurrencyPolicy = 'Allow' } = cron.spec;
        if (concurrencyPolicy === 'Forbid' && active.length > 0) {
          const message =
            'Not starting job because prior execution is running and concurrency policy is Forbid';
          recorder.normal(cron, 'JobAlreadyActive', message);
        } else {
          if (concurrencyPolicy === 'Replace') {
            await forEachObject(active, (job) => remove(cron, job, context));
            active = [];
          }
          await start(cron, scheduledMs, context);
          startedMs = scheduledMs;
        }
      }
      const status = statusOf(cron, owned, active, startedMs);
      if (statuses.differs(cron, status)) await statuses.write(context, cron, status);
      return nextMs === undefined ? done() : requeueAfter(nextMs - nowMs);
    },
  })
    .for(cache)
    .owns(jobs, CRON_JOBS);
}

/** Returns the time after which a scheduled time is missed if it has no Job. */
function earliest({ metadata, spec, status }: DeepReadonly<CronJob>, nowMs: number): number {
  const lastMs = Date.parse(status?.lastScheduleTime ?? metadata.creationTimestamp);
  const { startingDeadlineSeconds } = spec ?? {};
  if (startingDeadlineSeconds === undefined) return lastMs;
  return Math.max(lastMs, nowMs - startingDeadlineSeconds * 1000);
}

/** Returns the oldest finished Jobs beyond the history limits. */
function surplus(
  { spec }: DeepReadonly<CronJob>,
  owned: readonly DeepReadonly<Job>[],
): readonly DeepReadonly<Job>[] {
  const of = (type: string, limit: number) => {
    const finished = owned.filter((job) => finishedCondition(job)?.type === type);
    return finished.slice(0, Math.max(0, finished.length - limit));
  };
  return [
    ...of('Complete', spec?.successfulJobsHistoryLimit ?? 3),
    ...of('Failed', spec?.failedJobsHistoryLimit ?? 1),
  ];
}

function buildJob(
  cron: DeepReadonly<CronJob>,
  scheduledMs: number,
): Draft<Job> & { metadata: { name: string } } {
  const { name, namespace = '' } = cron.metadata;
  const template = structuredClone(cron.spec?.jobTemplate ?? {}) as Pick<Job, 'spec'> & {
    metadata?: Partial<Job['metadata']>;
  };
  const { labels, annotations } = template.metadata ?? {};
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      ...(labels && { labels }),
      name: `${name}-${Math.floor(scheduledMs / 60_000)}`,
      namespace,
      annotations: {
        ...annotations,
        'batch.kubernetes.io/cronjob-scheduled-timestamp': timestamp(scheduledMs),
      },
      ownerReferences: [controllerReference(cron)],
    },
    ...(template.spec && { spec: template.spec }),
  };
}

function statusOf(
  { status }: DeepReadonly<CronJob>,
  owned: readonly DeepReadonly<Job>[],
  active: readonly DeepReadonly<Job>[],
  startedMs: number | undefined,
): Status {
  const lastScheduleTime =
    startedMs === undefined ? status?.lastScheduleTime : timestamp(startedMs);
  const lastSuccessfulTime = owned
    .map((job) => job.status?.completionTime ?? '')
    .reduce((latest, time) => (time > latest ? time : latest), status?.lastSuccessfulTime ?? '');
  return {
    ...(active.length > 0 && {
      active: active.map(({ metadata }) => ({
        apiVersion: 'batch/v1',
        kind: 'Job',
        name: metadata.name,
        namespace: metadata.namespace ?? '',
        resourceVersion: metadata.resourceVersion,
        uid: metadata.uid,
      })),
    }),
    ...(lastScheduleTime && { lastScheduleTime }),
    ...(lastSuccessfulTime && { lastSuccessfulTime }),
  };
}
