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

export interface ClockJumpsOptions {
  /**
   * Between two looks at the clock, in milliseconds: a jump is noticed so late at most.
   * @default 1000
   */
  readonly everyMs?: number;
  /**
   * How far the wall clock may go astray between two looks without that being a jump, in
   * milliseconds. Slewing moves it by a thousandth.
   * @default 250
   */
  readonly toleranceMs?: number;
}

/**
 * Calls `onJump` whenever the wall clock jumps against the monotonic one: somebody set it, time
 * synchronization stepped it, or the machine slept. Timers do not notice such jumps; whoever waits for
 * an instant of the calendar has to look again. Resolves when `signal` aborts.
 *
 * @param onJump is given the jump in milliseconds, negative when the clock went back
 */
export async function watchClockJumps(
  clock: Clock,
  onJump: (byMs: number) => void,
  signal: AbortSignal,
  { everyMs = 1000, toleranceMs = 250 }: ClockJumpsOptions = {},
): Promise<void> {
  const offset = () => clock.now() - clock.monotonic();
  let before = offset();
  while (!signal.aborted) {
    await clock.sleep(everyMs, signal);
    const byMs = offset() - before;
    // What stays within bounds adds up, lest a clock walks away in small steps.
    if (Math.abs(byMs) <= toleranceMs) continue;
    before += byMs;
    if (!signal.aborted) onJump(byMs);
  }
}
