import { Memo } from '../../util/memo.ts';

const SECOND = 10n ** 9n;

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1000n],
  ['µs', 1000n],
  ['μs', 1000n],
  ['ms', 10n ** 6n],
  ['s', SECOND],
  ['m', 60n * SECOND],
  ['h', 3600n * SECOND],
]);

/** Maximum duration: 64-bit nanoseconds. */
export const MAX_DURATION: bigint = 2n ** 63n - 1n;

/** Parses Go's duration format: `1h30m`, `-1.5s`, `0`. Returns undefined if it is malformed. */
export function parseDuration(text: string): bigint | undefined {
  const [, sign, rest = ''] = /^([+-]?)(.+)$/.exec(text.slice(0, MAX_TEXT)) ?? [];
  if (sign === undefined || text.length > MAX_TEXT) return undefined;
  if (rest === '0') return 0n;
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+$/.test(rest))
    return undefined;
  let nanos = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of rest.matchAll(
    /(\d*)(?:\.(\d*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/g,
  )) {
    const scale = UNITS.get(unit) ?? 0n;
    nanos += BigInt(whole || '0') * scale;
    if (fraction) nanos += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
  }
  if (nanos > MAX_DURATION) return undefined;
  return sign === '-' ? -nanos : nanos;
}

const MAX_TEXT = 100;

/** Parses the additional forms of `format: duration`: `3 days`, `2 weeks`. */
export function parseWordyDuration(text: string): bigint | undefined {
  const exact = parseDuration(text);
  if (exact !== undefined || text.length > MAX_TEXT) return exact;
  let nanos: bigint | undefined;
  for (const [, amount = '0', word = ''] of text.matchAll(/(\d+)\s{0,20}([A-Za-z\u00b5]+)/g)) {
    const unit = WORDS.find(([pattern]) => pattern.test(word))?.[1];
    if (unit !== undefined) nanos = (nanos ?? 0n) + BigInt(amount) * unit;
  }
  return nanos;
}

const WORDS: readonly (readonly [pattern: RegExp, nanos: bigint])[] = [
  [/^(?:ns|nano)/i, 1n],
  [/^(?:us|\u00b5s|micro)/i, 1000n],
  [/^(?:ms|milli)/i, 10n ** 6n],
  [/^(?:m|min)/i, 60n * SECOND],
  [/^(?:s|sec)/i, SECOND],
  [/^(?:h|hr|hour)/i, 3600n * SECOND],
  [/^(?:d|day)/i, 86_400n * SECOND],
  [/^(?:w|wk|week)/i, 7n * 86_400n * SECOND],
];

/** Parses RFC 3339 or a date to nanoseconds since the Unix epoch. Returns undefined if it is malformed. */
export function parseTimestamp(text: string): bigint | undefined {
  const match =
    /^(\d{4}-\d{2}-\d{2})(?:[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2}))?$/.exec(
      text.slice(0, MAX_TEXT),
    );
  if (!match) return undefined;
  const [, date = '', time = '00:00:00', fraction = '', zone = 'Z'] = match;
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  // Date would convert 30 February to a day in March.
  if (day > new Date(Date.UTC(year, month, 0)).getUTCDate()) return undefined;
  const ms = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  if (Number.isNaN(ms) || time > '23:59:59') return undefined;
  return BigInt(ms) * 10n ** 6n + BigInt(fraction.padEnd(9, '0'));
}

/** Range of timestamps: years 1 to 9999. */
export const MIN_TIMESTAMP: bigint = -62_135_596_800n * SECOND;
export const MAX_TIMESTAMP: bigint = 253_402_300_799n * SECOND + SECOND - 1n;

export function formatTimestamp(nanos: bigint): string {
  const { seconds, fraction } = split(nanos);
  const text = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  const digits = String(fraction).padStart(9, '0').replace(/0+$/, '');
  return `${text}${digits && `.${digits}`}Z`;
}

export function formatCelDuration(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos;
  const digits = String(size % SECOND)
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${nanos < 0n ? '-' : ''}${size / SECOND}${digits && `.${digits}`}s`;
}

/** A point in time in the local time of a zone. */
interface LocalTime {
  readonly date: Date;
  readonly millis: number;
}

/**
 * @param zone a name of the time zone database or an offset, such as `+02:00`
 * @returns undefined if the time zone does not exist
 */
export function localTime(nanos: bigint, zone: string = 'UTC'): LocalTime | undefined {
  const { seconds, fraction } = split(nanos);
  const offset = zoneOffset(Number(seconds), zone);
  if (offset === undefined) return undefined;
  const date = new Date((Number(seconds) + offset) * 1000);
  return { date, millis: Number(fraction / 10n ** 6n) };
}

function zoneOffset(seconds: number, zone: string): number | undefined {
  if (zone === '' || zone === 'UTC') return 0;
  const [, sign, hours, minutes] = /^([+-]?)(\d{2}):(\d{2})$/.exec(zone) ?? [];
  if (sign !== undefined) {
    const size = (Number(hours) * 60 + Number(minutes)) * 60;
    return sign === '-' ? -size : size;
  }
  const formatter = formatters.get(zone);
  if (!formatter) return undefined;
  const parts = new Map(
    formatter.formatToParts(seconds * 1000).map(({ type, value }) => [type, Number(value)]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
  const local = Date.UTC(
    part('year'),
    part('month') - 1,
    part('day'),
    part('hour'),
    part('minute'),
    part('second'),
  );
  return local / 1000 - seconds;
}

const formatters = new Memo(100, makeFormatter);

function makeFormatter(timeZone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function split(nanos: bigint): { seconds: bigint; fraction: bigint } {
  const rest = nanos % SECOND;
  const fraction = rest < 0n ? rest + SECOND : rest;
  return { seconds: (nanos - fraction) / SECOND, fraction };
}
