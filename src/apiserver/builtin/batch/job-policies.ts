import { repeatedIndexes } from '../../../util/values.ts';
import { utf8Length } from '../../../util/bytes.ts';
import { goQuote } from '../../../util/go-quote.ts';
import { OMITTED } from '../../../api/field-error.ts';
import { qualifiedNameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { parseIndexes } from './job-status.ts';

const MAX_RULES = 20;
const MAX_PATTERNS = 20;
const MAX_EXIT_CODES = 255;
const MAX_INDEXES_BYTES = 65_536;
const ACTIONS = ['Count', 'FailIndex', 'FailJob', 'Ignore'];
const STATUSES = ['False', 'True', 'Unknown'];
const MAX_INDEXED = 100_000;
const MANY_COMPLETIONS = 100_000;
const MAX_OF_MANY = 10_000;

/** Reports counts of an indexed job that are too large together. */
export function validateIndexedCounts(spec: CheckedObject): void {
  const count = (field: string) => spec.number(field);
  const [completions, parallelism, failed] = ['completions', 'parallelism', 'maxFailedIndexes'].map(
    count,
  );
  const limit = (field: string, max: number, when: string) => {
    if ((count(field) ?? 0) > max)
      spec.invalid(field, `must be less than or equal to ${max}${when}`);
  };
  if (parallelism !== undefined) {
    limit('parallelism', MAX_INDEXED, ' when completion mode is Indexed');
  }
  if (completions !== undefined && failed !== undefined && failed > completions) {
    spec.invalid('maxFailedIndexes', 'must be less than or equal to completions');
  }
  limit('maxFailedIndexes', MAX_INDEXED, '');
  if ((completions ?? 0) <= MANY_COMPLETIONS || !spec.has('backoffLimitPerIndex')) return;
  if (failed === undefined) {
    spec.required(
      'maxFailedIndexes',
      `must be specified when completions is above ${MANY_COMPLETIONS}`,
    );
  }
  const when = ` when completions are above ${MANY_COMPLETIONS} and used with backoff limit per index`;
  for (const field of ['parallelism', 'maxFailedIndexes']) limit(field, MAX_OF_MANY, when);
}

/** Reports what is wrong with the rules by which a job fails, succeeds and replaces its Pods. */
export function validateJobPolicies(spec: CheckedObject): void {
  const failure = spec.get('podFailurePolicy');
  if (failure) validateFailurePolicy(failure, spec);
  const success = spec.get('successPolicy');
  if (success && spec.text('completionMode') === 'Indexed') validateSuccessPolicy(success, spec);
  const replacement = spec.text('podReplacementPolicy');
  const supported = failure ? ['Failed'] : ['Failed', 'TerminatingOrFailed'];
  if (spec.has('podReplacementPolicy') && !supported.includes(replacement)) {
    spec.notSupported('podReplacementPolicy', supported);
  }
}

function validateFailurePolicy(policy: CheckedObject, spec: CheckedObject): void {
  const rules = policy.items('rules');
  if (rules.length > MAX_RULES) policy.tooMany('rules', rules.length, MAX_RULES);
  const podSpec = spec.in('template').in('spec');
  const names = ['containers', 'initContainers'].flatMap((list) =>
    podSpec.items(list).map((container) => container.text('name')),
  );
  for (const rule of rules) {
    const action = rule.text('action');
    if (action === '') rule.required('action', validValues(ACTIONS));
    else if (action === 'FailIndex') {
      const why = 'requires the backoffLimitPerIndex to be set';
      if (!spec.has('backoffLimitPerIndex')) rule.invalid('action', why);
    } else rule.requireOneOf('action', ACTIONS);
    const codes = rule.get('onExitCodes');
    const conditions = rule.items('onPodConditions');
    if (codes) validateExitCodes(codes, names);
    if (conditions.length > MAX_PATTERNS) {
      rule.tooMany('onPodConditions', conditions.length, MAX_PATTERNS);
    }
    for (const condition of conditions) {
      condition.problems('type', qualifiedNameProblems(condition.text('type')));
      if (condition.text('status') === '') condition.required('status', validValues(STATUSES));
      condition.requireOneOf('status', STATUSES);
    }
    if ((codes !== undefined) === conditions.length > 0) {
      const why = codes
        ? 'specifying both OnExitCodes and OnPodConditions is not supported'
        : 'specifying one of OnExitCodes and OnPodConditions is required';
      rule.invalid('', why, OMITTED);
    }
  }
}

function validValues(values: readonly string[]): string {
  return `valid values: [${values.map(goQuote).join(' ')}]`;
}

function validateExitCodes(codes: CheckedObject, names: readonly string[]): void {
  const operators = ['In', 'NotIn'];
  if (codes.text('operator') === '') codes.required('operator', validValues(operators));
  codes.requireOneOf('operator', operators);
  if (codes.has('containerName') && !names.includes(codes.text('containerName'))) {
    const why = 'must be one of the container or initContainer names in the pod template';
    codes.invalid('containerName', why);
  }
  const values = codes.list('values').map(Number);
  if (values.length === 0) codes.invalid('values', 'at least one value is required');
  else if (values.length > MAX_EXIT_CODES) codes.tooMany('values', values.length, MAX_EXIT_CODES);
  const repeated = repeatedIndexes(values);
  for (const [index, value] of values.entries()) {
    const field = `values[${index}]`;
    if (codes.text('operator') === 'In' && value === 0) {
      codes.invalid(field, 'must not be 0 for the In operator', value);
    }
    if (repeated.has(index)) codes.duplicate(field, value);
  }
  if (values.some((value, index) => value < (values[index - 1] ?? value))) {
    codes.invalid('values', 'must be ordered');
  }
}

function validateSuccessPolicy(policy: CheckedObject, spec: CheckedObject): void {
  const rules = policy.items('rules');
  if (rules.length === 0) {
    const why = 'at least one rules must be specified when the successPolicy is specified';
    policy.required('rules', why);
  }
  if (rules.length > MAX_RULES) policy.tooMany('rules', rules.length, MAX_RULES);
  const completions = spec.number('completions') ?? 0;
  for (const rule of rules) {
    const count = rule.number('succeededCount');
    const indexes = rule.has('succeededIndexes') ? rule.text('succeededIndexes') : undefined;
    if (count === undefined && indexes === undefined) {
      const why = 'at least one of succeededCount or succeededIndexes must be specified';
      rule.required('', why);
    }
    const total = indexes === undefined ? undefined : countIndexes(indexes, completions);
    if (utf8Length(indexes ?? '') > MAX_INDEXES_BYTES) {
      rule.tooLong('succeededIndexes', MAX_INDEXES_BYTES);
    }
    if (typeof total === 'string') {
      rule.invalid('succeededIndexes', `error parsing succeededIndexes: ${total}`);
    }
    if (count === undefined) continue;
    rule.requireNonNegative('succeededCount');
    if (count > completions) {
      const why = `must be less than or equal to ${completions} (the number of specified completions)`;
      rule.invalid('succeededCount', why);
    }
    const known = typeof total === 'string' ? 0 : total;
    if (known !== undefined && count > known) {
      const why = `must be less than or equal to ${known} (the number of indexes in the specified succeededIndexes field)`;
      rule.invalid('succeededCount', why);
    }
  }
}

/** Returns the number of indexes in `1,3-5,7`, or why the text is no such list. */
function countIndexes(text: string, completions: number): number | string {
  const { intervals, problem } = parseIndexes(text, completions);
  return problem ?? intervals.reduce((total, [first, last]) => total + last - first + 1, 0);
}
