import { isSet, numberIn, objectIn, objectsIn, setDefault, textIn } from '../../util/json-value.ts';
import { equalJson } from '../../api/equal.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { checked } from '../objects/checked-object.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import { cronProblem } from './cron-schedule.ts';
import type { KindTraits } from './definition.ts';
import { validateJobStatus } from './job-status.ts';
import { validateIndexedCounts, validateJobPolicies } from './job-policies.ts';
import { applyTemplateDefaults } from './pod-defaults.ts';
import { validateLabelSelector } from './label-selector-validation.ts';
import {
  NO_MATCH,
  selectorRequirements,
  textMapIn,
  validatePodTemplate,
} from './template-validation.ts';
import { isTimeZone } from './time-zones.ts';

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
    validate: checked(validateJob),
    validateUpdate: checked(validateJobUpdate),
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

function validateJob(job: CheckedObject<StoredObject>): void {
  const spec = job.in('spec');
  const selector = spec.get('selector');
  const metadata = spec.in('template').in('metadata');
  const labels = metadata.in('labels').value;
  if (selector && spec.value['manualSelector'] !== true) validateGenerated(job);
  validateJobSpec(spec);
  if (!selector) spec.required('selector');
  validateLabelSelector(selector);
  if (!selector || !matchesSelector(selector, labels)) metadata.invalid('labels', NO_MATCH);
}

function matchesSelector(selector: CheckedObject, labels: Readonly<JsonObject>): boolean {
  const expressions = selector.items('matchExpressions').map(({ value }) => value);
  const requirements = selectorRequirements(textMapIn(selector.value, 'matchLabels'), expressions);
  // A malformed selector is reported as such.
  return !requirements || matchesLabels(requirements, textMapIn({ labels }, 'labels'));
}

/** A selector that is not written by hand is the one that the server generates, as are four labels. */
function validateGenerated(job: CheckedObject<StoredObject>): void {
  const { name, uid } = job.value.metadata;
  const spec = job.in('spec');
  const metadata = spec.in('template').in('metadata');
  const labels = metadata.in('labels').value;
  const wanted = {
    'controller-uid': uid,
    'job-name': name,
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
  };
  for (const [key, value] of Object.entries(wanted)) {
    const field = `labels[${key}]`;
    const why = `must be '${value}'`;
    if (!Object.hasOwn(labels, key)) metadata.required(field, why);
    else if (labels[key] !== value) metadata.invalid(field, why, labels);
  }
  if (matchesSelector(spec.in('selector'), wanted)) return;
  spec.invalid('selector', '`selector` not auto-generated');
}

/** The Pods of a job have its name and uid as labels, which its selector matches. */
function generateSelector(job: ApiObject): void {
  const spec = objectIn(job, 'spec');
  const template = objectIn(spec, 'template');
  if (spec && template && spec['manualSelector'] !== true) {
    const { name, uid } = job.metadata;
    const metadata = objectIn(template, 'metadata') ?? {};
    const own = {
      'batch.kubernetes.io/controller-uid': uid,
      'batch.kubernetes.io/job-name': name,
      'controller-uid': uid,
      'job-name': name,
    };
    // Labels of a client that differ are reported by validation.
    template['metadata'] = { ...metadata, labels: { ...own, ...objectIn(metadata, 'labels') } };
    const matchLabels = { 'batch.kubernetes.io/controller-uid': uid };
    const selector = objectIn(spec, 'selector') ?? {};
    spec['selector'] = {
      ...selector,
      matchLabels: { ...matchLabels, ...objectIn(selector, 'matchLabels') },
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

function validateJobSpec(spec: CheckedObject): void {
  spec.requireNonNegative(...COUNTS);
  if (spec.has('maxFailedIndexes') && !spec.has('backoffLimitPerIndex')) {
    spec.required('backoffLimitPerIndex', 'when maxFailedIndexes is specified');
  }
  spec.requireOneOf('completionMode', MODES);
  if (spec.text('completionMode') === 'Indexed') {
    if (!spec.has('completions')) spec.required('completions', 'when completion mode is Indexed');
    validateIndexedCounts(spec);
  } else {
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes', 'successPolicy'] as const) {
      if (spec.has(field)) spec.invalid(field, 'requires indexed completion mode');
    }
  }
  validateJobPolicies(spec);
  validatePodTemplate(spec.in('template'));
  const podSpec = spec.in('template').in('spec');
  const policy = podSpec.text('restartPolicy');
  if (policy === 'Always' || policy === '') {
    podSpec.required('restartPolicy', 'valid values: "OnFailure", "Never"');
  } else if (!RESTART_POLICIES.includes(policy)) {
    podSpec.notSupported('restartPolicy', RESTART_POLICIES);
  } else if (spec.has('podFailurePolicy') && policy !== 'Never') {
    const why = 'only "Never" is supported when podFailurePolicy is specified';
    podSpec.invalid('restartPolicy', why);
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
function fixedPart(job: Readonly<JsonObject>): JsonObject {
  const spec = objectIn(objectIn(job, 'template'), 'spec') ?? {};
  const { nodeSelector: _node, tolerations: _taints, schedulingGates: _gates, ...rest } = spec;
  const { nodeAffinity: _affinity, ...affinity } = objectIn(spec, 'affinity') ?? {};
  const [containers, initContainers] = ['containers', 'initContainers'].map((list) =>
    objectsIn(spec, list).map(({ resources: _resources, ...container }) => container),
  );
  return { ...rest, affinity, containers, initContainers };
}

function validateJobUpdate(
  next: CheckedObject,
  previous: StoredObject,
  subresource?: string,
): void {
  if (subresource === 'status') validateJobStatus(next, previous);
  const spec = next.in('spec');
  const after = spec.value;
  const before = objectIn(previous, 'spec') ?? {};
  const isIndexed = after['completionMode'] === 'Indexed';
  const isMutable = hasMutableTemplate(previous);
  for (const field of [...(isIndexed ? [] : ['completions']), ...IMMUTABLE]) {
    if (field === 'template' && isMutable) continue;
    if (!equalJson(after[field], before[field])) spec.invalid(field, 'field is immutable');
  }
  if (isMutable && !equalJson(fixedPart(after), fixedPart(before))) {
    spec.in('template').invalid('spec', 'field is immutable');
  }
  // The rules of the kind require the completions.
  const isChanged = spec.has('completions') && after['completions'] !== before['completions'];
  if (isIndexed && isChanged && after['completions'] !== after['parallelism']) {
    spec.invalid('completions', 'can only be modified in tandem with spec.parallelism');
  }
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
    validate: checked(validateCronJob),
  },
};

function validateCronJob(
  cronJob: CheckedObject<StoredObject>,
  previous: StoredObject | undefined,
): void {
  const spec = cronJob.in('spec');
  const before = objectIn(previous, 'spec');
  const schedule = spec.text('schedule');
  if (schedule === '') spec.required('schedule');
  const problem = schedule === '' ? undefined : cronProblem(schedule);
  if (problem !== undefined) spec.invalid('schedule', problem);
  if (schedule.includes('TZ') && !textIn(before, 'schedule').includes('TZ')) {
    spec.invalid('schedule', 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead');
  }
  spec.requireNonNegative('startingDeadlineSeconds');
  const zone = spec.value['timeZone'];
  const isNewZone = spec.has('timeZone') && zone !== before?.['timeZone'];
  const zoneProblem = isNewZone ? timeZoneProblem(spec.text('timeZone')) : undefined;
  if (zoneProblem !== undefined) spec.invalid('timeZone', zoneProblem);
  spec.requireOneOf('concurrencyPolicy', ['Allow', 'Forbid', 'Replace']);
  const job = spec.in('jobTemplate').in('spec');
  validateJobSpec(job);
  if (job.has('selector')) job.invalid('selector', '`selector` will be auto-generated');
  spec.requireNonNegative('successfulJobsHistoryLimit', 'failedJobsHistoryLimit');
  const { name } = cronJob.value.metadata;
  if (!previous && name.length > 52) {
    cronJob.invalid('metadata.name', 'must be no more than 52 characters', name);
  }
}

function timeZoneProblem(zone: string): string | undefined {
  if (zone === '') return 'timeZone must be nil or non-empty string';
  if (zone.toLowerCase() === 'local') {
    return 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
  }
  return isTimeZone(zone) ? undefined : `unknown time zone ${zone}`;
}
