import { typedText } from '../../../api/field-error.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, numberIn, objectIn, objectsIn, setDefault } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { nameProblems } from '../../../api/object-names.ts';
import { optionalTimeIn } from '../../../api/go-time.ts';
import { matchesLabels } from '../../../api/label-selector.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, humanDuration, trueCondition } from '../../table/column.ts';
import { jobWarnings, validateJobSpec } from './job-spec.ts';
import { validateJobStatus } from './job-status.ts';
import { disabledTemplateFields } from '../pods/disabled-fields.ts';
import { applyTemplateDefaults } from '../pods/pod-defaults.ts';
import { TEMPLATE_COLUMNS } from '../pods/template-columns.ts';
import { textMapIn } from '../pods/template-metadata.ts';
import { NO_MATCH, selectorRequirements } from '../pods/template-validation.ts';
import { inheritLabels, templateLabels } from '../pods/workload.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { selectorInGo, validateLabelSelector } from '../shared/label-selector-validation.ts';

export const JOB: BuiltinKind = {
  resource: 'batch/jobs',
  orphansDependents: true,
  tracksGeneration: true,
  selectableFields: {
    'status.successful': (job) => String(numberIn(objectIn(job, 'status'), 'succeeded') ?? 0),
  },
  defaults: {
    'spec.completionMode': 'NonIndexed',
    'spec.suspend': false,
    'spec.manualSelector': false,
    'spec.podFailurePolicy.rules': null,
  },
  disabledFields: disabledJobFields('spec'),
  hooks: {
    applyDefaults: (job) => {
      applyJobDefaults(objectIn(job, 'spec') ?? {});
      inheritLabels(job);
    },
    prepareForCreate: generateSelector,
    prepareForUpdate: inheritLabels,
  },
  validate: validateJob,
  validateUpdate: validateJobUpdate,
  columns: [
    ...columns(
      column('Status', 'Status of the job.', (job) => {
        const ended = trueCondition(job, ['Complete', 'Failed']);
        if (ended) return ended;
        if (job.metadata.deletionTimestamp) return 'Terminating';
        const states = ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'];
        return trueCondition(job, states) ?? 'Running';
      }),
      column('Completions', 'Succeeded Pods, of all required ones.', (job) => {
        const spec = objectIn(job, 'spec');
        const succeeded = numberIn(objectIn(job, 'status'), 'succeeded') ?? 0;
        const completions = numberIn(spec, 'completions');
        if (completions !== undefined) return `${succeeded}/${completions}`;
        const parallelism = numberIn(spec, 'parallelism') ?? 0;
        return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
      }),
      column('Duration', 'Time between start and completion.', (job, nowMs) => {
        const status = objectIn(job, 'status');
        const started = optionalTimeIn(status, 'startTime');
        const completed = optionalTimeIn(status, 'completionTime');
        if (started === undefined) return '';
        const endMs = completed === undefined ? nowMs : Date.parse(completed);
        return humanDuration(endMs - Date.parse(started));
      }),
    ),
    ...TEMPLATE_COLUMNS,
  ],
  warnings: (job, previous) => jobWarnings('spec', job, previous),
};

const MAX_INT32 = 2 ** 31 - 1;

function applyJobDefaults(spec: JsonObject): void {
  if (!isSet(spec, 'completions') && !isSet(spec, 'parallelism')) spec['completions'] = 1;
  setDefault(spec, 'parallelism', 1);
  setDefault(spec, 'backoffLimit', isSet(spec, 'backoffLimitPerIndex') ? MAX_INT32 : 6);
  // The empty text is a value, which is invalid.
  const hasPolicy = isSet(spec, 'podFailurePolicy');
  spec['podReplacementPolicy'] ??= hasPolicy ? 'Failed' : 'TerminatingOrFailed';
  applyJobTemplateDefaults(spec);
}

/** Defaults of the spec of a Job that the template of a CronJob has, too. */
export function applyJobTemplateDefaults(spec: JsonObject): void {
  for (const rule of objectsIn(objectIn(spec, 'podFailurePolicy'), 'rules')) {
    for (const condition of objectsIn(rule, 'onPodConditions')) {
      setDefault(condition, 'status', 'True');
    }
  }
  applyTemplateDefaults(spec);
}

function validateJob(job: CheckedObject<StoredObject>, previous: StoredObject | undefined): void {
  const spec = job.in('spec');
  const selector = spec.get('selector');
  const metadata = spec.in('template').in('metadata');
  const labels = metadata.in('labels').value;
  if (selector && spec.value['manualSelector'] !== true && !previous) validateGenerated(job);
  validateJobSpec(spec);
  if (!selector) spec.required('selector');
  validateLabelSelector(selector);
  if (!selector || !matchesSelector(selector, labels)) metadata.invalid('labels', NO_MATCH);
  const completions = spec.number('completions') ?? 0;
  if (spec.text('completionMode') !== 'Indexed' || completions <= 0) return;
  const { name } = job.value.metadata;
  const hostname = `${name}-${completions - 1}`;
  if (nameProblems(hostname, 'dns1123Label').length === 0) return;
  const why = `will not able to create pod with invalid DNS label: ${hostname}`;
  job.invalid('metadata.name', why, name);
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
  const shown = selectorInGo(spec.in('selector'));
  spec.invalid('selector', '`selector` not auto-generated', shown);
}

/**
 * Returns the paths of the fields of a Job that feature gates turn off by default.
 *
 * @param spec the path of its spec
 */
export function disabledJobFields(spec: string): string[] {
  return [`${spec}.scheduling`, ...disabledTemplateFields(`${spec}.template`)];
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
    // As upstream, where a Job with the labels of its template has the same map.
    if (job.metadata.labels === templateLabels(job)) job.metadata.labels = {};
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
    (isStopped || optionalTimeIn(status, 'startTime') === undefined) &&
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
    if (equalJson(after[field], before[field])) continue;
    const value = after[field];
    const shown = typeof value === 'string' ? typedText(value) : (value ?? null);
    spec.invalid(field, 'field is immutable', shown);
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
