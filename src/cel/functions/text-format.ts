import { toHex, utf8Bytes, utf8Text } from '../../util/bytes.ts';
import type { CostMeter } from '../values/overload.ts';
import {
  Duration,
  EvaluationError,
  isDictionary,
  List as ListValue,
  Timestamp,
  typeNameOf,
  TypeValue,
  Uint,
} from '../values/value.ts';
import { formatCelDuration, formatTimestamp } from '../values/time.ts';
import type { List, Result, Value } from '../values/value.ts';
import { doubleText } from './conversions.ts';

interface Clause {
  readonly verb: string;
  /** Number of digits after the decimal point. */
  readonly precision: number;
}

const CLAUSES = /%(?:\.(\d{1,3}))?([a-zA-Z%])?/g;
const DEFAULT_PRECISION = 6;

/** Returns the clauses of a template that have an argument. */
export function clausesOf(template: string): Clause[] {
  return Array.from(template.matchAll(CLAUSES), ([, digits, verb = '']) => ({
    verb,
    precision: digits === undefined ? DEFAULT_PRECISION : Math.min(100, Number(digits)),
  })).filter(({ verb }) => verb !== '%');
}

/** Formats a template: `'%s has %d'.format([…])`. Verbs: `s`, `d`, `f`, `e`, `b`, `x`, `X`, `o`, `%%`. */
export function formatText(template: string, args: List, meter: CostMeter): Result {
  const clauses = clausesOf(template);
  let failure: EvaluationError | undefined;
  let next = 0;
  const text = template.replace(CLAUSES, (_clause, _digits, verb: string | undefined) => {
    if (verb === '%') return '%';
    const clause = clauses[next];
    if (failure || !clause) return '';
    if (next >= args.size) {
      failure = new EvaluationError(`index ${next} out of range`);
      return '';
    }
    const argument = args.at(next++);
    const formatted = argument instanceof EvaluationError ? argument : clauseText(argument, clause);
    if (formatted instanceof EvaluationError) {
      failure = formatted;
      return '';
    }
    meter.spend(1 + formatted.length * 0.3);
    return formatted;
  });
  return failure ?? text;
}

function clauseText(value: Value, { verb, precision }: Clause): string | EvaluationError {
  const problem = clauseProblem(verb, typeNameOf(value));
  if (problem !== undefined) return new EvaluationError(problem);
  const whole = wholeNumber(value);
  switch (verb) {
    case 's':
      return plainText(value);
    case 'f':
      return fixedText(Number(value), precision);
    case 'e':
      return scientificText(Number(value));
    case 'b':
      return typeof value === 'boolean' ? String(Number(value)) : (whole ?? 0n).toString(2);
    case 'o':
      return (whole ?? 0n).toString(8);
    case 'x':
      return hexText(value, whole);
    case 'X':
      return hexText(value, whole).toUpperCase();
    default:
      return String(whole);
  }
}

const NUMBERS = ['int', 'uint'];

/** Types that each verb accepts, and their names in messages. */
const VERBS: ReadonlyMap<
  string,
  readonly [clause: string, types: readonly string[], names: string]
> = new Map([
  ['d', ['decimal clause', NUMBERS, 'integers']],
  ['f', ['fixed-point clause', ['double'], 'doubles']],
  ['e', ['scientific clause', ['double'], 'doubles']],
  ['o', ['octal clause', NUMBERS, 'integers']],
]);

/** Returns the error of a verb for a value of this type, if any. `dyn` is checked at run time. */
export function clauseProblem(verb: string, type: string): string | undefined {
  const wrong = (what: string) => `error during formatting: ${what}, was given ${type}`;
  if (type === 'dyn') return undefined;
  const simple = VERBS.get(verb);
  if (simple) {
    const [clause, types, names] = simple;
    return types.includes(type) ? undefined : wrong(`${clause} can only be used on ${names}`);
  }
  switch (verb) {
    case 's':
      return STRINGS.includes(type)
        ? undefined
        : wrong(
            'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
          );
    case 'b':
      return [...NUMBERS, 'bool'].includes(type)
        ? undefined
        : wrong('only integers and bools can be formatted as binary');
    case 'x':
    case 'X':
      return [...NUMBERS, 'bytes', 'string'].includes(type)
        ? undefined
        : wrong('only integers, byte buffers, and strings can be formatted as hex');
    default:
      return `could not parse formatting clause: unrecognized formatting clause "${verb}"`;
  }
}

const STRINGS: readonly string[] =
  'bool bytes double int list map null_type string type uint google.protobuf.Duration google.protobuf.Timestamp'.split(
    ' ',
  );

function wholeNumber(value: Value): bigint | undefined {
  if (value instanceof Uint) return value.value;
  return typeof value === 'bigint' ? value : undefined;
}

/** Formats a number in US English style: digits in groups of three. */
function fixedText(value: number, precision: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '∞' : '-∞';
  const [whole = '', fraction] = round(Math.abs(value), precision).split('.');
  const grouped = whole.replace(/\d(?=(?:\d{3})+$)/g, '$&,');
  return `${value < 0 ? '-' : ''}${grouped}${fraction === undefined ? '' : `.${fraction}`}`;
}

/** Number of digits that is sufficient to detect an exact tie. */
const ALL_DIGITS = 100;

/** Rounds the exact binary value; ties go to the even digit. */
function round(value: number, precision: number): string {
  if (value >= 1e21)
    return String(BigInt(value)) + (precision > 0 ? `.${'0'.repeat(precision)}` : '');
  const up = value.toFixed(precision);
  const exact = value.toFixed(ALL_DIGITS);
  const cut = exact.indexOf('.') + 1 + precision;
  if (!/^50*$/.test(exact.slice(cut)) || '02468'.includes(up.at(-1) ?? '')) return up;
  return exact.slice(0, precision === 0 ? cut - 1 : cut);
}

const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** Formats as `1.234500×10⁰³`, always with six digits. */
function scientificText(value: number): string {
  if (!Number.isFinite(value)) return fixedText(value, 0);
  const [mantissa = '', exponent = ''] = value.toExponential(DEFAULT_PRECISION).split('e');
  const digits = exponent
    .slice(1)
    .padStart(2, '0')
    .replace(/\d/g, (digit) => SUPERSCRIPTS[Number(digit)] ?? '');
  return `${mantissa}×10${exponent.startsWith('-') ? '⁻' : ''}${digits}`;
}

function hexText(value: Value, whole: bigint | undefined): string {
  if (whole !== undefined) return whole.toString(16);
  if (value instanceof Uint8Array) return toHex(value);
  return toHex(utf8Bytes(typeof value === 'string' ? value : ''));
}

function plainText(value: Value): string | EvaluationError {
  if (typeof value === 'string') return value;
  if (value instanceof ListValue) {
    return together(Array.from(value, formatNested), (items) => `[${items.join(', ')}]`);
  }
  if (isDictionary(value)) {
    const members = Array.from(value.keys(), (key) =>
      together([formatNested(key), formatNested(value.get(key) ?? null)], (pair) => pair.join(':')),
    );
    return together(members, (texts) => `{${texts.sort().join(', ')}}`);
  }
  if (typeof value === 'number') return doubleText(value);
  if (value instanceof Timestamp) return formatTimestamp(value.nanos);
  if (value instanceof Duration) return formatCelDuration(value.nanos);
  if (value instanceof TypeValue) return value.name;
  if (value instanceof Uint8Array) return utf8Text(value);
  return value === null || typeof value === 'boolean' ? String(value) : String(wholeNumber(value));
}

/** Formats a value inside a list or a map. */
function formatNested(value: Result): string | EvaluationError {
  if (value instanceof EvaluationError) return value;
  const problem = clauseProblem('s', typeNameOf(value));
  if (problem !== undefined) return new EvaluationError(problem);
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') return fixedText(value, DEFAULT_PRECISION);
  if (value instanceof Timestamp) return `timestamp("${formatTimestamp(value.nanos)}")`;
  if (value instanceof Duration) return `duration("${formatCelDuration(value.nanos)}")`;
  if (value instanceof Uint8Array) return `b${JSON.stringify(utf8Text(value))}`;
  return plainText(value);
}

function together(
  parts: readonly (string | EvaluationError)[],
  combine: (texts: string[]) => string,
): string | EvaluationError {
  const texts: string[] = [];
  for (const part of parts) {
    if (part instanceof EvaluationError) return part;
    texts.push(part);
  }
  return combine(texts);
}
