import type { Clock } from '../util/clock.ts';

/** Something that wants a resync now and then. */
export interface Resyncing {
  /** 0: never. */
  readonly resyncPeriodMs: number;
  nextResyncMs: number;
  resyncDue: boolean;
}

/**
 * Marks each member as due when its own period has passed, whatever the others' periods are, and
 * says so. One timer, set to the earliest.
 */
export class ResyncTimer {
  readonly #clock: Clock;
  readonly #members: Iterable<Resyncing>;
  readonly #onDue: () => void;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, members: Iterable<Resyncing>, onDue: () => void) {
    this.#clock = clock;
    this.#members = members;
    this.#onDue = onDue;
  }

  /** Sets the timer anew: at the start, and when members have come or gone. */
  arm(): void {
    this.stop();
    let earliestMs = Infinity;
    for (const { resyncPeriodMs, nextResyncMs } of this.#members) {
      if (resyncPeriodMs > 0) earliestMs = Math.min(earliestMs, nextResyncMs);
    }
    if (earliestMs === Infinity) return;
    this.#cancel = this.#clock.after(earliestMs - this.#clock.monotonic(), this.#fire);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  readonly #fire = (): void => {
    const nowMs = this.#clock.monotonic();
    let anyDue = false;
    for (const member of this.#members) {
      if (member.resyncPeriodMs === 0 || member.nextResyncMs > nowMs) continue;
      member.nextResyncMs = nowMs + member.resyncPeriodMs;
      member.resyncDue = true;
      anyDue = true;
    }
    this.arm();
    if (anyDue) this.#onDue();
  };
}
