import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, listIn, numberIn, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { goQuote } from '../../../util/go-quote.ts';
import { optionalTimeIn } from '../../../api/go-time.ts';
import { OMITTED, typedText } from '../../../api/field-error.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';

type TimeField = 'startTime' | 'completionTime';

/** The parts of a Job that its status depends on. */
class JobState {
  readonly status: Readonly<JsonObject>;
  readonly spec: Readonly<JsonObject>;

  constructor(job: Readonly<JsonObject>) {
    this.status = objectIn(job, 'status') ?? {};
    this.spec = objectIn(job, 'spec') ?? {};
  }

  has(type: string, value: string = 'True'): boolean {
    return objectsIn(this.status, 'conditions').some(
      (condition) => condition['type'] === type && condition['status'] === value,
    );
  }

  get isFinished(): boolean {
    return this.has('Complete') || this.has('Failed');
  }

  count(field: string): number {
    return numberIn(this.status, field) ?? 0;
  }

  time(field: TimeField): string | undefined {
    return optionalTimeIn(this.status, field);
  }

  get uncounted(): readonly unknown[] {
    const pods = objectIn(this.status, 'uncountedTerminatedPods');
    return [...listIn(pods, 'failed'), ...listIn(pods, 'succeeded')];
  }
}

/** A rule for a status: it is checked if one of the fields or conditions in `of` has changed. */
interface Rule {
  readonly of: readonly string[];
  /** Field of the status. */
  readonly at: string;
  readonly text: string;
  readonly isBroken: (job: JobState, previous: JobState) => boolean;
  /** @default invalid */
  readonly kind?: 'required';
}

/** As upstream, in its order; `finished` stands for the conditions Complete and Failed. */
const RULES: readonly Rule[] = [
  exclusive('Complete', 'Failed'),
  exclusive('Complete', 'FailureTarget'),
  {
    of: ['Complete', 'completionTime'],
    at: 'completionTime',
    text: 'cannot set completionTime when there is no Complete=True condition',
    isBroken: (job) => job.time('completionTime') !== undefined && !job.has('Complete'),
  },
  {
    of: ['Complete', 'completionTime'],
    at: 'completionTime',
    text: 'completionTime is required for Complete jobs',
    kind: 'required',
    isBroken: (job) => job.time('completionTime') === undefined && job.has('Complete'),
  },
  {
    of: ['startTime', 'completionTime'],
    at: 'completionTime',
    text: 'must be equal to or after `startTime`',
    isBroken: (job) => isBefore(job.time('completionTime'), job.time('startTime')),
  },
  needs(['Failed', 'failedIndexes'], 'Failed', 'FailureTarget'),
  needs(['Complete', 'SuccessCriteriaMet'], 'Complete', 'SuccessCriteriaMet'),
  finishedWithout('active'),
  {
    of: ['finished', 'startTime'],
    at: 'startTime',
    text: 'startTime is required for finished job',
    kind: 'required',
    isBroken: (job) =>
      job.time('startTime') === undefined &&
      job.isFinished &&
      !(job.spec['suspend'] === true && job.spec['completions'] === 0),
  },
  {
    of: ['finished', 'uncountedTerminatedPods'],
    at: 'uncountedTerminatedPods',
    text: 'must be empty for finished job',
    isBroken: (job) => job.uncounted.length > 0 && job.isFinished,
  },
  {
    of: ['completedIndexes'],
    at: 'completedIndexes',
    text: 'cannot set non-empty completedIndexes when non-indexed completion mode',
    isBroken: (job) =>
      textIn(job.status, 'completedIndexes') !== '' && job.spec['completionMode'] !== 'Indexed',
  },
  {
    of: ['failedIndexes'],
    at: 'failedIndexes',
    text: 'cannot set non-null failedIndexes when backoffLimitPerIndex is null',
    isBroken: (job) =>
      isSet(job.status, 'failedIndexes') && !isSet(job.spec, 'backoffLimitPerIndex'),
  },
  finishedWithout('terminating'),
  {
    of: ['ready', 'active'],
    at: 'ready',
    text: 'cannot set more ready pods than active',
    isBroken: (job) => isSet(job.status, 'ready') && job.count('ready') > job.count('active'),
  },
  exclusive('SuccessCriteriaMet', 'Failed', []),
  exclusive('SuccessCriteriaMet', 'FailureTarget', []),
  {
    of: [],
    at: 'conditions',
    text: 'cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True',
    isBroken: (job) =>
      isSet(job.spec, 'successPolicy') && job.has('Complete') && !job.has('SuccessCriteriaMet'),
  },
  ...['Failed', 'Complete', 'FailureTarget'].map((type) => lasting(type, `terminal ${type}`)),
  ...(['failed', 'succeeded'] as const).map((field) => ({
    of: [],
    at: field,
    text: `cannot decrease the ${field} counter`,
    isBroken: (job: JobState, previous: JobState) =>
      job.count(field) < previous.count(field) &&
      (field === 'failed' ||
        job.spec['completionMode'] !== 'Indexed' ||
        job.spec['completions'] !== job.spec['parallelism']),
  })),
  {
    of: ['completionTime'],
    at: 'completionTime',
    text: 'field is immutable',
    isBroken: (job, previous) =>
      previous.time('completionTime') !== undefined && job.time('completionTime') !== undefined,
  },
  {
    of: ['startTime'],
    at: 'startTime',
    text: 'field is immutable for unsuspended job once set',
    isBroken: (job, previous) =>
      previous.time('startTime') !== undefined &&
      job.spec['suspend'] !== true &&
      !(previous.has('Suspended') && job.has('Suspended', 'False')),
  },
  lasting('SuccessCriteriaMet', 'SuccessCriteriaMet'),
  {
    of: [],
    at: 'conditions',
    text: 'cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions',
    isBroken: (job, previous) =>
      previous.has('Complete') &&
      !previous.has('SuccessCriteriaMet') &&
      job.has('SuccessCriteriaMet'),
  },
];

const COUNTS = ['active', 'succeeded', 'failed', 'ready', 'terminating'];

/** Validates a status of a Job that a client writes. */
export function validateJobStatus(job: CheckedObject, previous: StoredObject): void {
  const status = job.in('status');
  const [after, before] = [new JobState(job.value), new JobState(previous)];
  status.requireNonNegative(...COUNTS);
  validateUncounted(status.in('uncountedTerminatedPods'));
  const isChanged = (name: string) => {
    if (name === 'finished') return after.isFinished !== before.isFinished;
    if (/^[A-Z]/.test(name)) return after.has(name) !== before.has(name);
    // As upstream, where a zero time is not the stored one.
    return before.status[name] === null || !equalJson(after.status[name], before.status[name]);
  };
  for (const { of, at, text, isBroken, kind } of RULES) {
    if ((of.length > 0 && !of.some(isChanged)) || !isBroken(after, before)) continue;
    if (kind === 'required') status.required(at, text);
    else if (at === 'conditions') status.invalid(at, text, OMITTED);
    else status.invalid(at, text, COUNTS.includes(at) ? after.count(at) : after.status[at]);
  }
  validateIndexes(status, after, before);
}

function validateUncounted(pods: CheckedObject): void {
  const taken = new Set<unknown>();
  for (const field of ['succeeded', 'failed']) {
    for (const [index, uid] of pods.list(field).entries()) {
      const at = `${field}[${index}]`;
      if (uid === '') pods.invalid(at, 'must not be empty', uid);
      else if (taken.has(uid)) pods.duplicate(at, typedText(String(uid)));
      taken.add(uid);
    }
  }
}

/** Validates the indexes of a status that have changed. */
function validateIndexes(status: CheckedObject, job: JobState, previous: JobState): void {
  const completions = numberIn(job.spec, 'completions');
  if (completions === undefined) return;
  const isChanged = (field: string) => textIn(job.status, field) !== textIn(previous.status, field);
  const [completed, failed] = ['completedIndexes', 'failedIndexes'].map((field) => {
    const text = status.text(field);
    const parsed = parseIndexes(text, completions);
    const isChecked = field === 'completedIndexes' || isSet(job.spec, 'backoffLimitPerIndex');
    if (isChecked && isChanged(field) && parsed.problem !== undefined) {
      const shown = field === 'failedIndexes' ? typedText(text) : text;
      status.invalid(field, `error parsing ${field}: ${parsed.problem}`, shown);
    }
    return parsed.intervals;
  });
  if (!isChanged('completedIndexes') && !isChanged('failedIndexes')) return;
  const overlap = overlapOf(completed ?? [], failed ?? []);
  if (overlap === undefined) return;
  const why = `failedIndexes and completedIndexes overlap at index: ${overlap}`;
  status.invalid('failedIndexes', why);
}

type Interval = readonly [first: number, last: number];

/** Parses `1,3-5`. The intervals after the first problem are those that can be parsed. */
export function parseIndexes(
  text: string,
  completions: number,
): { readonly intervals: readonly Interval[]; readonly problem?: string } {
  const intervals: Interval[] = [];
  let problem: string | undefined;
  let previous: number | undefined;
  for (const part of text === '' ? [] : text.split(',')) {
    const parsed = parseInterval(part, completions);
    if (typeof parsed === 'string') {
      problem ??= parsed;
      continue;
    }
    const [first, last] = parsed;
    if (previous !== undefined && previous >= first) problem ??= notIncreasing(previous, first);
    previous = last;
    intervals.push(parsed);
  }
  return { intervals, ...(problem !== undefined && { problem }) };
}

function parseInterval(text: string, completions: number): Interval | string {
  const limits = text.split('-');
  if (limits.length > 2) {
    return `the fragment ${goQuote(text)} violates the requirement that an index interval can have at most two parts separated by '-'`;
  }
  for (const limit of limits) {
    if (!/^[+-]?\d+$/.test(limit)) {
      return `cannot convert string to integer for index: ${goQuote(limit)}`;
    }
    if (Number(limit) >= completions) return `too large index: ${goQuote(limit)}`;
  }
  const [first = 0, last] = limits.map(Number);
  if (last === undefined) return [first, first];
  return first >= last ? notIncreasing(first, last) : [first, last];
}

function notIncreasing(previous: number, current: number): string {
  return `non-increasing order, previous: ${previous}, current: ${current}`;
}

/** Returns the first index in both lists, which are sorted, or undefined. */
function overlapOf(
  completed: readonly Interval[],
  failed: readonly Interval[],
): number | undefined {
  for (let c = 0, f = 0; ;) {
    const [one, other] = [completed[c], failed[f]];
    if (!one || !other) return undefined;
    if (one[0] <= other[1] && other[0] <= one[1]) return Math.max(one[0], other[0]);
    if (one[0] <= other[0]) c++;
    else f++;
  }
}

function exclusive(one: string, other: string, of: readonly string[] = [one, other]): Rule {
  return {
    of,
    at: 'conditions',
    text: `cannot set ${one}=True and ${other}=true conditions`,
    isBroken: (job) => job.has(one) && job.has(other),
  };
}

/** A finished Job has no Pods that a count of its status is about. */
function finishedWithout(count: 'active' | 'terminating'): Rule {
  return {
    of: ['finished', count],
    at: count,
    text: `${count}>0 is invalid for finished job`,
    isBroken: (job) => job.count(count) > 0 && job.isFinished,
  };
}

function needs(of: readonly string[], type: string, needed: string): Rule {
  return {
    of,
    at: 'conditions',
    text: `cannot set ${type}=True condition without the ${needed}=true condition`,
    isBroken: (job) => job.has(type) && !job.has(needed),
  };
}

function lasting(type: string, shown: string): Rule {
  return {
    of: [type],
    at: 'conditions',
    text: `cannot disable the ${shown}=True condition`,
    isBroken: (job, previous) => previous.has(type) && !job.has(type),
  };
}

function isBefore(time: string | undefined, other: string | undefined): boolean {
  return time !== undefined && other !== undefined && Date.parse(time) < Date.parse(other);
}
