import { Controller, CronSchedule, done, finishedCondition, isApiError } from 'crd-controller';
import { OwnedObjects, requeueAt, StatusWriter } from 'crd-controller';
import type { ControllerKit, DeepReadonly, OwnedDraft } from 'crd-controller';
import { JOBS } from 'crd-controller/kinds';
import type { Job, JobTemplateSpec } from 'crd-controller/kinds';
import { setCondition } from 'crd-controller/objects';
import { CRON_JOBS } from './kinds.ts';
import type { CronJob } from './kinds.ts';

/** Field manager. */
const COMPONENT = 'cronjob-controller';

/** Annotation of Jobs with the scheduled time of the run. */
const SCHEDULED_AT = 'batch.tutorial.kubebuilder.io/scheduled-at';

type Problem = readonly [reason: string, message: string];

/** Starts a Job at each scheduled time of a CronJob, and deletes old Jobs. */
export function cronJobController(kit: ControllerKit): Controller {
  const cronJobs = kit.informers.for(CRON_JOBS);
  const jobs = kit.informers.for(JOBS);
  const owned = new OwnedObjects(CRON_JOBS, COMPONENT).add(jobs, { update: false });
  const statuses = new StatusWriter(CRON_JOBS, COMPONENT);

  return new Controller(kit, {
    name: 'cronjob',
    kind: CRON_JOBS.kind,
    sync: async (key, context) => {
      const cronJob = cronJobs.lister.get(key);
      if (!cronJob || cronJob.metadata.deletionTimestamp) return done();
      const { metadata, spec, status = {} } = cronJob;
      const { client, signal } = context;
      const now = kit.clock.now();
      const remove = async (unwanted: readonly DeepReadonly<Job>[]) => {
        for (const { metadata: job } of unwanted) {
          // By default, the Pods of a deleted Job stay.
          const options = { uid: job.uid, propagationPolicy: 'Background', signal } as const;
          await client.delete(JOBS, job, options);
        }
      };

      // 1. The Jobs of earlier runs, the newest first.
      const runs = owned.of(jobs, cronJob).toSorted((a, b) => scheduledAt(b) - scheduledAt(a));
      const succeeded = runs.filter((job) => finishedCondition(job)?.type === 'Complete');
      const failed = runs.filter((job) => finishedCondition(job)?.type === 'Failed');
      let active = runs.filter((job) => !finishedCondition(job));
      let problem: Problem | undefined;
      if (failed.length > 0) problem = ['JobsFailed', `Failed Jobs: ${failed.length}`];

      // 2. The history limits.
      await remove(succeeded.slice(spec.successfulJobsHistoryLimit));
      await remove(failed.slice(spec.failedJobsHistoryLimit));

      // 3. The run that is due. Of several missed runs, only the last one starts.
      const schedule = scheduleOf(spec.schedule);
      if (!schedule) problem = ['InvalidSchedule', `The schedule is malformed: ${spec.schedule}`];
      const sinceMs = Date.parse(status.lastScheduleTime ?? metadata.creationTimestamp);
      let lastMs = Math.max(sinceMs, ...runs.map(scheduledAt));
      const dueMs = spec.suspend ? undefined : schedule?.last(now, lastMs);
      const isLate = now - (dueMs ?? now) > (spec.startingDeadlineSeconds ?? Infinity) * 1000;
      if (isLate) problem = ['MissedSchedule', 'The deadline of the last run has passed'];
      const isBlocked = spec.concurrencyPolicy === 'Forbid' && active.length > 0;

      // 4. Its Job.
      let error: Error | undefined;
      if (dueMs !== undefined && !isLate && !isBlocked) {
        if (spec.concurrencyPolicy === 'Replace') await remove(active.splice(0));
        try {
          const outcomes = await owned.ensure(context, cronJob, [jobOf(cronJob, dueMs)]);
          active = [...outcomes.map(({ object }) => object), ...active];
          lastMs = dueMs;
        } catch (cause) {
          if (!isApiError(cause)) throw cause;
          error = cause;
          problem = ['JobCreationFailed', cause.message];
        }
      }

      // 5. The status, and the time of the next run.
      const hasRun = status.lastScheduleTime !== undefined || lastMs !== sinceMs;
      const references = active.map(({ metadata: { namespace = '', name, uid } }) => {
        return { apiVersion: 'batch/v1', kind: 'Job', namespace, name, uid };
      });
      await statuses.report(context, {
        object: cronJob,
        status: {
          active: references,
          ...(hasRun && { lastScheduleTime: timeOf(lastMs) }),
          conditions: conditionsOf(cronJob, active.length, problem, now),
        },
        error,
      });
      const nextMs = spec.suspend ? undefined : schedule?.next(now);
      return requeueAt(nextMs, 'its schedule is due');
    },
  })
    .for(cronJobs)
    .owns(owned);
}

function conditionsOf(
  { metadata, spec, status }: DeepReadonly<CronJob>,
  active: number,
  problem: Problem | undefined,
  now: number,
) {
  const progress: Problem =
    active > 0 ? ['JobsActive', `Active Jobs: ${active}`] : ['NoJobsActive', 'No Job is active'];
  const suspension: Problem = ['Suspended', 'No further runs start'];
  const health: Problem = ['AsExpected', 'All Jobs succeeded'];
  const conditions: [type: string, isTrue: boolean, why: Problem][] = [
    ['Available', !problem && !spec.suspend, problem ?? (spec.suspend ? suspension : progress)],
    ['Progressing', active > 0, progress],
    ['Degraded', problem !== undefined, problem ?? health],
  ];
  const { generation: observedGeneration = 0 } = metadata;
  return conditions.reduce(
    (present, [type, isTrue, [reason, message]]) => {
      const condition = { type, status: isTrue ? 'True' : 'False', reason, message } as const;
      return setCondition(present, { ...condition, observedGeneration }, now);
    },
    [...(status?.conditions ?? [])],
  );
}

/** Returns the Job of a run. The name has the scheduled time, so a repeated sync does not start a second one. */
function jobOf({ metadata, spec }: DeepReadonly<CronJob>, runMs: number): OwnedDraft<Job> {
  // The cached object must not be changed.
  const template = structuredClone(spec.jobTemplate) as JobTemplateSpec;
  const { labels = {}, annotations } = template.metadata ?? {};
  const name = `${metadata.name}-${runMs / 1000}`;
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, labels, annotations: { ...annotations, [SCHEDULED_AT]: timeOf(runMs) } },
    ...(template.spec && { spec: template.spec }),
  };
}

/** Returns the scheduled time of a run, in milliseconds since the epoch; 0 if it is unknown. */
function scheduledAt({ metadata }: DeepReadonly<Job>): number {
  return Date.parse(metadata.annotations?.[SCHEDULED_AT] ?? '') || 0;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** Returns undefined if the schedule is malformed. */
function scheduleOf(text: string): CronSchedule | undefined {
  try {
    return new CronSchedule(text);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
