import { toHex, utf8Bytes } from '../util/bytes.ts';
import type { JsonObject } from '../util/json-value.ts';
import { Memo } from '../util/memo.ts';

/** Layout of Go's type for times: `Time` has seconds, `MicroTime` requires six digits after the second. */
export type TimeLayout = 'seconds' | 'micros';

/** A moment: seconds since the Unix epoch, and nanoseconds after them. */
export interface Moment {
  readonly seconds: number;
  readonly nanos: number;
}

/** 1 January of the years 0, 1 (Go's zero time) and 10000, in seconds since the Unix epoch. */
const MIN_SECONDS = -62_167_219_200;
const ZERO_SECONDS = -62_135_596_800;
const END_SECONDS = 253_402_300_800;

const LAYOUTS: Readonly<Record<TimeLayout, string>> = {
  seconds: '2006-01-02T15:04:05Z07:00',
  micros: '2006-01-02T15:04:05.000000Z07:00',
};

/** The elements of both layouts before the fraction, and the text of each. */
const ELEMENTS: readonly (readonly [element: string, form: RegExp])[] = [
  ['2006', /^\d{4}/],
  ['-', /^-/],
  ['01', /^\d\d/],
  ['-', /^-/],
  ['02', /^\d\d/],
  ['T', /^T/],
  ['15', /^\d\d?/],
  [':', /^:/],
  ['04', /^\d\d/],
  [':', /^:/],
  ['05', /^\d\d/],
];

/** The accepted values of some elements, and their names in an error. */
const RANGES: Readonly<Record<string, readonly [name: string, min: number, max: number]>> = {
  '01': ['month', 1, 12],
  '15': ['hour', 0, 23],
  '04': ['minute', 0, 59],
  '05': ['second', 0, 59],
};

/**
 * Parses a time as Go's `time.Parse` does, which accepts hours of one digit, a comma before the fraction and offsets
 * up to 24 hours and 60 minutes.
 *
 * @returns the moment, or the text of Go's error
 */
export function parseGoTime(text: string, layout: TimeLayout): Moment | string {
  return text.length <= MAX_KEPT ? KEPT[layout].get(text) : parseMoment(text, layout);
}

/** Length of a time with nanoseconds and an offset, and number of times whose results are kept: objects repeat them. */
const MAX_KEPT = 35;
const KEPT_TIMES = 1000;

const KEPT: Readonly<Record<TimeLayout, Memo<Moment | string>>> = {
  seconds: new Memo(KEPT_TIMES, (text) => parseMoment(text, 'seconds')),
  micros: new Memo(KEPT_TIMES, (text) => parseMoment(text, 'micros')),
};

function parseMoment(text: string, layout: TimeLayout): Moment | string {
  const numbers: number[] = [];
  let rest = text;
  const failure = (element: string) =>
    `parsing time ${quote(text)} as "${LAYOUTS[layout]}": cannot parse ${quote(rest)} as "${element}"`;
  const problem = (what: string) => `parsing time ${quote(text)}: ${what}`;
  for (const [element, form] of ELEMENTS) {
    const [found] = form.exec(rest) ?? [];
    if (found === undefined) return failure(element);
    rest = rest.slice(found.length);
    if (/^\d/.test(element)) numbers.push(Number(found));
    const [name, min = 0, max = 0] = RANGES[element] ?? [];
    if (name !== undefined && (Number(found) < min || Number(found) > max)) {
      return problem(`${name} out of range`);
    }
  }
  const fraction = layout === 'micros' ? /^[.,]\d{6}/ : /^(?:[.,]\d+)?/;
  const [digits] = fraction.exec(rest) ?? [];
  if (digits === undefined) return failure('.000000');
  rest = rest.slice(digits.length);
  const [zone, sign = '+', hours = '0', minutes = '0'] =
    /^(?:Z|([+-])(\d\d):(\d\d))/.exec(rest) ?? [];
  if (zone === undefined) return failure('Z07:00');
  if (Number(hours) > 24) return problem('time zone offset hour out of range');
  if (Number(minutes) > 60) return problem('time zone offset minute out of range');
  rest = rest.slice(zone.length);
  if (rest !== '') return problem(`extra text: ${quote(rest)}`);
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = numbers;
  const date = new Date(0);
  // `Date.UTC` takes years below 100 for those of the 20th century.
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCDate() !== day) return problem('day out of range');
  date.setUTCHours(hour, minute, second);
  const offset = (Number(hours) * 60 + Number(minutes)) * 60;
  return {
    seconds: date.getTime() / 1000 - (sign === '-' ? -offset : offset),
    nanos: Number(digits.slice(1, 10).padEnd(9, '0')),
  };
}

/**
 * Returns a moment as Go encodes it, in UTC and without the digits that the layout does not have: null for the zero
 * time, undefined if its year in UTC has not four digits.
 */
export function formatGoTime(
  { seconds, nanos }: Moment,
  layout: TimeLayout,
): string | null | undefined {
  const micros = layout === 'micros' ? Math.trunc(nanos / 1000) : 0;
  if (seconds === ZERO_SECONDS && micros === 0) return null;
  if (seconds < MIN_SECONDS || seconds >= END_SECONDS) return undefined;
  const time = new Date(seconds * 1000).toISOString().slice(0, -'.000Z'.length);
  return layout === 'micros' ? `${time}.${String(micros).padStart(6, '0')}Z` : `${time}Z`;
}

/** Number of characters of a text that an error shows. */
const MAX_SHOWN = 1000;

/** A text in quotes as Go's package `time` shows it, cut if it is long. */
function quote(text: string): string {
  const escaped = text.slice(0, MAX_SHOWN).replaceAll(/["\\]/g, '\\$&');
  const bytes = escaped.replaceAll(/[^\u0020-\u007f]/gu, (character) =>
    toHex(utf8Bytes(character)).replaceAll(/../g, '\\x$&'),
  );
  return `"${bytes}"`;
}

/** Go's zero time. */
const ZERO_TIME = '0001-01-01T00:00:00Z';

/**
 * Returns an optional time of a stored object, or undefined if it has none. The null of a stored time is the zero time:
 * upstream stores a pointer to it.
 */
export function optionalTimeIn(parent: JsonObject | undefined, field: string): string | undefined {
  const time = parent?.[field];
  if (time === null) return ZERO_TIME;
  return typeof time === 'string' ? time : undefined;
}
