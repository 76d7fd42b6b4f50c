import type { Clock } from '../../util/clock.ts';
import type { ConnectionActivity } from '../../util/http.ts';
import { PingTimeoutError } from './connection-error.ts';

/** Timeouts of a connection's health check, as in Go's HTTP/2 transport (ReadIdleTimeout, PingTimeout). */
export interface HealthCheckLimits {
  /**
   * Time without received data after which a ping is sent, in milliseconds.
   * @default 20_000
   */
  readonly pingAfterMs: number;
  /**
   * Time after the ping without received data after which the connection is closed, in milliseconds.
   * @default 10_000
   */
  readonly pingTimeoutMs: number;
}

/** Delay of a timer, in milliseconds, above which this process must have been suspended. */
const SUSPENDED_MS = 1000;

/**
 * Detects that a connection is dead. If nothing was received for `pingAfterMs`, it calls `ping`. If nothing is
 * received within `pingTimeoutMs` after that, it calls `onDead` once. So a dead connection is detected at most
 * `pingAfterMs + pingTimeoutMs` after it last received data, and an idle one stays open. Recording activity
 * sets one number; there is a single timer.
 *
 * If the process or the machine was suspended, timers fire late while responses are still unread. Then it sends
 * another ping.
 */
export class ConnectionHealthCheck implements ConnectionActivity {
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
    this.#cancel = clock.after(limits.pingAfterMs, this.#check);
  }

  /** `Clock.monotonic()` when something was last received. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** Records that data or the response to a ping was received. */
  received(): void {
    this.#lastMs = this.#clock.monotonic();
  }

  stop(): void {
    this.#cancel();
  }

  readonly #check = (): void => {
    const idleMs = this.#clock.monotonic() - this.#lastMs;
    const leftMs = this.#limits.pingAfterMs - idleMs;
    if (leftMs > 0) this.#cancel = this.#clock.after(leftMs, this.#check);
    else this.#sendPing();
  };

  #sendPing(): void {
    const { pingTimeoutMs } = this.#limits;
    const pingedMs = this.#clock.monotonic();
    this.#cancel = this.#clock.after(pingTimeoutMs, () => {
      const nowMs = this.#clock.monotonic();
      if (this.#lastMs >= pingedMs) this.#check();
      else if (nowMs - pingedMs > pingTimeoutMs + SUSPENDED_MS) this.#sendPing();
      else this.#onDead(this.#timeoutError(nowMs));
    });
    this.#ping();
  }

  #timeoutError(nowMs: number): PingTimeoutError {
    const idleS = Math.round((nowMs - this.#lastMs) / 1000);
    const waitedS = this.#limits.pingTimeoutMs / 1000;
    return new PingTimeoutError(
      `nothing received for ${idleS} s, and no response to a ping within ${waitedS} s`,
    );
  }
}
