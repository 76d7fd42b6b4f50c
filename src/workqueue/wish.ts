/** How many different causes of one run are told apart; later ones are only counted. */
export const MAX_CAUSES = 10;

/** That a key shall run, or run once more: what all additions since it was last handed out add up to. */
export interface Wish<K> {
  readonly key: K;
  readonly tenant: string;
  /** First ones first. */
  readonly causes: Set<string>;
  /** Additions whose cause found no place in `causes`. */
  omittedCauses: number;
  priority: number;
  /** `delayed` until `readyAtMs`; then `ready`, or `held` for as long as the key is in flight. */
  state: 'delayed' | 'ready' | 'held';
  /** On the monotonic clock. */
  readyAtMs: number;
}

/** A wish for no time yet. */
export function newWish<K>(key: K, tenant: string, priority: number): Wish<K> {
  return {
    key,
    tenant,
    causes: new Set(),
    omittedCauses: 0,
    priority,
    state: 'delayed',
    readyAtMs: Infinity,
  };
}

/** @param causes one, or those of a run that was put off */
export function addCauses(wish: Wish<unknown>, causes: string | readonly string[]): void {
  if (typeof causes === 'string') addCause(wish, causes);
  else for (const cause of causes) addCause(wish, cause);
}

function addCause(wish: Wish<unknown>, cause: string): void {
  if (wish.causes.has(cause)) return;
  if (wish.causes.size < MAX_CAUSES) wish.causes.add(cause);
  else wish.omittedCauses++;
}
