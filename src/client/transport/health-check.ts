import type { Clock } from '../../util/clock.ts';
import type { ConnectionActivity } from '../../util/http.ts';
import { PingTimeoutError } from './connection-error.ts';

/** How the silence of a connection is told from its death. */
export interface HealthCheckLimits {
  /**
   * How long nothing may arrive before the peer is asked for a sign of life, in milliseconds.
   * @default 20_000
   */
  readonly pingAfterMs: number;
  /**
   * How long its answer may take, in milliseconds.
   * @default 10_000
   */
  readonly pingTimeoutMs: number;
}

/** A timer that comes later than this, in milliseconds, tells that it was us who slept. */
const OVERSLEPT_MS = 1000;

/**
 * Watches over one connection: when nothing has arrived for `pingAfterMs` it calls `ping`, and when
 * nothing has arrived `pingTimeoutMs` after that either, `onDead`, once. So death is noticed at most
 * `pingAfterMs + pingTimeoutMs` after the last sign of life, and a quiet peer is left alone. A sign
 * of life costs one number; there is one timer.
 *
 * A process that was stopped, or a machine that slept, finds its timers overdue and the answers
 * still unread: then it asks again.
 */
export class HealthCheck implements ConnectionActivity {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #limits: HealthCheckLimits;
  readonly #ping: () => void;
  readonly #onDead: (error: PingTimeoutError) => void;
  #lastMs: number;
  #cancel: () => void;

  constructor(
    clock: Pick<Clock, 'monotonic' | 'after'>,
    limits: HealthCheckLimits,
    { ping, onDead }: { ping: () => void; onDead: (error: PingTimeoutError) => void },
  ) {
    this.#clock = clock;
    this.#limits = limits;
    this.#ping = ping;
    this.#onDead = onDead;
    this.#lastMs = clock.monotonic();
    this.#cancel = clock.after(limits.pingAfterMs, this.#look);
  }

  /** `Clock.monotonic()` at the last sign of life. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** Something arrived: data, or the answer to a ping. */
  beat(): void {
    this.#lastMs = this.#clock.monotonic();
  }

  stop(): void {
    this.#cancel();
  }

  readonly #look = (): void => {
    const quietMs = this.#clock.monotonic() - this.#lastMs;
    const leftMs = this.#limits.pingAfterMs - quietMs;
    if (leftMs > 0) this.#cancel = this.#clock.after(leftMs, this.#look);
    else this.#ask();
  };

  #ask(): void {
    const { pingTimeoutMs } = this.#limits;
    const askedMs = this.#clock.monotonic();
    this.#cancel = this.#clock.after(pingTimeoutMs, () => {
      const nowMs = this.#clock.monotonic();
      if (this.#lastMs >= askedMs) this.#look();
      else if (nowMs - askedMs > pingTimeoutMs + OVERSLEPT_MS) this.#ask();
      else this.#onDead(this.#death(nowMs));
    });
    this.#ping();
  }

  #death(nowMs: number): PingTimeoutError {
    const silentS = Math.round((nowMs - this.#lastMs) / 1000);
    const waitedS = this.#limits.pingTimeoutMs / 1000;
    return new PingTimeoutError(
      `nothing for ${silentS} s, and no answer to a ping in ${waitedS} s`,
    );
  }
}
