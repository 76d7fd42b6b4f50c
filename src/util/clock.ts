/**
 * Time as a dependency. Every unit that waits or reads the time takes a `Clock`; production passes
 * `systemClock`, tests and simulations a `FakeClock`.
 */
export interface Clock {
  /** Wall-clock time in milliseconds since the Unix epoch. May jump; never use it to measure. */
  now(): number;

  /** Milliseconds from an arbitrary origin, never decreasing. Use it for durations and deadlines. */
  monotonic(): number;

  /**
   * Calls `callback` once after at least `ms` milliseconds (0 and below: as soon as possible).
   * Waits beyond the platform's 2^31-1 ms limit are exact. The returned function cancels;
   * cancelling twice, or after the call, does nothing.
   */
  after(ms: number, callback: () => void): () => void;

  /**
   * Resolves after `ms` milliseconds or as soon as `signal` aborts, whichever is first. It never
   * rejects: a loop looks at its signal, and an abort is not an error.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** `setTimeout` turns a longer delay into 1 ms. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The machine's own clock. Its timers keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: afterTimeout,
  sleep: (ms, signal) => sleepOn(systemClock, ms, signal),
};

/** `Clock.sleep` in terms of `Clock.after`, for every implementation. */
export function sleepOn(
  clock: Pick<Clock, 'after'>,
  ms: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise<void>((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const wake = () => {
      cancel();
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const cancel = clock.after(ms, wake);
    signal?.addEventListener('abort', wake, { once: true });
  });
}

function afterTimeout(ms: number, callback: () => void): () => void {
  const due = performance.now() + ms;
  let timer: NodeJS.Timeout;
  const arm = (left: number) => {
    timer =
      left > LONGEST_TIMEOUT_MS
        ? setTimeout(() => arm(due - performance.now()), LONGEST_TIMEOUT_MS)
        : setTimeout(callback, Math.max(0, left));
  };
  arm(ms);
  return () => clearTimeout(timer);
}
