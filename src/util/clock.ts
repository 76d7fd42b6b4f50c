/**
 * Time as a dependency. Code that waits or reads the time takes a `Clock`: `systemClock` in production,
 * a `FakeClock` in tests and simulations.
 */
export interface Clock {
  /** Wall-clock time in milliseconds since the Unix epoch. May jump; never use it to measure. */
  now(): number;

  /** Milliseconds since an arbitrary origin. Never decreases. Use it for durations and deadlines. */
  monotonic(): number;

  /**
   * Calls `callback` once after at least `ms` milliseconds, or as soon as possible if `ms` is not
   * positive. `ms` may exceed the limit of `setTimeout`, 2^31-1 ms. Returns a function that cancels the
   * timer. It has no effect after the call or when it is called again.
   */
  after(ms: number, callback: () => void): () => void;

  /**
   * Resolves after `ms` milliseconds, or when `signal` aborts. Never rejects: an abort is not an error,
   * and loops check their signal.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;

  /**
   * Called before each sync and each request that this process serves, which wait for the promise, and after each sync. A
   * clock with virtual time finds loops in which no time passes.
   * @default does nothing, because time passes by itself
   */
  active?(activity: Activity): Promise<void> | undefined;
}

/** What happens in a process: a sync of a controller, its end, or a request to an API server in the process. */
export type Activity =
  | {
      readonly kind: 'sync';
      readonly controller: string;
      readonly key: string;
      readonly causes: readonly { readonly text: string; readonly times: number }[];
    }
  | { readonly kind: 'syncEnd'; readonly controller: string; readonly key: string }
  | { readonly kind: 'request'; readonly method: string; readonly path: string };

/** `setTimeout` turns a longer delay into 1 ms. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The clock of the machine. Its timers keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: afterTimeout,
  sleep: (ms, signal) => sleepOn(systemClock, ms, signal),
};

/** Implements `Clock.sleep` with `Clock.after`. */
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
  if (ms <= LONGEST_TIMEOUT_MS) {
    const timer = setTimeout(callback, Math.max(0, ms));
    return () => clearTimeout(timer);
  }
  const due = performance.now() + ms;
  let timer: ReturnType<typeof setTimeout>;
  const arm = (left: number) => {
    timer =
      left > LONGEST_TIMEOUT_MS
        ? setTimeout(() => arm(due - performance.now()), LONGEST_TIMEOUT_MS)
        : setTimeout(callback, Math.max(0, left));
  };
  arm(ms);
  return () => clearTimeout(timer);
}

/** Options of `watchClockJumps`. */
export interface ClockJumpsOptions {
  /**
   * Time between two checks, in milliseconds: the maximum delay until a jump is detected.
   * @default 1000
   */
  readonly checkIntervalMs?: number | undefined;
  /**
   * Difference to the monotonic clock that does not count as a jump, in milliseconds. Slewing, which
   * changes the speed of the wall clock by up to 0.1 %, must stay below it between two checks.
   * @default 250
   */
  readonly toleranceMs?: number | undefined;
}

/**
 * Calls `onJump` when the wall clock jumps relative to the monotonic clock: the clock was set, time
 * synchronisation stepped it, or the machine was suspended. Timers are not affected by such jumps, so code
 * that waits for a point in calendar time must check it again. Resolves when `signal` aborts.
 *
 * @param onJump receives the size of the jump in milliseconds, which is negative if the clock went back
 */
export async function watchClockJumps(
  clock: Clock,
  onJump: (byMs: number) => void,
  signal: AbortSignal,
  { checkIntervalMs = 1000, toleranceMs = 250 }: ClockJumpsOptions = {},
): Promise<void> {
  const offset = () => clock.now() - clock.monotonic();
  let before = offset();
  while (!signal.aborted) {
    await clock.sleep(checkIntervalMs, signal);
    const byMs = offset() - before;
    // `before` keeps its value, so that small differences add up to a jump.
    if (Math.abs(byMs) <= toleranceMs) continue;
    before += byMs;
    if (!signal.aborted) onJump(byMs);
  }
}
