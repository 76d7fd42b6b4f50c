import { truncate } from '../util/truncate.ts';

/** `meta/v1` Condition, with fields in the order of the API conventions. */
export interface Condition {
  /** PascalCase adjective or past participle that describes a state, not a transition. */
  type: string;
  status: 'True' | 'False' | 'Unknown';
  /** The `metadata.generation` that the condition describes. */
  observedGeneration?: number;
  /** RFC 3339 with whole seconds. Changes only with `status`. */
  lastTransitionTime: string;
  /** CamelCase identifier for programs. */
  reason: string;
  /** Message for users. */
  message: string;
}

/** Maximum length of a message in `meta/v1`. Messages of servers and webhooks can be longer. */
const LONGEST_MESSAGE = 32_768;

/**
 * Returns `conditions` with `next`, which replaces the condition of the same type or is appended. Keeps
 * `lastTransitionTime` while the status is the same, so that setting an unchanged condition returns an
 * equal list.
 *
 * @example
 * ```ts
 * import { setCondition } from 'crd-controller/objects';
 *
 * const ready = { type: 'Ready', status: 'True', reason: 'Done', message: '' } as const;
 * const [condition] = setCondition([], ready, 0);
 * console.log(condition?.lastTransitionTime); // prints: 1970-01-01T00:00:00Z
 * ```
 */
export function setCondition(
  conditions: readonly Condition[] = [],
  next: Omit<Condition, 'lastTransitionTime'>,
  now: number,
): Condition[] {
  const current = conditions.find((condition) => condition.type === next.type);
  const lastTransitionTime =
    current?.status === next.status ? current.lastTransitionTime : timestamp(now);
  const { type, status, observedGeneration, reason } = next;
  const message = truncate(next.message, LONGEST_MESSAGE);
  const condition: Condition = {
    type,
    status,
    ...(observedGeneration !== undefined && { observedGeneration }),
    lastTransitionTime,
    reason,
    message,
  };
  return current
    ? conditions.map((present) => (present === current ? condition : present))
    : [...conditions, condition];
}

/** Returns `conditions` without the one of `type`. Abnormal-true conditions are cleared this way. */
export function removeCondition(conditions: readonly Condition[] = [], type: string): Condition[] {
  return conditions.filter((condition) => condition.type !== type);
}

let last = { second: Number.NaN, text: '' };

/** Formats a time as metav1.Time: UTC, whole seconds. */
export function timestamp(nowMs: number): string {
  const second = Math.floor(nowMs / 1000);
  // Formatting a date is slow, and many timestamps have the same second.
  if (second !== last.second) {
    last = { second, text: `${new Date(nowMs).toISOString().slice(0, 19)}Z` };
  }
  return last.text;
}

/** Formats a time as metav1.MicroTime: UTC, microseconds. */
export function microTimestamp(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 23)}000Z`;
}
