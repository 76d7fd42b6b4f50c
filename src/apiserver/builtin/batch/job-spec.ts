import { utf8Length } from '../../../util/bytes.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { validateIndexedCounts, validateJobPolicies } from './job-policies.ts';
import { validatePodTemplate } from '../pods/template-validation.ts';
import { partAt, workloadWarnings } from '../pods/template-warnings.ts';
import { requireDomainPath } from '../shared/domain-names.ts';

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

export function validateJobSpec(spec: CheckedObject): void {
  spec.requireNonNegative(...COUNTS);
  if (spec.has('maxFailedIndexes') && !spec.has('backoffLimitPerIndex')) {
    spec.required('backoffLimitPerIndex', 'when maxFailedIndexes is specified');
  }
  if (spec.has('managedBy')) {
    requireDomainPath(spec, 'managedBy');
    if (utf8Length(spec.text('managedBy')) > 63) spec.tooLong('managedBy', 63);
  }
  spec.requireSupported('completionMode', MODES);
  if (spec.text('completionMode') === 'Indexed') {
    if (!spec.has('completions')) spec.required('completions', 'when completion mode is Indexed');
    validateIndexedCounts(spec);
  } else {
    const isKnown = MODES.includes(spec.text('completionMode')) || !spec.has('completionMode');
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes', 'successPolicy'] as const) {
      if (!spec.has(field) || (!isKnown && field !== 'successPolicy')) continue;
      spec.invalid(field, 'requires indexed completion mode');
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

/** Warnings of the spec of a job. */
export function jobWarnings(
  path: string,
  job: CheckedObject<StoredObject>,
  previous?: StoredObject,
): readonly string[] {
  const warnings = workloadWarnings(`${path}.template`, true)(job, previous);
  if (previous && previous.metadata.generation === job.value.metadata.generation) return warnings;
  const spec = partAt(job, path);
  const [completions, parallelism] = [spec.number('completions'), spec.number('parallelism')];
  const isIndexed = spec.text('completionMode') === 'Indexed';
  return isIndexed && (completions ?? 0) > 100_000 && (parallelism ?? 0) > 10_000
    ? [
        `${path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail`,
        ...warnings,
      ]
    : warnings;
}
