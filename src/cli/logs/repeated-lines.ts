import { hash } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { LogRecord } from './klog-text.ts';
import type { LogValue } from './log-value.ts';

/** How many identical lines are shown within how long, in milliseconds. */
const MOST_IDENTICAL = 10;
const WINDOW_MS = 60_000;

/** Lines told apart; with more in one window, the oldest begins anew. */
const MOST_REMEMBERED = 1000;

/** Info lines above this verbosity are for who looks closely, and wants each of them. */
const HIGHEST_LIMITED = 2;

/** Fields that differ from one attempt to the next while nothing else does. */
const VARYING: ReadonlySet<string> = new Set([
  'attempt',
  'failures',
  'milliseconds',
  'reconcileID',
  'times',
  'tookMs',
]);

const DURATION = /^-?(?:\d+h)?(?:\d+m)?(?:[\d.]{1,20}(?:s|ms|µs))?$/;

/** What is remembered of a line that was shown within the last minute. */
interface Sort {
  readonly endMs: number;
  shown: number;
  suppressed: number;
  latest: LogRecord | undefined;
}

/**
 * Keeps one failure that repeats from filling the log: of identical lines, the first ten within a
 * minute are shown, and at its end one more, the latest of those held back, with `suppressed` for how
 * many there were and `latest` for how long ago the latest was.
 *
 * Lines are identical if they agree in severity, message, error and every field, other than counts of
 * attempts, durations and the id of a run. So a line about another object is another line, and so is
 * one that tells of another state: neither is ever held back for this one's sake. Info lines of
 * verbosity 3 and above always pass.
 */
export class RepeatedLines {
  readonly #write: (record: LogRecord) => void;
  readonly #now: () => number;
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  /** In the order in which their windows end. */
  readonly #sorts = new Map<string, Sort>();
  #timer: { readonly dueMs: number; cancel(): void } | undefined;

  /** `now` is the time that lines carry; `clock` measures, and need not keep the process alive. */
  constructor(
    write: (record: LogRecord) => void,
    now: () => number,
    clock: Pick<Clock, 'monotonic' | 'after'>,
  ) {
    this.#write = write;
    this.#now = now;
    this.#clock = clock;
  }

  /** Writes `record`, or holds it back. */
  take(record: LogRecord): void {
    if (record.severity === 'info' && record.verbosity > HIGHEST_LIMITED) {
      this.#write(record);
      return;
    }
    const nowMs = this.#clock.monotonic();
    this.#forgetEnded(nowMs);
    const sort = this.#sortOf(identityOf(record), nowMs);
    if (sort.shown < MOST_IDENTICAL) {
      sort.shown++;
      this.#write(record);
      return;
    }
    sort.suppressed++;
    sort.latest = record;
    this.#wakeAt(sort.endMs);
  }

  /** Tells now of all that is held back: there may be no later. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const identity of this.#sorts.keys()) this.#forget(identity);
  }

  #sortOf(identity: string, nowMs: number): Sort {
    const known = this.#sorts.get(identity);
    if (known) return known;
    const [oldest] = this.#sorts.keys();
    if (oldest !== undefined && this.#sorts.size >= MOST_REMEMBERED) this.#forget(oldest);
    const sort = { endMs: nowMs + WINDOW_MS, shown: 0, suppressed: 0, latest: undefined };
    this.#sorts.set(identity, sort);
    return sort;
  }

  #forgetEnded(nowMs: number): void {
    for (const [identity, sort] of this.#sorts) {
      if (sort.endMs > nowMs) return;
      this.#forget(identity);
    }
  }

  #forget(identity: string): void {
    const sort = this.#sorts.get(identity);
    this.#sorts.delete(identity);
    if (!sort?.latest) return;
    const timeMs = this.#now();
    const fields = new Map(sort.latest.fields)
      .set('suppressed', sort.suppressed)
      .set('latest', `${formatDuration(Math.max(0, Math.round(timeMs - sort.latest.timeMs)))} ago`);
    this.#write({ ...sort.latest, fields, timeMs });
  }

  /** There is one timer, for the first window to end of those that hold something back. */
  #wakeAt(dueMs: number): void {
    if (this.#timer && this.#timer.dueMs <= dueMs) return;
    this.#timer?.cancel();
    const cancel = this.#clock.after(dueMs - this.#clock.monotonic(), () => this.#wake());
    this.#timer = { dueMs, cancel };
  }

  #wake(): void {
    this.#timer = undefined;
    this.#forgetEnded(this.#clock.monotonic());
    for (const { suppressed, endMs } of this.#sorts.values()) {
      if (suppressed === 0) continue;
      this.#wakeAt(endMs);
      return;
    }
  }
}

/** Equal for identical lines; short, as a thousand of them are kept. */
function identityOf({ severity, message, fields }: LogRecord): string {
  let identity = `${severity}\0${message}`;
  for (const [name, value] of fields) {
    if (!isVarying(name, value)) identity += `\0${name}\0${JSON.stringify(value)}`;
  }
  return identity.length > 128 ? hash('sha256', identity, 'base64') : identity;
}

function isVarying(name: string, value: LogValue): boolean {
  return VARYING.has(name) || (typeof value === 'string' && value !== '' && DURATION.test(value));
}
