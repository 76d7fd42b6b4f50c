import type { Job, Pod } from '../api/builtin.ts';
import type { DeepReadonly } from '../api/object.ts';

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
  const taken = new Set([...active.map(indexOf), ...completedIndexes(job, succeeded)]);
  const missing: number[] = [];
  for (let index = 0; index < (job.spec?.completions ?? 0) && missing.length < count; index++) {
    if (!taken.has(index)) missing.push(index);
  }
  return missing;
}

/** Returns the completed indexes of the status and of Pods that have succeeded, sorted. */
export function completedIndexes(
  { spec, status }: DeepReadonly<Job>,
  succeeded: readonly DeepReadonly<Pod>[],
): number[] {
  const indexes = new Set<number>();
  for (const range of (status?.completedIndexes ?? '').split(',').filter(Boolean)) {
    const [first = 0, last = first] = range.split('-').map(Number);
    for (let index = first; index <= last; index++) indexes.add(index);
  }
  for (const pod of succeeded) {
    const index = indexOf(pod);
    if (index !== undefined && index < (spec?.completions ?? 0)) indexes.add(index);
  }
  return [...indexes].toSorted((a, b) => a - b);
}

/** Returns the completed indexes in the form of the status: `0-2,4`. */
export function formatIndexes(
  job: DeepReadonly<Job>,
  succeeded: readonly DeepReadonly<Pod>[],
): string {
  const ranges: { readonly first: number; last: number }[] = [];
  for (const index of completedIndexes(job, succeeded)) {
    const range = ranges.at(-1);
    if (range && index === range.last + 1) range.last = index;
    else ranges.push({ first: index, last: index });
  }
  return ranges
    .map(({ first, last }) =>
      first === last ? `${first}` : `${first}${last === first + 1 ? ',' : '-'}${last}`,
    )
    .join(',');
}
