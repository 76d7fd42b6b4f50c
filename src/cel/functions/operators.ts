import { concatBytes } from '../../util/bytes.ts';
import { compare, equals, idOf, itemsById } from '../values/compare.ts';
import type { CostMeter, Overload, Parameter, Size } from '../values/overload.ts';
import {
  A,
  bool,
  bytes,
  sizedAs,
  double,
  durationParameter,
  dyn,
  global,
  int,
  listParameter,
  mapParameter,
  member,
  stringParameter,
  timestampParameter,
  uint,
} from '../values/overload.ts';
import { MAX_DURATION } from '../../util/go-duration.ts';
import { MAX_TIMESTAMP, MIN_TIMESTAMP } from '../values/time.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  INT,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  param,
} from '../values/type.ts';
import type { CelType } from '../values/type.ts';
import type { Result, Value } from '../values/value.ts';
import { Duration, EvaluationError, List, Timestamp, Uint, sizeOf } from '../values/value.ts';

const LISTS = listOf(param('A'));

/** Operators, by their names in the language definition. */
export function operators(): Overload[] {
  return [
    ...arithmetic(),
    ...concatenations(),
    ...timeArithmetic(),
    ...comparisons(),
    ...lookups(),
  ];
}

function arithmetic(): Overload[] {
  const integers = (operator: string, run: (a: bigint, b: bigint) => bigint | EvaluationError) => [
    global(`_${operator}_`, [int, int], INT, (a, b) => asInt(run(a, b))),
    global(`_${operator}_`, [uint, uint], UINT, (a, b) => asUint(run(a.value, b.value))),
  ];
  const doubles = (operator: string, run: (a: number, b: number) => number) =>
    global(`_${operator}_`, [double, double], DOUBLE, (a, b) => run(a, b));
  return [
    ...integers('+', (a, b) => a + b),
    ...integers('-', (a, b) => a - b),
    ...integers('*', (a, b) => a * b),
    ...integers('/', (a, b) => (b === 0n ? new EvaluationError('division by zero') : a / b)),
    ...integers('%', (a, b) => (b === 0n ? new EvaluationError('modulus by zero') : a % b)),
    doubles('+', (a, b) => a + b),
    doubles('-', (a, b) => a - b),
    doubles('*', (a, b) => a * b),
    doubles('/', (a, b) => a / b),
    global('-_', [int], INT, (a) => asInt(-a)),
    global('-_', [double], DOUBLE, (a) => -a),
    global('!_', [bool], BOOL, (a) => !a),
  ];
}

function asInt(value: bigint | EvaluationError): Result {
  if (value instanceof EvaluationError) return value;
  return BigInt.asIntN(64, value) === value ? value : new EvaluationError('integer overflow');
}

function asUint(value: bigint | EvaluationError): Result {
  if (value instanceof EvaluationError) return value;
  const fits = BigInt.asUintN(64, value) === value;
  return fits ? new Uint(value) : new EvaluationError('unsigned integer overflow');
}

const both = ([a, b]: readonly Size[]): Size => ({
  ...sizedAs(
    Math.min(2 ** 64, (a?.count ?? 0) + (b?.count ?? 0)),
    Math.max(a?.item ?? 0, b?.item ?? 0),
  ),
  min: (a?.min ?? a?.count ?? 0) + (b?.min ?? b?.count ?? 0),
});
const TRAVERSAL = 0.1;
const growth = {
  cost: (sizes: readonly Size[]) => Math.ceil(both(sizes).count * TRAVERSAL),
  size: both,
};

function concatenations(): Overload[] {
  return [
    global('_+_', [stringParameter, stringParameter], STRING, (a, b) => a + b, growth),
    global('_+_', [bytes, bytes], BYTES, (a, b) => concatBytes([a, b]), growth),
    global('_+_', [listParameter(param('A')), listParameter(param('A'))], LISTS, join, {
      size: both,
    }),
  ];
}

/** Concatenates two lists: union of sets; the later item of each key in lists of type map. */
function join(a: List, b: List, meter: CostMeter): Result {
  if (a.kind === 'atomic') {
    return new List(a.size + b.size, (index) =>
      index < a.size ? a.at(index) : b.at(index - a.size),
    );
  }
  const merged = itemsById(a, a.kind, meter);
  for (const item of b) {
    const id = idOf(item, a.kind, meter);
    if (a.kind !== 'set' || !merged.has(id)) merged.set(id, item);
  }
  return List.of([...merged.values()], a.kind);
}

function timeArithmetic(): Overload[] {
  return [
    global('_+_', [timestampParameter, durationParameter], TIMESTAMP, (a, b) =>
      asTimestamp(a.nanos + b.nanos),
    ),
    global('_+_', [durationParameter, timestampParameter], TIMESTAMP, (a, b) =>
      asTimestamp(a.nanos + b.nanos),
    ),
    global('_+_', [durationParameter, durationParameter], DURATION, (a, b) =>
      asDuration(a.nanos + b.nanos),
    ),
    global('_-_', [timestampParameter, timestampParameter], DURATION, (a, b) =>
      asDuration(a.nanos - b.nanos),
    ),
    global('_-_', [timestampParameter, durationParameter], TIMESTAMP, (a, b) =>
      asTimestamp(a.nanos - b.nanos),
    ),
    global('_-_', [durationParameter, durationParameter], DURATION, (a, b) =>
      asDuration(a.nanos - b.nanos),
    ),
  ];
}

function asTimestamp(nanos: bigint): Result {
  const fits = nanos >= MIN_TIMESTAMP && nanos <= MAX_TIMESTAMP;
  return fits ? new Timestamp(nanos) : new EvaluationError('timestamp overflow');
}

function asDuration(nanos: bigint): Result {
  const fits = nanos <= MAX_DURATION && nanos >= -MAX_DURATION;
  return fits ? new Duration(nanos) : new EvaluationError('duration overflow');
}

/** Size of the smaller argument. */
const smaller = ([a, b]: readonly Size[]): number =>
  Math.ceil(Math.min(a?.count ?? 1, b?.count ?? 1) * TRAVERSAL);

function comparisons(): Overload[] {
  const orders: readonly (readonly [operator: string, holds: (order: number) => boolean])[] = [
    ['<', (order) => order < 0],
    ['<=', (order) => order <= 0],
    ['>', (order) => order > 0],
    ['>=', (order) => order >= 0],
  ];
  const numbers: readonly Parameter[] = [int, uint, double];
  const pairs: (readonly [Parameter, Parameter])[] = [
    ...numbers.flatMap((a) => numbers.map((b) => [a, b] as const)),
    [bool, bool],
    [stringParameter, stringParameter],
    [bytes, bytes],
    [timestampParameter, timestampParameter],
    [durationParameter, durationParameter],
  ];
  const cost = { cost: smaller };
  return [
    ...orders.flatMap(([operator, holds]) =>
      pairs.map(([a, b]) =>
        global(
          `_${operator}_`,
          [a, b],
          BOOL,
          (x, y) => {
            const order = compare(x, y);
            return order instanceof EvaluationError ? order : holds(order);
          },
          a === stringParameter || a === bytes ? cost : {},
        ),
      ),
    ),
    global('_==_', [A, A], BOOL, equals, cost),
    global('_!=_', [A, A], BOOL, (a, b, meter) => negate(equals(a, b, meter)), cost),
  ];
}

function negate(equal: boolean | EvaluationError): Result {
  return equal instanceof EvaluationError ? equal : !equal;
}

function lookups(): Overload[] {
  const item: CelType = param('A');
  const sized: readonly Parameter[] = [stringParameter, bytes, listParameter(item), mapParameter];
  return [
    global('_[_]', [listParameter(item), int], item, itemAt),
    global(
      '_[_]',
      [mapParameter, A],
      param('B'),
      (entries, key) => entries.get(key) ?? noSuchKey(key),
    ),
    global(
      '@in',
      [A, listParameter(item)],
      BOOL,
      (wanted, items, meter) => contains(items, wanted, meter),
      {
        cost: ([, items]) => items?.count ?? 0,
      },
    ),
    global('@in', [A, mapParameter], BOOL, (key, entries) => entries.get(key) !== undefined),
    ...sized.flatMap((type) => [
      global('size', [type], INT, (value) => BigInt(sizeOf(value))),
      member('size', [type], INT, (value) => BigInt(sizeOf(value))),
    ]),
    global('dyn', [dyn], { kind: 'dyn' }, (value) => value),
  ];
}

export function itemAt(items: List, index: bigint): Result {
  if (index < 0n || index >= BigInt(items.size)) {
    return new EvaluationError(`index out of bounds: ${index}`);
  }
  return items.at(Number(index));
}

export function noSuchKey(key: Value): EvaluationError {
  const text = typeof key === 'object' && key !== null ? '' : String(key);
  return new EvaluationError(`no such key: ${text}`);
}

export function contains(items: List, wanted: Value, meter: CostMeter): Result {
  let failure: EvaluationError | undefined;
  for (const item of items) {
    const equal = equals(item, wanted, meter);
    if (equal === true) return true;
    if (equal instanceof EvaluationError) failure ??= equal;
  }
  return failure ?? false;
}
