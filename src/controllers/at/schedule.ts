const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|[+-](\d{2}):(\d{2}))$/;

/**
 * The instant of an RFC 3339 date and time, in milliseconds since the epoch, rounded up so that
 * nothing is early; undefined if it is none. A day that the calendar has not is none; a leap second
 * is the second after it.
 */
export function parseSchedule(text: string): number | undefined {
  const match = RFC_3339.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', zoneHour, zoneMinute] = match;
  const numbers = [year, month, day, hour, minute, second].map(Number);
  const [y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0] = numbers;
  const date = new Date(0);
  date.setUTCFullYear(y, mo - 1, d);
  const isInCalendar = date.getUTCMonth() === mo - 1 && date.getUTCDate() === d;
  if (!isInCalendar || mo < 1 || h > 23 || mi > 59 || s > 60) return undefined;
  if (Number(zoneHour ?? 0) > 23 || Number(zoneMinute ?? 0) > 59) return undefined;
  const zone = (Number(zoneHour ?? 0) * 60 + Number(zoneMinute ?? 0)) * 60_000;
  const isWest = /-\d{2}:\d{2}$/.test(text);
  const finer = /[1-9]/.test(fraction.slice(3)) ? 1 : 0;
  const fractionMs = Number(fraction.slice(0, 3).padEnd(3, '0')) + finer;
  return date.getTime() + ((h * 60 + mi) * 60 + s) * 1000 + fractionMs + (isWest ? zone : -zone);
}
