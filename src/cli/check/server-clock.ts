import type { Clock } from '../../util/clock.ts';
import type { HttpHandler } from '../../util/http.ts';
import { formatDuration } from '../../util/duration.ts';
import { failed, ok, skipped } from './row.ts';
import type { Row } from './row.ts';

/** By so much, in milliseconds, clocks may differ before something goes wrong that people notice. */
const MOST_SKEW_MS = 5000;

const CHECK = 'clock';

/**
 * What the clock of the API server shows, by the `Date` of its answers. A date has whole seconds, and
 * was written at some moment between request and answer: each answer bounds the difference, and many
 * bound it closely.
 */
export class ServerClock {
  readonly #clock: Pick<Clock, 'now'>;
  /** The difference, server's minus ours, is within these bounds, as far as is known. */
  #leastMs = -Infinity;
  #mostMs = Infinity;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Put around a transport, it sees every answer. */
  readonly around =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      const sentMs = this.#clock.now();
      const response = await handler(request);
      this.#saw(response.headers['date'], sentMs, this.#clock.now());
      return response;
    };

  #saw(date: string | undefined, sentMs: number, answeredMs: number): void {
    const serverMs = Date.parse(date ?? '');
    if (Number.isNaN(serverMs)) return;
    const least = serverMs - answeredMs;
    const most = serverMs + 1000 - sentMs;
    const isNews = least > this.#mostMs || most < this.#leastMs;
    // One of the clocks was set meanwhile, or another server answered: what came last counts.
    this.#leastMs = isNews ? least : Math.max(least, this.#leastMs);
    this.#mostMs = isNews ? most : Math.min(most, this.#mostMs);
  }

  /** What the server's clock shows now, as far as is known. */
  now(): number {
    return this.#clock.now() + (this.#differenceMs ?? 0);
  }

  /** The difference of which is known that there is that much; undefined if nothing is known. */
  get #differenceMs(): number | undefined {
    if (this.#mostMs === Infinity) return undefined;
    if (this.#leastMs > 0) return this.#leastMs;
    return Math.min(0, this.#mostMs);
  }

  row(): Row {
    const differenceMs = this.#differenceMs;
    if (differenceMs === undefined) return skipped(CHECK, 'the server sends no Date header');
    const seconds = Math.floor(Math.abs(differenceMs) / 1000);
    if (seconds === 0) return ok(CHECK, "within 1s of the server's clock");
    const text = `${formatDuration(1000 * seconds)} ${differenceMs < 0 ? 'ahead of' : 'behind'} the server's clock`;
    if (Math.abs(differenceMs) <= MOST_SKEW_MS) return ok(CHECK, text);
    return failed(
      CHECK,
      `${text}: Ats start at the wrong time, and credentials can be rejected as expired or not yet valid`,
      'Synchronise the clocks of this machine and of the control plane with NTP. Verify: timedatectl',
    );
  }
}
