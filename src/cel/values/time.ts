import { Memo } from '../../util/memo.ts';

const SECOND = 10n ** 9n;

const MAX_TEXT = 100;

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
