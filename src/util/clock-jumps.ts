import type { Clock } from './clock.ts';

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
export async function followClockJumps(
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
