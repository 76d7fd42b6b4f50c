import { hash } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { RateLimitedLog } from '../../util/rate-limited-log.ts';
import type { LogRecord } from './klog-text.ts';
import type { LogValue } from './log-value.ts';

/** Number of identical lines in a window that are written. */
const MAX_IDENTICAL = 10;
const WINDOW_MS = 60_000;

/** Highest verbosity of limited info lines. */
const MAX_LIMITED_VERBOSITY = 2;

/** Fields that differ between attempts. */
const VARYING: ReadonlySet<string> = new Set([
  'attempt',
  'failures',
  'milliseconds',
  'reconcileID',
  'times',
  'tookMs',
]);

const DURATION = /^-?(?:\d+h)?(?:\d+m)?(?:[\d.]{1,20}(?:s|ms|\u00b5s))?$/;

/**
 * Limits identical lines: the first ten in a minute are written. At its end one more is written, the
 * latest of the suppressed ones, with their number as `suppressed` and the age of the latest as `latest`.
 *
 * Lines are identical if they have the same severity, message, error and fields, except counts of
 * attempts, durations and the reconcileID. So a line about another object or another state is never
 * suppressed by this one. Info lines of verbosity 3 and above are always written.
 */
export class RepeatedLines {
  readonly #write: (record: LogRecord) => void;
  readonly #now: () => number;
  readonly #lines: RateLimitedLog;

  /** `now` is the time of the lines; `clock` measures windows, and need not keep the process running. */
  constructor(
    write: (record: LogRecord) => void,
    now: () => number,
    clock: Pick<Clock, 'monotonic' | 'after'>,
  ) {
    this.#write = write;
    this.#now = now;
    this.#lines = new RateLimitedLog(clock, { windowMs: WINDOW_MS, burst: MAX_IDENTICAL });
  }

  /** Writes or suppresses `record`. */
  take(record: LogRecord): void {
    if (record.severity === 'info' && record.verbosity > MAX_LIMITED_VERBOSITY) {
      this.#write(record);
      return;
    }
    const identity = identityOf(record);
    let isSuppressed = false;
    this.#lines.report(identity, '', ({ times }) => {
      if (isSuppressed) this.#writeLatest(identity, record, times);
      else this.#write(record);
    });
    isSuppressed = true;
  }

  /** Writes the lines about suppressed ones now. */
  flush(): void {
    this.#lines.flush();
  }

  #writeLatest(identity: string, record: LogRecord, suppressed: number): void {
    // The next identical line starts a new window.
    this.#lines.end(identity);
    const timeMs = this.#now();
    const age = formatDuration(Math.max(0, Math.round(timeMs - record.timeMs)));
    const fields = new Map(record.fields).set('suppressed', suppressed).set('latest', `${age} ago`);
    this.#write({ ...record, fields, timeMs });
  }
}

/** Returns an id that is equal for identical lines; short, because a thousand of them are kept. */
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
