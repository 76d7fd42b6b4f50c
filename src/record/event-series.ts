import type { Clock } from '../util/clock.ts';
import type { Correlated } from './event-correlator.ts';

/** Time without a repetition after which a series has ended, and time between two checks. */
const FINISH_MS = 6 * 60_000;
/** Time after which the count of a continuing series is written, before the server deletes the event. */
const REFRESH_MS = 30 * 60_000;
/** Maximum number of series. Repetitions of further events are written at once. */
const CAPACITY = 4096;

/** Repetitions of one event. */
interface Series {
  isRepeated: boolean;
  lastMs: number;
  writtenMs: number;
  /** Latest occurrence, if it is not written. */
  held: Correlated | undefined;
}

/**
 * Decides when repetitions of an event are written to events.k8s.io, as client-go's tools/events: the first two
 * occurrences at once, because the second one starts the series. Further ones are counted, and written when the
 * series has had none for 6 minutes, every 30 minutes while it continues, and when the program stops.
 */
export class EventSeries {
  readonly #clock: Clock;
  readonly #write: (occurrence: Correlated) => void;
  readonly #series = new Map<string, Series>();

  /** @param write writes the count of a series */
  constructor(clock: Clock, write: (occurrence: Correlated) => void) {
    this.#clock = clock;
    this.#write = write;
  }

  /** Returns whether `occurrence` is only counted for now. */
  holds(occurrence: Correlated): boolean {
    const nowMs = this.#clock.monotonic();
    const series = this.#series.get(occurrence.key);
    if (!series) {
      const first = { isRepeated: false, lastMs: nowMs, writtenMs: nowMs, held: undefined };
      if (this.#series.size < CAPACITY) this.#series.set(occurrence.key, first);
      return false;
    }
    series.lastMs = nowMs;
    if (series.isRepeated) {
      series.held = occurrence;
      return true;
    }
    series.isRepeated = true;
    series.writtenMs = nowMs;
    return false;
  }

  /** Writes all counts that are held. */
  flush(): void {
    for (const series of this.#series.values()) this.#release(series);
  }

  /** Writes the counts that are due, until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(FINISH_MS, signal);
      if (!signal.aborted) this.#check();
    }
  }

  #check(): void {
    const nowMs = this.#clock.monotonic();
    for (const [key, series] of this.#series) {
      const hasEnded = nowMs - series.lastMs >= FINISH_MS;
      if (hasEnded || nowMs - series.writtenMs >= REFRESH_MS) this.#release(series);
      if (hasEnded) this.#series.delete(key);
    }
  }

  #release(series: Series): void {
    if (!series.held) return;
    this.#write(series.held);
    series.held = undefined;
    series.writtenMs = this.#clock.monotonic();
  }
}
