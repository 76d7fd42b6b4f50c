import { parseDuration } from './go-duration.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Longest time that is searched for a scheduled time: a leap day may be eight years away. */
const LONGEST_MS = 8 * 366 * DAY_MS;

const MACROS: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const DAYS = 'sun mon tue wed thu fri sat'.split(' ');

/** The fields in order, with the least and the greatest value, and the names of values. */
const FIELDS: readonly FieldFormat[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, words: MONTHS },
  { name: 'day of week', min: 0, max: 6, words: DAYS },
];

interface FieldFormat {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Words for the values from `min` on. */
  readonly words?: readonly string[];
}

interface Field {
  readonly values: ReadonlySet<number>;
  /** Whether the field has `*` without a step, which matters for days. */
  readonly isAny: boolean;
}

/**
 * A schedule in cron format, with the rules of Kubernetes' CronJobs: five fields (minute, hour, day of the
 * month, month, day of the week), a macro such as `@daily`, or an interval such as `@every 1h30m`. If both day fields are
 * restricted, one of them must match. A local time that a change of the clock skips is not scheduled on that day; one that occurs
 * twice is scheduled twice.
 *
 * @example
 * ```ts
 * import { CronSchedule } from 'crd-controller';
 *
 * const schedule = new CronSchedule('30 4 * * 1');
 * const next = schedule.next(Date.UTC(2026, 0, 1));
 * console.log(next && new Date(next).toISOString()); // prints: 2026-01-05T04:30:00.000Z
 * ```
 */
export class CronSchedule {
  readonly #times: ScheduledTimes;

  /**
   * @param schedule `30 3 * * mon-fri`: fields can have names, lists, ranges and steps
   * @param timeZone name in the IANA database, as in `Europe/Berlin`; UTC by default
   * @throws {RangeError} if the schedule or the time zone is malformed
   */
  constructor(schedule: string, timeZone?: string) {
    const zone = timeZone
      ? new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
      : undefined;
    const [, interval] = /^@every (.*)$/s.exec(schedule) ?? [];
    this.#times =
      interval === undefined
        ? new CalendarTimes((MACROS.get(schedule) ?? schedule).trim(), zone)
        : new IntervalTimes(interval);
  }

  /** Returns why the arguments of the constructor are malformed, or undefined. */
  static problemOf(schedule: string, timeZone?: string): string | undefined {
    try {
      void new CronSchedule(schedule, timeZone);
      return undefined;
    } catch (error) {
      if (error instanceof RangeError) return error.message;
      throw error;
    }
  }

  /**
   * Returns the first scheduled time after `ms`, in milliseconds since the epoch. Undefined if there is none
   * in eight years, as with February 30.
   */
  next(ms: number): number | undefined {
    return this.#times.next(ms);
  }

  /**
   * Returns the last scheduled time that is not later than `ms` and is later than `afterMs`, or undefined.
   * With `afterMs`, the time of the last start, it shows whether a start was missed; earlier missed starts
   * are skipped.
   */
  last(ms: number, afterMs: number): number | undefined {
    return this.#times.last(ms, afterMs);
  }
}

/** The methods of `CronSchedule` with the same names. */
interface ScheduledTimes {
  readonly next: (ms: number) => number | undefined;
  readonly last: (ms: number, afterMs: number) => number | undefined;
}

/** Times at a fixed interval from the previous one, in whole seconds. */
class IntervalTimes implements ScheduledTimes {
  readonly #intervalMs: number;

  /** @throws {RangeError} if `text` is not a duration */
  constructor(text: string) {
    const nanos = parseDuration(text);
    if (nanos === undefined) throw new RangeError(`@every ${text} has no duration such as 1h30m`);
    this.#intervalMs = Math.max(1, Math.floor(Number(nanos) / 1e9)) * SECOND_MS;
  }

  next(ms: number): number {
    return Math.floor(ms / SECOND_MS) * SECOND_MS + this.#intervalMs;
  }

  last(ms: number, afterMs: number): number | undefined {
    const fromMs = Math.floor(afterMs / SECOND_MS) * SECOND_MS;
    const count = Math.floor((ms - fromMs) / this.#intervalMs);
    return count < 1 ? undefined : fromMs + count * this.#intervalMs;
  }
}

/** Times whose minute, hour, day, month and day of the week match five fields. */
class CalendarTimes implements ScheduledTimes {
  readonly #minute: Field;
  readonly #hour: Field;
  readonly #day: Field;
  readonly #month: Field;
  readonly #weekday: Field;
  readonly #zone: Intl.DateTimeFormat | undefined;
  readonly #offsets = new Map<number, number>();

  /** @throws {RangeError} if the fields are malformed */
  constructor(text: string, zone: Intl.DateTimeFormat | undefined) {
    if (text.startsWith('@')) throw new RangeError(`unknown macro ${text}`);
    const fields = text.split(/\s+/);
    if (fields.length !== FIELDS.length) {
      const names = FIELDS.map(({ name }) => name).join(', ');
      const found = text === '' ? 0 : fields.length;
      throw new RangeError(`expected exactly 5 fields (${names}), found ${found}: [${text}]`);
    }
    const [minute, hour, day, month, weekday] = FIELDS.map((format, at) =>
      parsedField(fields[at] ?? '', format),
    ) as [Field, Field, Field, Field, Field];
    this.#minute = minute;
    this.#hour = hour;
    this.#day = day;
    this.#month = month;
    this.#weekday = weekday;
    this.#zone = zone;
  }

  next(ms: number): number | undefined {
    return this.#search(Math.floor(ms / MINUTE_MS) * MINUTE_MS + MINUTE_MS, 1, ms + LONGEST_MS);
  }

  last(ms: number, afterMs: number): number | undefined {
    const endMs = Math.max(afterMs, ms - LONGEST_MS);
    const found = this.#search(Math.floor(ms / MINUTE_MS) * MINUTE_MS, -1, endMs);
    return found !== undefined && found > afterMs ? found : undefined;
  }

  #search(fromMs: number, direction: 1 | -1, endMs: number): number | undefined {
    for (let ms = fromMs; direction * (endMs - ms) >= 0;) {
      const local = new Date(ms + this.#offset(ms));
      if (!this.#hasDay(local)) {
        ms = this.#otherDay(ms, direction);
      } else if (!this.#hour.values.has(local.getUTCHours())) {
        const intoHour = local.getTime() % HOUR_MS;
        ms += direction === 1 ? HOUR_MS - intoHour : -intoHour - MINUTE_MS;
      } else if (this.#minute.values.has(local.getUTCMinutes())) return ms;
      else ms += direction * MINUTE_MS;
    }
    return undefined;
  }

  /** Returns the first minute of the next day, or the last minute of the previous one. */
  #otherDay(ms: number, direction: 1 | -1): number {
    const offset = this.#offset(ms);
    const intoDay = (ms + offset) % DAY_MS;
    const far = ms + (direction === 1 ? DAY_MS - intoDay : -intoDay - MINUTE_MS);
    // A change of the clock makes a day shorter or longer.
    const exact = far + offset - this.#offset(far);
    const isOtherDay = dayOf(exact + this.#offset(exact)) !== dayOf(ms + offset);
    return isOtherDay ? exact : far;
  }

  #hasDay(local: Date): boolean {
    if (!this.#month.values.has(local.getUTCMonth() + 1)) return false;
    const isDay = this.#day.values.has(local.getUTCDate());
    const isWeekday = this.#weekday.values.has(local.getUTCDay());
    return this.#day.isAny || this.#weekday.isAny ? isDay && isWeekday : isDay || isWeekday;
  }

  /** Returns the offset of the time zone, in milliseconds. */
  #offset(ms: number): number {
    if (!this.#zone) return 0;
    const hour = Math.floor(ms / HOUR_MS);
    const known = this.#offsets.get(hour);
    if (known !== undefined) return known;
    const parts = this.#zone.formatToParts(hour * HOUR_MS);
    const name = parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
    const [, sign, hours = 0, minutes = 0] = /GMT([+-])(\d+):(\d+)/.exec(name) ?? [];
    const size = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS;
    const offset = sign === '-' ? -size : size;
    if (this.#offsets.size > 1000) this.#offsets.clear();
    this.#offsets.set(hour, offset);
    return offset;
  }
}

function dayOf(localMs: number): number {
  return Math.floor(localMs / DAY_MS);
}

/** Parses `*`, `5`, `1-5`, `0-59/10`, `mon-fri` and lists of these. */
function parsedField(text: string, { name, min, max, words = [] }: FieldFormat): Field {
  const values = new Set<number>();
  const numberOf = (word: string) => {
    if (word === '') throw new RangeError(`${name} ${text} is malformed`);
    const at = words.indexOf(word.toLowerCase());
    const value = at >= 0 ? at + min : /^\+?\d+$/.test(word) ? Number(word) : Number.NaN;
    if (value >= min && value <= max) return value;
    const orWords = words.length > 0 ? ` and not one of ${words.join(', ')}` : '';
    throw new RangeError(`${name} ${word} is not between ${min} and ${max}${orWords}`);
  };
  let isAny = false;
  for (const part of text.split(',').filter((each) => each !== '')) {
    const [range = '', step = '1', ...rest] = part.split('/');
    const [low = '', high, ...others] = range.split('-');
    // Cron of Kubernetes ignores what follows in `*-5`.
    const hasAny = low === '*' || low === '?';
    if (rest.length > 0 || (others.length > 0 && !hasAny))
      throw new RangeError(`${name} ${text} is malformed`);
    const first = hasAny ? min : numberOf(low);
    const single = high === undefined && !part.includes('/') ? first : max;
    const last = hasAny ? max : high === undefined ? single : numberOf(high);
    if (first > last) throw new RangeError(`${name} ${range} ends before it starts`);
    if (!/^\+?0*[1-9]\d{0,17}$/.test(step)) {
      throw new RangeError(`the step of ${name} ${part} is not a positive integer`);
    }
    for (let value = first; value <= last; value += Number(step)) values.add(value);
    if (hasAny && Number(step) === 1) isAny = true;
  }
  return { values, isAny };
}
