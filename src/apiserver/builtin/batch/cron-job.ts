import { typedText } from '../../../api/field-error.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, textIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { ageOf, column, columns, count, field, wide } from '../../table/column.ts';
import { cronProblem } from './cron-schedule.ts';
import { applyJobTemplateDefaults, disabledJobFields } from './job.ts';
import { jobWarnings, validateJobSpec } from './job-spec.ts';
import { isTimeZone } from './time-zones.ts';
import { containerColumns } from '../pods/template-columns.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { selectorCell } from '../shared/cells.ts';

export const CRON_JOB: BuiltinKind = {
  resource: 'batch/cronjobs',
  tracksGeneration: true,
  defaults: {
    'spec.concurrencyPolicy': 'Allow',
    'spec.suspend': false,
    'spec.successfulJobsHistoryLimit': 3,
    'spec.failedJobsHistoryLimit': 1,
  },
  disabledFields: disabledJobFields('spec.jobTemplate.spec'),
  hooks: {
    applyDefaults: (cronJob) => {
      const job = jobSpecIn(cronJob);
      if (job) applyJobTemplateDefaults(job);
    },
  },
  validate: validateCronJob,
  columns: [
    ...columns(
      field('Schedule', 'spec.schedule'),
      field('Timezone', 'spec.timeZone', '<none>'),
      column(
        'Suspend',
        'Whether no new job is started.',
        (job) => {
          const { suspend } = objectIn(job, 'spec') ?? {};
          return typeof suspend === 'boolean' ? (suspend ? 'True' : 'False') : '<unset>';
        },
        { type: 'boolean' },
      ),
      count('Active', 'status.active'),
      column('Last Schedule', 'Time since the last job was started.', (job, nowMs) => {
        const last = objectIn(job, 'status')?.['lastScheduleTime'];
        return last === undefined ? '<none>' : ageOf(typeof last === 'string' ? last : null, nowMs);
      }),
    ),
    ...containerColumns(['spec', 'jobTemplate', 'spec', 'template']),
    wide('Selector', 'Selector of the Pods of a job.', (job) => {
      const template = objectIn(objectIn(job, 'spec'), 'jobTemplate');
      return selectorCell(objectIn(objectIn(template, 'spec'), 'selector'));
    }),
  ],
  warnings: (job, previous) => [
    ...jobWarnings('spec.jobTemplate.spec', job, previous),
    ...(previous && job.in('spec').text('schedule').includes('TZ')
      ? [
          'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details',
        ]
      : []),
  ],
};

function jobSpecIn(cronJob: JsonObject): JsonObject | undefined {
  return objectIn(objectIn(objectIn(cronJob, 'spec'), 'jobTemplate'), 'spec');
}

function validateCronJob(
  cronJob: CheckedObject<StoredObject>,
  previous: StoredObject | undefined,
): void {
  const spec = cronJob.in('spec');
  const job = spec.in('jobTemplate').in('spec');
  if (job.value['manualSelector'] === true)
    job.notSupported('manualSelector', ['nil', 'false'], true);
  const before = objectIn(previous, 'spec');
  const schedule = spec.text('schedule');
  if (schedule === '') spec.required('schedule');
  const problem = schedule === '' ? undefined : cronProblem(schedule);
  if (problem !== undefined) spec.invalid('schedule', problem);
  if (schedule.includes('TZ') && !textIn(before, 'schedule').includes('TZ')) {
    spec.invalid('schedule', 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead');
  } else if (schedule.includes('TZ') && spec.has('timeZone')) {
    spec.invalid('schedule', 'cannot use both timeZone field and TZ or CRON_TZ in schedule');
  }
  spec.requireNonNegative('startingDeadlineSeconds');
  const zone = spec.value['timeZone'];
  const isNewZone = spec.has('timeZone') && zone !== before?.['timeZone'];
  if (isNewZone) {
    const name = spec.text('timeZone');
    spec.problems('timeZone', timeZoneProblems(name), typedText(name));
  }
  spec.requireOneOf('concurrencyPolicy', ['Allow', 'Forbid', 'Replace']);
  validateJobSpec(job);
  if (job.has('selector')) job.invalid('selector', '`selector` will be auto-generated');
  spec.requireNonNegative('successfulJobsHistoryLimit', 'failedJobsHistoryLimit');
  const { name } = cronJob.value.metadata;
  if (!previous && name.length > 52) {
    cronJob.invalid('metadata.name', 'must be no more than 52 characters', name);
  }
}

function timeZoneProblems(zone: string): string[] {
  if (zone === '') return ['timeZone must be nil or non-empty string'];
  if (!zone.split('/').every((part) => /^(?!\.{1,2}$)(?!-)[A-Za-z.\-_0-9+]{1,14}$/.test(part))) {
    return [`unknown time zone ${zone}`];
  }
  const isLocal = zone.toLowerCase() === 'local';
  const why =
    'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
  const isKnown = zone === 'Local' || isTimeZone(zone);
  return [...(isLocal ? [why] : []), ...(isKnown ? [] : [`unknown time zone ${zone}`])];
}
