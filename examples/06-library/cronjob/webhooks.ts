import { CronSchedule } from 'crd-controller';
import { invalid, Webhooks } from 'crd-controller/webhook';
import { CRON_JOBS, CRON_JOBS_V2 } from './kinds.ts';

/** Schedules that a name stands for. */
const MACROS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@hourly': '0 * * * *',
};

/** Fields of a schedule, in the order of the cron format. */
const FIELDS = ['minute', 'hour', 'dayOfMonth', 'month', 'dayOfWeek'] as const;

/** The API server converts v2 objects before it calls the functions for v1. */
export const webhooks = new Webhooks()
  .defaults(CRON_JOBS, ({ spec }) => {
    // The server validates the object afterwards: fields can be missing or have other types.
    if (typeof spec?.schedule === 'string') {
      spec.schedule = MACROS[spec.schedule] ?? spec.schedule.trim().replace(/\s+/g, ' ');
    }
    // The default of Pods, Always, is not valid in a Job.
    const pod = spec?.jobTemplate?.spec?.template?.spec;
    if (pod) pod.restartPolicy ??= 'OnFailure';
  })
  .validates(CRON_JOBS, ({ spec }) => {
    try {
      const isNever = new CronSchedule(spec.schedule).next(0) === undefined;
      return isNever ? [invalid('spec.schedule', 'must have a time')] : [];
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return [invalid('spec.schedule', error.message)];
    }
  })
  .converts(CRON_JOBS_V2, CRON_JOBS, {
    up: ({ spec, status }) => {
      const fields = spec?.schedule;
      const schedule = fields && FIELDS.map((name) => fields[name] ?? '*').join(' ');
      return { spec: spec && { ...spec, schedule }, status };
    },
    down: ({ spec, status }) => {
      const words = spec?.schedule?.split(' ');
      const schedule = words && Object.fromEntries(FIELDS.map((name, i) => [name, words[i]]));
      return { spec: spec && { ...spec, schedule }, status };
    },
  });
