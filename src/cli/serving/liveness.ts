import type { HealthCheck } from '../../manager/serving/health-probe.ts';
import type { Clock } from '../../util/clock.ts';
import { formatSeconds } from '../../util/duration.ts';
import type { Runnable } from '../../util/runnable.ts';

const BEAT_MS = 1000;

/** Without a beat for longer than this, timers do not fire any more. */
const LONGEST_PAUSE_MS = 30_000;

/** Beyond that, who waits for an instant of the calendar waits for the wrong one. */
const LARGEST_SKEW_MS = 5 * 60_000;

/**
 * Tells whether timers fire, on which everything here depends: leases, retries, watchdogs.
 *
 * It cannot tell that the event loop is blocked, since then nobody answers the probe, which fails by
 * its timeout. What it adds for people is how long the loop has been blocked at worst.
 */
export class Heartbeat implements Runnable {
  readonly name = 'heartbeat';
  readonly #clock: Clock;
  #lastMs: number | undefined;
  #worst = { lateMs: 0, atMs: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly check: HealthCheck = {
    name: 'event-loop',
    check: () => {
      const agoMs = this.#agoMs;
      return agoMs > LONGEST_PAUSE_MS ? `no timer fired for ${formatSeconds(agoMs)}` : undefined;
    },
    detail: () => {
      const { lateMs, atMs } = this.#worst;
      if (lateMs === 0) return [`last beat ${formatSeconds(this.#agoMs)} ago; never late`];
      const whenMs = this.#clock.monotonic() - atMs;
      return [
        `last beat ${formatSeconds(this.#agoMs)} ago; at worst ${Math.round(lateMs)}ms late, ${formatSeconds(whenMs)} ago`,
      ];
    },
  };

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#beat();
      await this.#clock.sleep(BEAT_MS, signal);
    }
  }

  get #agoMs(): number {
    return this.#lastMs === undefined ? 0 : this.#clock.monotonic() - this.#lastMs;
  }

  #beat(): void {
    const nowMs = this.#clock.monotonic();
    const lateMs = this.#lastMs === undefined ? 0 : nowMs - this.#lastMs - BEAT_MS;
    if (lateMs > this.#worst.lateMs) this.#worst = { lateMs, atMs: nowMs };
    this.#lastMs = nowMs;
  }
}

/**
 * Fails where the wall clock has moved against the monotonic one by more than five minutes since the
 * process began: the machine slept, or was set. What was planned by the calendar is then planned for
 * the wrong time; a new process plans anew.
 */
export function clockSkew(clock: Pick<Clock, 'now' | 'monotonic'>): HealthCheck {
  const offset = () => clock.now() - clock.monotonic();
  const before = offset();
  return {
    name: 'clock',
    check: () => {
      const skewMs = Math.abs(offset() - before);
      return skewMs > LARGEST_SKEW_MS
        ? `the wall clock has moved by ${formatSeconds(skewMs)} against the monotonic clock`
        : undefined;
    },
  };
}
