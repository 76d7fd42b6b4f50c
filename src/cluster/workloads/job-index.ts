import type { Job, Pod } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';

/** Label and annotation of the Pods of an indexed Job. */
export const INDEX_LABEL = 'batch.kubernetes.io/job-completion-index';

/** Returns the completion index of a Pod, or undefined. */
export function indexOf({ metadata }: DeepReadonly<Pod>): number | undefined {
  const index = Number.parseInt(metadata.annotations?.[INDEX_LABEL] ?? '', 10);
  return Number.isNaN(index) ? undefined : index;
}

/** Returns the lowest indexes without an active or succeeded Pod. */
export function missingIndexes(
  job: DeepReadonly<Job>,
  active: readonly DeepReadonly<Pod>[],
  succeeded: readonly DeepReadonly<Pod>[],
  count: number,
): number[] {
  const taken = new Set(active.map(indexOf));
  const missing: number[] = [];
  const end = job.spec?.completions ?? 0;
  let index = 0;
  for (const { first, last } of [...completedRanges(job, succeeded), { first: end, last: end }]) {
    for (; index < Math.min(first, end) && missing.length < count; index++) {
      if (!taken.has(index)) missing.push(index);
    }
    index = Math.max(index, last + 1);
  }
  return missing;
}

/** Returns the number of completed indexes of the status and of Pods that have succeeded. */
export function completedCount(
  job: DeepReadonly<Job>,
  succeeded: readonly DeepReadonly<Pod>[],
): number {
  return completedRanges(job, succeeded).reduce(
    (sum, { first, last }) => sum + last - first + 1,
    0,
  );
}

/** Returns the completed indexes in the form of the status: `0-2,4`. */
export function formatIndexes(
  job: DeepReadonly<Job>,
  succeeded: readonly DeepReadonly<Pod>[],
): string {
  return completedRanges(job, succeeded)
    .map(({ first, last }) =>
      first === last ? `${first}` : `${first}${last === first + 1 ? ',' : '-'}${last}`,
    )
    .join(',');
}

/** Indexes from `first` to `last`. A status of a few characters can have two billion. */
interface IndexRange {
  readonly first: number;
  last: number;
}

/** Returns the completed indexes as sorted ranges with gaps between them. */
function completedRanges(
  { spec, status }: DeepReadonly<Job>,
  succeeded: readonly DeepReadonly<Pod>[],
): IndexRange[] {
  const all: IndexRange[] = [];
  for (const range of (status?.completedIndexes ?? '').split(',').filter(Boolean)) {
    const [first = 0, last = first] = range.split('-').map(Number);
    if (first <= last) all.push({ first, last });
  }
  for (const pod of succeeded) {
    const index = indexOf(pod);
    if (index !== undefined && index < (spec?.completions ?? 0)) {
      all.push({ first: index, last: index });
    }
  }
  const ranges: IndexRange[] = [];
  for (const { first, last } of all.sort((a, b) => a.first - b.first)) {
    const range = ranges.at(-1);
    if (range && first <= range.last + 1) range.last = Math.max(range.last, last);
    else ranges.push({ first, last });
  }
  return ranges;
}
