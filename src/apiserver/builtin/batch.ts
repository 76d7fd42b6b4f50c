import { equalJson } from '../../api/equal.ts';
import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { cronProblem } from './cron-schedule.ts';
import type { KindTraits } from './definition.ts';
import { isSet, numberIn, objectIn, objectsIn, setDefault, textIn } from './fields.ts';
import { Findings } from './findings.ts';
import { validateJobStatus } from './job-status.ts';
import { applyTemplateDefaults } from './pod-defaults.ts';
import { validatePodTemplate } from './template-validation.ts';

const MAX_INT32 = 2 ** 31 - 1;

export const JOB: KindTraits = {
  orphansDependents: true,
  tracksGeneration: true,
  selectableFields: {
    'status.successful': (job) => String(numberIn(objectIn(job, 'status'), 'succeeded') ?? 0),
  },
  hooks: {
    applyDefaults: (job) => applyJobDefaults(objectIn(job, 'spec') ?? {}),
    prepareForCreate: generateSelector,
    prepareForUpdate: inheritLabels,
    validate: (job) => {
      const findings = new Findings();
      const spec = objectIn(job, 'spec') ?? {};
      if (!isSet(spec, 'selector')) findings.required('spec.selector');
      validateJobSpec(spec, 'spec', findings);
      const labels = objectIn(objectIn(objectIn(spec, 'template'), 'metadata'), 'labels');
      const selector = objectIn(spec, 'selector');
      const wanted = Object.entries(objectIn(selector, 'matchLabels') ?? {});
      if (!selector || !wanted.every(([key, value]) => labels?.[key] === value)) {
        const why = '`selector` does not match template `labels`';
        findings.invalid('spec.template.metadata.labels', labels ?? null, why);
      }
      return findings.errors;
    },
    validateUpdate: validateJobUpdate,
  },
};

function applyJobDefaults(spec: JsonObject): void {
  if (!isSet(spec, 'completions') && !isSet(spec, 'parallelism')) spec['completions'] = 1;
  setDefault(spec, 'parallelism', 1);
  setDefault(spec, 'backoffLimit', isSet(spec, 'backoffLimitPerIndex') ? MAX_INT32 : 6);
  setDefault(spec, 'completionMode', 'NonIndexed');
  setDefault(spec, 'suspend', false);
  setDefault(spec, 'manualSelector', false);
  setDefault(
    spec,
    'podReplacementPolicy',
    isSet(spec, 'podFailurePolicy') ? 'Failed' : 'TerminatingOrFailed',
  );
  applyTemplateDefaults(spec);
}

/** The Pods of a job have its name and uid as labels, which its selector matches. */
function generateSelector(job: ApiObject): void {
  const spec = objectIn(job, 'spec');
  const template = objectIn(spec, 'template');
  if (spec && template && spec['manualSelector'] !== true) {
    const { name, uid } = job.metadata;
    const metadata = objectIn(template, 'metadata') ?? {};
    template['metadata'] = {
      ...metadata,
      labels: {
        ...objectIn(metadata, 'labels'),
        'batch.kubernetes.io/controller-uid': uid,
        'batch.kubernetes.io/job-name': name,
        'controller-uid': uid,
        'job-name': name,
      },
    };
    const selector = objectIn(spec, 'selector') ?? {};
    const own = { 'batch.kubernetes.io/controller-uid': uid };
    spec['selector'] = {
      ...selector,
      matchLabels: { ...own, ...objectIn(selector, 'matchLabels') },
    };
  }
  inheritLabels(job);
}

/** A job without labels has those of its template. */
export function inheritLabels(workload: ApiObject): void {
  if (Object.keys(workload.metadata.labels ?? {}).length > 0) return;
  const template = objectIn(objectIn(workload, 'spec'), 'template');
  const labels = Object.entries(objectIn(objectIn(template, 'metadata'), 'labels') ?? {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  if (labels.length > 0) workload.metadata.labels = Object.fromEntries(labels);
}

const COUNTS = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
];
const MODES = ['NonIndexed', 'Indexed'];
const RESTART_POLICIES = ['OnFailure', 'Never'];

function validateJobSpec(spec: JsonObject, path: string, findings: Findings): void {
  for (const field of COUNTS) findings.requireNonNegative(spec, field, path);
  findings.requireOneOf(spec, 'completionMode', MODES, path);
  if (spec['completionMode'] === 'Indexed') {
    if (!isSet(spec, 'completions')) {
      findings.required(`${path}.completions`, 'when completion mode is Indexed');
    }
  } else {
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes', 'successPolicy'] as const) {
      if (!isSet(spec, field)) continue;
      findings.invalid(`${path}.${field}`, spec[field], 'requires indexed completion mode');
    }
  }
  const template = objectIn(spec, 'template') ?? {};
  validatePodTemplate(template, `${path}.template`, findings);
  const policy = textIn(objectIn(template, 'spec'), 'restartPolicy');
  const at = `${path}.template.spec.restartPolicy`;
  if (policy === 'Always' || policy === '') {
    findings.required(at, 'valid values: "OnFailure", "Never"');
  } else if (!RESTART_POLICIES.includes(policy)) {
    findings.errors.push(fieldError.notSupported(at, policy, RESTART_POLICIES));
  } else if (isSet(spec, 'podFailurePolicy') && policy !== 'Never') {
    findings.invalid(at, policy, 'only "Never" is supported when podFailurePolicy is specified');
  }
}

const IMMUTABLE = [
  'selector',
  'template',
  'completionMode',
  'podFailurePolicy',
  'backoffLimitPerIndex',
  'managedBy',
  'successPolicy',
];

/** Whether the template of a suspended job may change where its Pods run and what they request: none has started. */
function hasMutableTemplate(job: StoredObject): boolean {
  const status = objectIn(job, 'status');
  const isStopped = objectsIn(status, 'conditions').some(
    (condition) => condition['type'] === 'Suspended' && condition['status'] === 'True',
  );
  return (
    objectIn(job, 'spec')?.['suspend'] === true &&
    (isStopped || !isSet(status, 'startTime')) &&
    !numberIn(status, 'active')
  );
}

/** The part of the Pods of a job that cannot change while it is suspended. */
function fixedPart(job: JsonObject): JsonObject {
  const spec = objectIn(objectIn(job, 'template'), 'spec') ?? {};
  const { nodeSelector: _node, tolerations: _taints, schedulingGates: _gates, ...rest } = spec;
  const { nodeAffinity: _affinity, ...affinity } = objectIn(spec, 'affinity') ?? {};
  const [containers, initContainers] = ['containers', 'initContainers'].map((list) =>
    objectsIn(spec, list).map(({ resources: _resources, ...container }) => container),
  );
  return { ...rest, affinity, containers, initContainers };
}

function validateJobUpdate(
  next: StoredObject,
  previous: StoredObject,
  subresource?: string,
): readonly FieldError[] {
  const findings = new Findings();
  if (subresource === 'status') validateJobStatus(next, previous, findings);
  const after = objectIn(next, 'spec') ?? {};
  const before = objectIn(previous, 'spec') ?? {};
  const isIndexed = after['completionMode'] === 'Indexed';
  const isMutable = hasMutableTemplate(previous);
  for (const field of [...(isIndexed ? [] : ['completions']), ...IMMUTABLE]) {
    if (field === 'template' && isMutable) continue;
    if (equalJson(after[field], before[field])) continue;
    findings.invalid(`spec.${field}`, after[field] ?? null, 'field is immutable');
  }
  if (isMutable && !equalJson(fixedPart(after), fixedPart(before))) {
    const spec = objectIn(objectIn(after, 'template'), 'spec');
    findings.invalid('spec.template.spec', spec, 'field is immutable');
  }
  if (isIndexed && after['completions'] !== before['completions']) {
    if (after['completions'] !== after['parallelism']) {
      const detail = 'can only be modified in tandem with spec.parallelism';
      findings.invalid('spec.completions', after['completions'] ?? null, detail);
    }
  }
  return findings.errors;
}

export const CRON_JOB: KindTraits = {
  tracksGeneration: true,
  defaults: {
    'spec.concurrencyPolicy': 'Allow',
    'spec.suspend': false,
    'spec.successfulJobsHistoryLimit': 3,
    'spec.failedJobsHistoryLimit': 1,
  },
  hooks: {
    applyDefaults: (cronJob) => {
      const job = objectIn(objectIn(objectIn(cronJob, 'spec'), 'jobTemplate'), 'spec');
      if (job) applyTemplateDefaults(job);
    },
    validate: validateCronJob,
  },
};

function validateCronJob(cronJob: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(cronJob, 'spec') ?? {};
  const schedule = textIn(spec, 'schedule');
  const problem = schedule === '' ? undefined : cronProblem(schedule);
  if (problem !== undefined) findings.invalid('spec.schedule', schedule, problem);
  if (schedule.includes('TZ')) {
    const detail = 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead';
    findings.invalid('spec.schedule', schedule, detail);
  }
  findings.requireNonNegative(spec, 'startingDeadlineSeconds', 'spec');
  validateTimeZone(spec, findings);
  findings.requireOneOf(spec, 'concurrencyPolicy', ['Allow', 'Forbid', 'Replace'], 'spec');
  const job = objectIn(objectIn(spec, 'jobTemplate'), 'spec') ?? {};
  validateJobSpec(job, 'spec.jobTemplate.spec', findings);
  if (isSet(job, 'selector')) {
    const detail = '`selector` will be auto-generated';
    findings.invalid('spec.jobTemplate.spec.selector', job['selector'], detail);
  }
  findings.requireNonNegative(spec, 'successfulJobsHistoryLimit', 'spec');
  findings.requireNonNegative(spec, 'failedJobsHistoryLimit', 'spec');
  if (cronJob.metadata.name.length > 52) {
    findings.invalid('metadata.name', cronJob.metadata.name, 'must be no more than 52 characters');
  }
  return findings.errors;
}

function validateTimeZone(spec: JsonObject, findings: Findings): void {
  if (!isSet(spec, 'timeZone')) return;
  const zone = textIn(spec, 'timeZone');
  const path = 'spec.timeZone';
  if (zone === '') findings.invalid(path, zone, 'timeZone must be nil or non-empty string');
  else if (zone.toLowerCase() === 'local') {
    const detail =
      'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
    findings.invalid(path, zone, detail);
  } else if (!isTimeZone(zone)) findings.invalid(path, zone, `unknown time zone ${zone}`);
}

function isTimeZone(zone: string): boolean {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions();
    return !/^[+-]/.test(timeZone);
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
