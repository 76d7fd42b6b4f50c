/** Desired replicas and limits of a rolling update. */
export interface RolloutPlan {
  readonly replicas: number;
  readonly maxSurge: number;
  readonly maxUnavailable: number;
}

/** Replicas of a ReplicaSet. */
export interface SetSize {
  /** Desired replicas. */
  readonly replicas: number;
  readonly available: number;
}

/** Next replicas of each ReplicaSet. */
export interface RolloutStep {
  readonly current: number;
  /** In the order of the input. */
  readonly old: readonly number[];
}

/**
 * Resolves `3` or `25%` of `replicas`.
 *
 * @param round `up` for maxSurge, `down` for maxUnavailable
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
 * Computes the next step of a rolling update: at most `replicas + maxSurge` Pods, and at least
 * `replicas - maxUnavailable` available Pods. Scales down unavailable Pods first, and older ReplicaSets
 * before newer ones.
 */
export function nextStep(
  { replicas, maxSurge, maxUnavailable }: RolloutPlan,
  current: SetSize,
  old: readonly SetSize[],
): RolloutStep {
  // With both limits 0, no step would be possible.
  const unavailable = maxSurge === 0 && maxUnavailable === 0 ? 1 : maxUnavailable;
  const total = current.replicas + sum(old, (set) => set.replicas);
  if (current.replicas > replicas)
    return { current: replicas, old: old.map((set) => set.replicas) };
  const surge = Math.max(0, replicas + maxSurge - total);
  const grown = Math.min(replicas, current.replicas + surge);
  if (grown > current.replicas) return { current: grown, old: old.map((set) => set.replicas) };

  const minAvailable = replicas - unavailable;
  let removable = Math.max(
    0,
    total - minAvailable - Math.max(0, current.replicas - current.available),
  );
  const healthy = old.map((set) => {
    const broken = Math.max(0, set.replicas - set.available);
    const removed = Math.min(broken, removable);
    removable -= removed;
    return { ...set, replicas: set.replicas - removed };
  });
  let available = current.available + sum(healthy, (set) => Math.min(set.available, set.replicas));
  const smaller = healthy.map((set) => {
    const removed = Math.min(set.replicas, removable, Math.max(0, available - minAvailable));
    removable -= removed;
    available -= removed;
    return set.replicas - removed;
  });
  return { current: current.replicas, old: smaller };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
