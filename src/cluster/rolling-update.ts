/** What a Deployment wants, in numbers. */
export interface RolloutPlan {
  readonly replicas: number;
  readonly maxSurge: number;
  readonly maxUnavailable: number;
}

/** A ReplicaSet of a Deployment, in numbers. */
export interface SetSize {
  /** Asked for. */
  readonly replicas: number;
  readonly available: number;
}

/** How many Pods each set is to have next. */
export interface Step {
  readonly current: number;
  /** In the order they were given. */
  readonly old: readonly number[];
}

/**
 * `3` or `25%` of `replicas`.
 *
 * @param round up for a surge, down for what may be unavailable
 */
export function amountOf(
  value: string | number | undefined,
  replicas: number,
  round: 'up' | 'down',
): number {
  if (value === undefined) return 0;
  if (typeof value === 'number') return value;
  const percent = /^(\d+)%$/.exec(value);
  if (!percent) return 0;
  const exact = (Number(percent[1]) * replicas) / 100;
  return round === 'up' ? Math.ceil(exact) : Math.floor(exact);
}

/**
 * The next step of a rolling update: never more than `replicas + maxSurge` Pods, never fewer than
 * `replicas - maxUnavailable` available ones as long as there are so many. What is not available
 * anyway goes first, the oldest set first.
 */
export function nextStep(
  { replicas, maxSurge, maxUnavailable }: RolloutPlan,
  current: SetSize,
  old: readonly SetSize[],
): Step {
  // Neither more nor fewer would be no way at all.
  const unavailable = maxSurge === 0 && maxUnavailable === 0 ? 1 : maxUnavailable;
  const total = current.replicas + sum(old, (set) => set.replicas);
  if (current.replicas > replicas)
    return { current: replicas, old: old.map((set) => set.replicas) };
  const room = Math.max(0, replicas + maxSurge - total);
  const grown = Math.min(replicas, current.replicas + room);
  if (grown > current.replicas) return { current: grown, old: old.map((set) => set.replicas) };

  const minAvailable = replicas - unavailable;
  let sparing = Math.max(
    0,
    total - minAvailable - Math.max(0, current.replicas - current.available),
  );
  const healthy = old.map((set) => {
    const broken = Math.max(0, set.replicas - set.available);
    const gone = Math.min(broken, sparing);
    sparing -= gone;
    return { ...set, replicas: set.replicas - gone };
  });
  let available = current.available + sum(healthy, (set) => Math.min(set.available, set.replicas));
  const smaller = healthy.map((set) => {
    const gone = Math.min(set.replicas, sparing, Math.max(0, available - minAvailable));
    sparing -= gone;
    available -= gone;
    return set.replicas - gone;
  });
  return { current: current.replicas, old: smaller };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
