import { utf8Bytes } from '../../util/bytes.ts';
import type { Overload } from '../values/overload.ts';
import {
  A,
  bool,
  bytes,
  costs,
  sizedAs,
  double,
  durationParameter,
  global,
  int,
  member,
  memberWithOptional,
  stringParameter,
  timestampParameter,
  uint,
} from '../values/overload.ts';
import {
  MAX_TIMESTAMP,
  MIN_TIMESTAMP,
  formatCelDuration,
  formatTimestamp,
  localTime,
  parseTimestamp,
} from '../values/time.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  INT,
  STRING,
  TIMESTAMP,
  UINT,
  typeOf,
} from '../values/type.ts';
import type { Result } from '../values/value.ts';
import {
  Duration,
  EvaluationError,
  Timestamp,
  typeNameOf,
  TypeValue,
  Uint,
} from '../values/value.ts';
import { parseDuration } from '../../util/go-duration.ts';

/** Type conversions and accessors of timestamps and durations. */
export function conversions(): Overload[] {
  return [
    global('type', [A], typeOf(A.type), (value) => new TypeValue(typeNameOf(value))),
    global('bool', [bool], BOOL, (value) => value),
    global('bool', [stringParameter], BOOL, parseBool),
    ...toInt(),
    ...toUint(),
    global('double', [double], DOUBLE, (value) => value),
    global('double', [int], DOUBLE, (value) => Number(value)),
    global('double', [uint], DOUBLE, (value) => Number(value.value)),
    global('double', [stringParameter], DOUBLE, parseDouble),
    ...toText(),
    ...toTime(),
    ...timeParts(),
  ];
}

function parseBool(text: string): Result {
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(text)) return true;
  if (['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(text)) return false;
  return conversionError('string', 'bool');
}

function conversionError(from: string, to: string): EvaluationError {
  return new EvaluationError(`type conversion error from '${from}' to '${to}'`);
}

function toInt(): Overload[] {
  return [
    global('int', [int], INT, (value) => value),
    global('int', [uint], INT, ({ value }) => intOr(value, 'integer overflow')),
    global('int', [double], INT, (value) =>
      // The bounds are not exact doubles.
      Math.abs(value) < 2 ** 63
        ? BigInt(Math.trunc(value))
        : new EvaluationError('integer overflow'),
    ),
    global('int', [stringParameter], INT, (text) =>
      /^[+-]?\d{1,25}$/.test(text)
        ? intOr(BigInt(text), "type conversion error from 'string' to 'int'")
        : conversionError('string', 'int'),
    ),
    global('int', [timestampParameter], INT, ({ nanos }) => floorSeconds(nanos)),
    global('int', [durationParameter], INT, ({ nanos }) => nanos),
  ];
}

function intOr(value: bigint, problem: string): Result {
  return BigInt.asIntN(64, value) === value ? value : new EvaluationError(problem);
}

function floorSeconds(nanos: bigint): bigint {
  const second = 10n ** 9n;
  return nanos < 0n ? (nanos - second + 1n) / second : nanos / second;
}

function toUint(): Overload[] {
  const unsigned = (value: bigint): Result =>
    BigInt.asUintN(64, value) === value
      ? new Uint(value)
      : new EvaluationError('unsigned integer overflow');
  return [
    global('uint', [uint], UINT, (value) => value),
    global('uint', [int], UINT, unsigned),
    global('uint', [double], UINT, (value) =>
      value >= 0 && value < 2 ** 64
        ? new Uint(BigInt(Math.trunc(value)))
        : new EvaluationError('unsigned integer overflow'),
    ),
    global('uint', [stringParameter], UINT, (text) =>
      /^\d{1,25}$/.test(text) ? unsigned(BigInt(text)) : conversionError('string', 'uint'),
    ),
  ];
}

function parseDouble(text: string): Result {
  const word = text.toLowerCase().replace(/^\+/, '');
  if (word === 'nan') return Number.NaN;
  if (word === 'inf' || word === 'infinity') return Number.POSITIVE_INFINITY;
  if (word === '-inf' || word === '-infinity') return Number.NEGATIVE_INFINITY;
  const isNumber = text.length < 1000 && /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text);
  return isNumber ? Number(text) : conversionError('string', 'double');
}

function toText(): Overload[] {
  const traversed = { cost: costs.traverse(0) };
  return [
    global('string', [stringParameter], STRING, (value) => value),
    global('string', [bool], STRING, (value) => String(value)),
    global('string', [int], STRING, (value) => String(value)),
    global('string', [uint], STRING, ({ value }) => String(value)),
    global('string', [double], STRING, doubleText),
    global('string', [bytes], STRING, decode, {
      ...traversed,
      size: ([value]) => ({
        ...sizedAs(value?.count ?? 0),
        min: Math.floor((value?.min ?? 0) / 4),
      }),
    }),
    global('string', [timestampParameter], STRING, ({ nanos }) => formatTimestamp(nanos)),
    global('string', [durationParameter], STRING, ({ nanos }) => formatCelDuration(nanos)),
    global('bytes', [bytes], BYTES, (value) => value),
    global('bytes', [stringParameter], BYTES, (text) => utf8Bytes(text), {
      ...traversed,
      size: ([text]) => ({ ...sizedAs((text?.count ?? 0) * 4), min: text?.min ?? 0 }),
    }),
  ];
}

/** Formats a double like Go: the shortest text that parses to the same number. */
export function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) {
    return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  }
  return Object.is(value, -0) ? '-0' : String(value);
}

function decode(value: Uint8Array): Result {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value);
  } catch (error) {
    if (error instanceof TypeError)
      return new EvaluationError('invalid UTF-8 in bytes, cannot convert to string');
    throw error;
  }
}

function toTime(): Overload[] {
  return [
    global('timestamp', [timestampParameter], TIMESTAMP, (value) => value),
    global('timestamp', [stringParameter], TIMESTAMP, (text) => {
      const nanos = /[Tt]/.test(text) ? parseTimestamp(text) : undefined;
      return nanos === undefined
        ? conversionError('string', 'google.protobuf.Timestamp')
        : new Timestamp(nanos);
    }),
    global('timestamp', [int], TIMESTAMP, (seconds) => {
      const nanos = seconds * 10n ** 9n;
      const fits = nanos >= MIN_TIMESTAMP && nanos <= MAX_TIMESTAMP;
      return fits ? new Timestamp(nanos) : new EvaluationError('timestamp overflow');
    }),
    global('duration', [durationParameter], DURATION, (value) => value),
    global('duration', [stringParameter], DURATION, (text) => {
      const nanos = parseDuration(text);
      return nanos === undefined
        ? conversionError('string', 'google.protobuf.Duration')
        : new Duration(nanos);
    }),
  ];
}

const DAY_MS = 86_400_000;

function timeParts(): Overload[] {
  const part = (name: string, read: (date: Date, millis: number) => number): Overload[] => {
    const run = (nanos: bigint, zone?: string): Result => {
      const local = localTime(nanos, zone);
      return local
        ? BigInt(read(local.date, local.millis))
        : new EvaluationError(`unknown time zone ${zone}`);
    };
    return memberWithOptional(
      name,
      [timestampParameter],
      stringParameter,
      INT,
      ({ nanos }, zone, meter) => {
        // Lookups in the time zone database are slow.
        if (zone !== undefined) meter.spend(20);
        return run(nanos, zone);
      },
    );
  };
  const span = (name: string, unit: bigint): Overload =>
    member(name, [durationParameter], INT, ({ nanos }) => nanos / unit);
  return [
    ...part('getFullYear', (date) => date.getUTCFullYear()),
    ...part('getMonth', (date) => date.getUTCMonth()),
    ...part('getDate', (date) => date.getUTCDate()),
    ...part('getDayOfMonth', (date) => date.getUTCDate() - 1),
    ...part('getDayOfWeek', (date) => date.getUTCDay()),
    ...part('getDayOfYear', (date) =>
      Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / DAY_MS),
    ),
    ...part('getHours', (date) => date.getUTCHours()),
    ...part('getMinutes', (date) => date.getUTCMinutes()),
    ...part('getSeconds', (date) => date.getUTCSeconds()),
    ...part('getMilliseconds', (_date, millis) => millis),
    span('getHours', 3600n * 10n ** 9n),
    span('getMinutes', 60n * 10n ** 9n),
    span('getSeconds', 10n ** 9n),
    member('getMilliseconds', [durationParameter], INT, ({ nanos }) => nanos / 10n ** 6n),
  ];
}
