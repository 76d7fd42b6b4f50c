import type { Meter } from '../meter.ts';
import { typeNameOf } from '../runtime-type.ts';
import { formatDuration, formatTimestamp } from '../time.ts';
import type { List, Result, Value } from '../value.ts';
import {
  Duration,
  Failure,
  List as ListValue,
  Timestamp,
  TypeValue,
  Uint,
  isDictionary,
} from '../value.ts';
import { doubleText } from './conversions.ts';

/** `'%s has %d'.format([…])`: the verbs `s`, `d`, `f`, `e`, `b`, `x`, `X`, `o`, and `%%`. */
export function formatText(template: string, args: List, meter: Meter): Result {
  let failure: Failure | undefined;
  let next = 0;
  const text = template.replace(
    /%(?:\.(\d{1,3}))?([a-zA-Z%])?/g,
    (clause, digits: string | undefined, verb: string | undefined) => {
      if (verb === '%') return '%';
      if (failure) return '';
      if (next >= args.size) {
        failure = new Failure(`index ${next} out of range`);
        return '';
      }
      const argument = args.at(next++);
      const formatted =
        argument instanceof Failure
          ? argument
          : clauseText(argument, verb ?? '', digits === undefined ? 6 : Number(digits), clause);
      if (formatted instanceof Failure) {
        failure = formatted;
        return '';
      }
      meter.spend(formatted.length * 0.1);
      return formatted;
    },
  );
  return failure ?? text;
}

function clauseText(value: Value, verb: string, digits: number, clause: string): string | Failure {
  const wrong = (what: string) =>
    new Failure(`error during formatting: ${what}, was given ${typeNameOf(value)}`);
  const whole = wholeNumber(value);
  switch (verb) {
    case 's':
      return plainText(value);
    case 'd':
      if (whole !== undefined) return String(whole);
      return typeof value === 'number'
        ? doubleText(value)
        : wrong('decimal clause can only be used on numbers');
    case 'f':
    case 'e': {
      const number =
        typeof value === 'number' ? value : whole === undefined ? undefined : Number(whole);
      if (number === undefined) return wrong('fixed-point clause can only be used on numbers');
      if (!Number.isFinite(number)) return doubleText(number);
      if (verb === 'f') return number.toFixed(Math.min(digits, 100));
      return number.toExponential(Math.min(digits, 100)).replace(/e([+-])(\d)$/, 'e$10$2');
    }
    case 'b':
      if (typeof value === 'boolean') return value ? '1' : '0';
      return whole === undefined
        ? wrong('only integers and bools can be formatted as binary')
        : whole.toString(2);
    case 'o':
      return whole === undefined
        ? wrong('octal clause can only be used on integers')
        : whole.toString(8);
    case 'x':
    case 'X': {
      const hex = hexText(value, whole);
      if (hex === undefined)
        return wrong('only integers, byte buffers, and strings can be formatted as hex');
      return verb === 'X' ? hex.toUpperCase() : hex;
    }
    default:
      return new Failure(
        `could not parse formatting clause: unrecognized formatting clause "${clause.slice(1)}"`,
      );
  }
}

function wholeNumber(value: Value): bigint | undefined {
  if (value instanceof Uint) return value.value;
  return typeof value === 'bigint' ? value : undefined;
}

function hexText(value: Value, whole: bigint | undefined): string | undefined {
  if (whole !== undefined) return whole.toString(16);
  if (typeof value === 'string') return Buffer.from(value).toString('hex');
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : undefined;
}

function plainText(value: Value): string | Failure {
  if (typeof value === 'string') return value;
  if (value instanceof ListValue) {
    return together(Array.from(value, nested), (items) => `[${items.join(', ')}]`);
  }
  if (isDictionary(value)) {
    const members = Array.from(value.keys(), (key) =>
      together(
        [nested(key), nested(value.get(key) ?? null)],
        ([name, member]) => `${name}: ${member}`,
      ),
    );
    return together(members, (texts) => `{${texts.sort().join(', ')}}`);
  }
  return scalarText(value);
}

function scalarText(value: Value): string | Failure {
  if (value === null || typeof value === 'boolean') return String(value);
  const whole = wholeNumber(value);
  if (whole !== undefined) return String(whole);
  if (typeof value === 'number') return doubleText(value);
  if (value instanceof Timestamp) return formatTimestamp(value.nanos);
  if (value instanceof Duration) return formatDuration(value.nanos);
  if (value instanceof TypeValue) return value.name;
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  return new Failure(
    `error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given ${typeNameOf(value)}`,
  );
}

/** Within a list or a map, strings have quotes. */
function nested(value: Result): string | Failure {
  if (value instanceof Failure) return value;
  return typeof value === 'string' ? JSON.stringify(value) : plainText(value);
}

function together(
  parts: readonly (string | Failure)[],
  combine: (texts: string[]) => string,
): string | Failure {
  const texts: string[] = [];
  for (const part of parts) {
    if (part instanceof Failure) return part;
    texts.push(part);
  }
  return combine(texts);
}
