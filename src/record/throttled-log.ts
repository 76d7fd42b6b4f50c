import type { Clock } from '../util/clock.ts';
import type { LogFields, Logger } from '../util/logger.ts';

/** Errors that may come by the thousand: of each message, one line per period. */
export class ThrottledLog {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #periodMs: number;
  /** By message; messages are constants. */
  readonly #lines = new Map<string, { readonly loggedMs: number; suppressed: number }>();

  constructor(clock: Clock, log: Logger, periodMs: number) {
    this.#clock = clock;
    this.#log = log;
    this.#periodMs = periodMs;
  }

  /** The line says, as `alsoTimes`, how many of its kind were left out since the one before. */
  error(error: unknown, message: string, fields: LogFields = {}): void {
    const now = this.#clock.monotonic();
    const last = this.#lines.get(message);
    if (last && now - last.loggedMs < this.#periodMs) {
      last.suppressed++;
      return;
    }
    this.#lines.set(message, { loggedMs: now, suppressed: 0 });
    const left = last?.suppressed ?? 0;
    this.#log.error(error, message, left > 0 ? { ...fields, alsoTimes: left } : fields);
  }
}
