import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';

/** How long one run may go on. */
export interface RunLife {
  /** Aborts when it is over. */
  readonly signal: AbortSignal;
  /** The run has ended: frees what its life took. */
  end(): void;
}

/**
 * A life until `cutOff` aborts or, if there is a timeout, until that.
 *
 * @param onTimeout called before the signal aborts
 */
export function runLife(
  clock: Clock,
  cutOff: AbortSignal,
  timeoutMs: number | undefined,
  onTimeout: () => void,
): RunLife {
  if (timeoutMs === undefined) return { signal: cutOff, end: () => undefined };
  const life = new AbortController();
  const hurry = () => life.abort(cutOff.reason);
  if (cutOff.aborted) hurry();
  cutOff.addEventListener('abort', hurry, { once: true });
  const cancel = clock.after(timeoutMs, () => {
    onTimeout();
    life.abort(new Error(`The run took longer than ${formatDuration(timeoutMs)}`));
  });
  return {
    signal: life.signal,
    end: () => {
      cancel();
      cutOff.removeEventListener('abort', hurry);
    },
  };
}
