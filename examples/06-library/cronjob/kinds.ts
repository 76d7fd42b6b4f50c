import type { JobTemplateSpec } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';

const NAMES = { group: 'batch.tutorial.kubebuilder.io', kind: 'CronJob', plural: 'cronjobs' };
const DESCRIPTION = 'CronJob runs a Job on a schedule.';

/** Characters of a field of a schedule. */
const FIELD = '[0-9A-Za-z*?,/-]+';

/** The fields that are the same in both versions. */
const SPEC = {
  startingDeadlineSeconds: s.optional(
    s.integer({ description: 'A run that is later is skipped.', minimum: 0, format: 'int64' }),
  ),
  concurrencyPolicy: s.enumeration(['Allow', 'Forbid', 'Replace'], {
    description:
      'Whether a run starts while another one is active: beside it, after it, or instead.',
    default: 'Allow',
  }),
  suspend: s.boolean({ description: 'Whether no further runs start.', default: false }),
  jobTemplate: s.jsonSchema<JobTemplateSpec>({
    description: 'The Job of each run.',
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
  }),
  successfulJobsHistoryLimit: s.integer({
    description: 'Number of successful Jobs that are kept.',
    minimum: 0,
    default: 3,
  }),
  failedJobsHistoryLimit: s.integer({
    description: 'Number of failed Jobs that are kept.',
    minimum: 0,
    default: 1,
  }),
};

const COMMON = {
  description: DESCRIPTION,
  status: s.object({
    active: s.optional(
      s.list(
        s.object({
          apiVersion: s.string(),
          kind: s.string(),
          namespace: s.string(),
          name: s.string(),
          uid: s.string(),
        }),
        { description: 'Active Jobs.' },
      ),
    ),
    lastScheduleTime: s.optional(s.dateTime({ description: 'Scheduled time of the last run.' })),
    conditions: s.optional(s.conditions({ description: 'Available, Progressing and Degraded.' })),
  }),
  // The name of a Job has 11 more characters.
  rules: [
    {
      rule: 'self.metadata.name.size() <= 52',
      message: 'the name must be no more than 52 characters',
    },
  ],
};

const field = (description: string) =>
  s.string({ description, pattern: `^${FIELD}$`, maxLength: 100, default: '*' });

/** The version that came later. */
export const CRON_JOBS_V2 = s.customResource({
  ...NAMES,
  ...COMMON,
  version: 'v2',
  spec: s.object({
    schedule: s.object(
      {
        minute: field('Minutes, 0 to 59.'),
        hour: field('Hours, 0 to 23.'),
        dayOfMonth: field('Days, 1 to 31.'),
        month: field('Months, 1 to 12 or names.'),
        dayOfWeek: field('Days, 0 to 7 or names.'),
      },
      { description: 'Schedule in UTC.' },
    ),
    ...SPEC,
  }),
});

/** The version that is stored, and that the controller uses. */
export const CRON_JOBS = s.customResource({
  ...NAMES,
  ...COMMON,
  version: 'v1',
  spec: s.object({
    schedule: s.string({
      description: 'Schedule in UTC, in cron format.',
      pattern: `^${FIELD}( ${FIELD}){4}$`,
      maxLength: 504,
    }),
    ...SPEC,
  }),
  otherVersions: [CRON_JOBS_V2],
});

export type CronJob = s.Infer<typeof CRON_JOBS>;
export type CronJobV2 = s.Infer<typeof CRON_JOBS_V2>;
