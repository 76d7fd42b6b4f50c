import { Serve } from './shell-steps.ts';

type Conversion = (date: Date) => string;

const two = (value: number): string => String(value).padStart(2, '0');

/** Conversions of the format of `date`, in the time zone UTC. */
const CONVERSIONS: Readonly<Record<string, Conversion>> = {
  '%': () => '%',
  a: (date) => date.toUTCString().slice(0, 3),
  b: (date) => date.toUTCString().slice(8, 11),
  d: (date) => two(date.getUTCDate()),
  D: (date) => formatDate(date, '%m/%d/%y'),
  e: (date) => String(date.getUTCDate()).padStart(2),
  F: (date) => formatDate(date, '%Y-%m-%d'),
  H: (date) => two(date.getUTCHours()),
  h: (date) => formatDate(date, '%b'),
  j: (date) => String(dayOfYear(date)).padStart(3, '0'),
  m: (date) => two(date.getUTCMonth() + 1),
  M: (date) => two(date.getUTCMinutes()),
  N: (date) => `${String(date.getUTCMilliseconds()).padStart(3, '0')}000000`,
  n: () => '\n',
  R: (date) => formatDate(date, '%H:%M'),
  s: (date) => String(Math.floor(date.getTime() / 1000)),
  S: (date) => two(date.getUTCSeconds()),
  t: () => '\t',
  T: (date) => formatDate(date, '%H:%M:%S'),
  u: (date) => String(date.getUTCDay() || 7),
  w: (date) => String(date.getUTCDay()),
  y: (date) => two(date.getUTCFullYear() % 100),
  Y: (date) => String(date.getUTCFullYear()),
  z: () => '+0000',
  Z: () => 'UTC',
};

/** Formats of options. */
const OPTIONS: Readonly<Record<string, string>> = {
  '-I': '%F',
  '-Iseconds': '%FT%T+00:00',
  '--iso-8601': '%F',
  '--iso-8601=seconds': '%FT%T+00:00',
  '-R': '%a, %d %b %Y %T %z',
};

const UTC: ReadonlySet<string> = new Set(['-u', '--utc', '--universal']);

/** What `date` writes: its output, or an error message. */
export type DateResult = { readonly output: string } | { readonly error: string };

/**
 * Runs `date`. Its time zone is UTC.
 *
 * @throws {Serve} for an option or a conversion that is not known
 */
export function runDate(args: readonly string[], nowMs: number): DateResult {
  let format = '%a %b %e %T %Z %Y';
  for (const arg of args.filter((each) => !UTC.has(each))) {
    const known = arg.startsWith('+') ? arg.slice(1) : OPTIONS[arg];
    if (known !== undefined) format = known;
    else if (arg.startsWith('-')) throw new Serve(`date ${arg}`);
    else return { error: `date: invalid date '${arg}'\n` };
  }
  return { output: `${formatDate(new Date(nowMs), format)}\n` };
}

function formatDate(date: Date, format: string): string {
  return format.replaceAll(/%(.)/gs, (_, name: string) => {
    const convert = CONVERSIONS[name];
    if (!convert) throw new Serve(`date +%${name}`);
    return convert(date);
  });
}

function dayOfYear(date: Date): number {
  const start = Date.UTC(date.getUTCFullYear(), 0);
  return Math.floor((date.getTime() - start) / 86_400_000) + 1;
}
