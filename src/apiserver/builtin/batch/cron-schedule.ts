const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

interface Field {
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

/** The fields of a schedule: minute, hour, day of the month, month, day of the week. */
const FIELDS: readonly Field[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: MONTHS },
  { min: 0, max: 6, names: DAYS },
];

const DESCRIPTORS: ReadonlySet<string> = new Set([
  '@yearly',
  '@annually',
  '@monthly',
  '@weekly',
  '@daily',
  '@midnight',
  '@hourly',
]);

/** Returns why a text is no cron schedule, in the words of the library that upstream uses, or undefined. */
export function cronProblem(schedule: string): string | undefined {
  const text = schedule.replace(/^(?:TZ|CRON_TZ)=\S*\s+/, '');
  if (text.startsWith('@')) {
    if (DESCRIPTORS.has(text)) return undefined;
    if (/^@every ([\d.]+(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined;
    return `unrecognized descriptor: ${text}`;
  }
  const parts = text.split(/\s+/).filter((part) => part !== '');
  if (parts.length !== FIELDS.length) {
    return `expected exactly 5 fields, found ${parts.length}: [${parts.join(' ')}]`;
  }
  for (const [index, field] of FIELDS.entries()) {
    // As upstream, empty ranges are ignored.
    for (const range of (parts[index] ?? '').split(',').filter((part) => part !== '')) {
      const problem = rangeProblem(range, field);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

/** Checks `*`, `?`, `5`, `1-5`, and each with a step: `0-30/15`; `5/15` has no end. */
function rangeProblem(expression: string, field: Field): string | undefined {
  const [range = '', step, ...more] = expression.split('/');
  if (more.length > 0) return `too many slashes: ${expression}`;
  const [low = '', high, ...others] = range.split('-');
  if (others.length > 0) return `too many hyphens: ${expression}`;
  const isAny = low === '*' || low === '?';
  const start = isAny ? field.min : numberOf(low, field);
  const isOpen = isAny || (high === undefined && step !== undefined);
  const end = isOpen ? field.max : high === undefined ? start : numberOf(high, field);
  const width = step === undefined ? 1 : numberOf(step, { min: 0, max: 0 });
  for (const value of [start, end, width]) if (typeof value === 'string') return value;
  if (Number(start) < field.min) {
    return `beginning of range (${start}) below minimum (${field.min}): ${expression}`;
  }
  if (Number(end) > field.max) {
    return `end of range (${end}) above maximum (${field.max}): ${expression}`;
  }
  if (Number(start) > Number(end)) {
    return `beginning of range (${start}) beyond end of range (${end}): ${expression}`;
  }
  return width === 0 ? `step of range should be a positive number: ${expression}` : undefined;
}

/** The number, or why the text is none. */
function numberOf(text: string, { names, min }: Field): number | string {
  const named = names?.indexOf(text.toLowerCase()) ?? -1;
  if (named >= 0) return named + min;
  const isNumber = /^[+-]?\d+$/.test(text);
  const value = isNumber ? BigInt(text.replace('+', '')) : 0n;
  if (!isNumber || BigInt.asIntN(64, value) !== value) {
    const why = isNumber ? 'value out of range' : 'invalid syntax';
    return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: ${why}`;
  }
  return value < 0n ? `negative number (${value}) not allowed: ${text}` : Number(value);
}
