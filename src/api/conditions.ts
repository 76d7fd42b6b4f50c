/** `meta/v1` Condition, the fields in API-convention order. */
export interface Condition {
  /** PascalCase adjective or past participle: a state, not a transition. */
  type: string;
  status: 'True' | 'False' | 'Unknown';
  /** `metadata.generation` that the condition was computed from. */
  observedGeneration?: number;
  /** RFC 3339, whole seconds; moves only when `status` flips. */
  lastTransitionTime: string;
  /** CamelCase, stable: programs match it. */
  reason: string;
  /** For people. */
  message: string;
}

/** What `meta/v1` allows of a message: a server's or a webhook's words can be longer. */
const LONGEST_MESSAGE = 32_768;

/**
 * `conditions` with `next` set: replaced in place if its type is there, else appended.
 * `lastTransitionTime` is kept as long as the status stays the same, so setting a condition that
 * holds already gives an equal list.
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
  // Half a surrogate pair at the end would be stored as another character.
  const message = next.message.slice(0, LONGEST_MESSAGE).replace(/[\uD800-\uDBFF]$/, '');
  const condition: Condition = {
    type,
    status,
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
    lastTransitionTime,
    reason,
    message,
  };
  return current
    ? conditions.map((present) => (present === current ? condition : present))
    : [...conditions, condition];
}

/** `conditions` without the one of `type`: how an abnormal-true condition is cleared. */
export function removeCondition(conditions: readonly Condition[] = [], type: string): Condition[] {
  return conditions.filter((condition) => condition.type !== type);
}

let last = { second: Number.NaN, text: '' };

/** metav1.Time on the wire: UTC, whole seconds. */
export function timestamp(nowMs: number): string {
  const second = Math.floor(nowMs / 1000);
  // Much happens in one second, and a date is slow to make.
  if (second !== last.second) {
    last = { second, text: `${new Date(nowMs).toISOString().slice(0, 19)}Z` };
  }
  return last.text;
}

/** metav1.MicroTime on the wire: UTC, six digits. */
export function microTimestamp(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 23)}000Z`;
}
