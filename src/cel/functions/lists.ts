import { compare, equals, idOf } from '../values/compare.ts';
import type { CostMeter, Overload, Parameter, Size } from '../values/overload.ts';
import {
  A,
  costs,
  sizedAs,
  double,
  durationParameter,
  global,
  int,
  listParameter,
  member,
  uint,
} from '../values/overload.ts';
import type { CelType } from '../values/type.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  param,
} from '../values/type.ts';
import type { Result, Value } from '../values/value.ts';
import { Duration, EvaluationError, List, Uint } from '../values/value.ts';
import { contains } from './operators.ts';

const items = listParameter(param('A'));
const LISTS = listOf(param('A'));
const SORTABLE: readonly CelType[] = [INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES];

/** Functions of lists and of sets, which are lists too. */
export function lists(): Overload[] {
  const scan = { cost: costs.items };
  return [
    ...sums(),
    ...SORTABLE.flatMap((type) => [
      member('isSorted', [listParameter(type)], BOOL, isSorted, scan),
      member('max', [listParameter(type)], type, (values) => extreme(values, 1, 'max'), scan),
      member('min', [listParameter(type)], type, (values) => extreme(values, -1, 'min'), scan),
      member(
        'sort',
        [listParameter(type)],
        listOf(type),
        (values) => sortBy(values, values),
        squared(type === STRING || type === BYTES ? 2.1 : 2),
      ),
    ]),
    member('indexOf', [items, A], INT, indexOf(false), scan),
    member('lastIndexOf', [items, A], INT, indexOf(true), scan),
    ...copies(),
    ...sets(),
  ];
}

function sums(): Overload[] {
  const scan = { cost: costs.items };
  const total = <V extends Value>(
    item: Parameter<V>,
    zero: V,
    add: (a: V, b: V) => V | EvaluationError,
  ) =>
    member(
      'sum',
      [listParameter(item.type)],
      item.type,
      (values) => {
        let sum = zero;
        for (const each of values) {
          if (each instanceof EvaluationError) return each;
          const value = item.read(each);
          const next =
            value === undefined ? new EvaluationError('no such overload') : add(sum, value);
          if (next instanceof EvaluationError) return next;
          sum = next;
        }
        return sum;
      },
      scan,
    );
  const fits = (value: bigint) =>
    BigInt.asIntN(64, value) === value ? value : new EvaluationError('integer overflow');
  return [
    total(int, 0n, (a, b) => fits(a + b)),
    total(uint, new Uint(0n), (a, b) => new Uint(BigInt.asUintN(64, a.value + b.value))),
    total(double, 0, (a, b) => a + b),
    total(durationParameter, new Duration(0n), (a, b) => new Duration(a.nanos + b.nanos)),
  ];
}

function isSorted(values: List): Result {
  for (let index = 1; index < values.size; index++) {
    const order = orderOf(values.at(index - 1), values.at(index));
    if (order instanceof EvaluationError) return order;
    if (order > 0) return false;
  }
  return true;
}

function orderOf(a: Result, b: Result): number | EvaluationError {
  if (a instanceof EvaluationError) return a;
  return b instanceof EvaluationError ? b : compare(a, b);
}

function extreme(values: List, sign: 1 | -1, name: string): Result {
  if (values.size === 0) return new EvaluationError(`${name} called on empty list`);
  let best = values.at(0);
  for (const value of values) {
    const order = orderOf(value, best);
    if (order instanceof EvaluationError) return order;
    if (order * sign > 0) best = value;
  }
  return best;
}

function indexOf(last: boolean) {
  return (values: List, wanted: Value, meter: CostMeter): Result => {
    for (let step = 0; step < values.size; step++) {
      const index = last ? values.size - 1 - step : step;
      if (equals(values.at(index), wanted, meter) === true) return BigInt(index);
    }
    return -1n;
  };
}

/** Sorts `values` by the `keys` with the same indices. */
export function sortBy(values: List, keys: List): Result {
  const pairs = Array.from(values, (value, index) => [value, keys.at(index)] as const);
  let failure: EvaluationError | undefined;
  pairs.sort(([, a], [, b]) => {
    const order = orderOf(a, b);
    if (order instanceof EvaluationError) {
      failure ??= order;
      return 0;
    }
    return order;
  });
  return failure ?? List.of(pairs.map(([value]) => value));
}

/** Options of a function that compares the items of a list with each other. */
const squared = (factor: number) => ({
  cost: ([values]: readonly Size[]) => 11 + Math.ceil((values?.count ?? 0) ** 2 * factor),
  size: ([values]: readonly Size[]) => ({
    ...sizedAs((values?.count ?? 0) ** 2),
    min: (values?.min ?? 0) ** 2,
  }),
});

function copies(): Overload[] {
  const allocated = {
    cost: ([values]: readonly Size[]) => 11 + (values?.count ?? 0),
    size: ([values]: readonly Size[]) => values ?? sizedAs(0),
  };
  return [
    member(
      'slice',
      [items, int, int],
      LISTS,
      (values, start, end) => {
        if (start < 0n || end < 0n)
          return new EvaluationError(
            `cannot slice(${start}, ${end}), negative indexes not supported`,
          );
        if (start > end)
          return new EvaluationError(
            `cannot slice(${start}, ${end}), start index must be less than or equal to end index`,
          );
        if (end > BigInt(values.size))
          return new EvaluationError(
            `cannot slice(${start}, ${end}), list is length ${values.size}`,
          );
        return List.of([...values].slice(Number(start), Number(end)));
      },
      {
        cost: allocated.cost,
        estimatedCost: (sizes) => 11 + sliceSize(sizes),
        size: (sizes) => sizedAs(sliceSize(sizes)),
      },
    ),
    member('reverse', [items], LISTS, (values) => List.of([...values].toReversed()), allocated),
    member(
      'distinct',
      [items],
      LISTS,
      (values, meter) => {
        const seen = new Map<string, Result>();
        for (const value of values) {
          const id = idOf(value, 'set', meter);
          if (!seen.has(id)) seen.set(id, value);
        }
        return List.of([...seen.values()]);
      },
      squared(2),
    ),
    member(
      'flatten',
      [listParameter(listOf(param('A')))],
      LISTS,
      (values, meter) => flatten(values, 1, meter),
      allocated,
    ),
    member(
      'flatten',
      [listParameter(DYN), int],
      listOf(DYN),
      (values, depth, meter) =>
        depth < 0n
          ? new EvaluationError('level must be non-negative')
          : flatten(values, Math.min(Number(depth), 100), meter),
      {
        ...allocated,
        estimatedCost: ([values, depth]) => 11 + (values?.count ?? 0) * (depth?.value ?? UNBOUNDED),
      },
    ),
    global(
      'lists.range',
      [int],
      listOf(INT),
      (end, meter) => {
        if (end < 0n) return new EvaluationError(`lists.range: negative size: ${end}`);
        // Charged before the list is created.
        meter.spend(Number(end));
        return new List(Number(end), (index) => BigInt(index));
      },
      {
        cost: () => 11,
        estimatedCost: ([end]) => 11 + (end?.value ?? UNBOUNDED),
        size: ([end]) => sizedAs(end?.value ?? UNBOUNDED),
      },
    ),
  ];
}

/** Size that a number determines which is not known. */
const UNBOUNDED = 2 ** 64;

function sliceSize([values, start, end]: readonly Size[]): number {
  return Math.max(0, (end?.value ?? values?.count ?? 0) - (start?.value ?? 0));
}

function flatten(values: List, depth: number, meter: CostMeter): Result {
  const flat: Result[] = [];
  for (const value of values) {
    meter.spend(0.5);
    if (!(value instanceof List)) {
      flat.push(value);
      continue;
    }
    const inner = depth > 1 ? flatten(value, depth - 1, meter) : value;
    if (!(inner instanceof List)) return inner;
    for (const item of inner) {
      meter.spend(0.5);
      flat.push(item);
    }
  }
  return List.of(flat);
}

function sets(): Overload[] {
  const pair: readonly [Parameter<List>, Parameter<List>] = [items, items];
  const cost = (times: number) => ({
    cost: ([a, b]: readonly Size[]) => 1 + (a?.count ?? 0) * (b?.count ?? 0) * times,
  });
  const all = (values: List, others: List, meter: CostMeter): Result => {
    for (const value of others) {
      if (value instanceof EvaluationError) return value;
      const found = contains(values, value, meter);
      if (found !== true) return found;
    }
    return true;
  };
  return [
    global('sets.contains', pair, BOOL, all, cost(1)),
    global(
      'sets.equivalent',
      pair,
      BOOL,
      (a, b, meter) => {
        const there = all(a, b, meter);
        return there === true ? all(b, a, meter) : there;
      },
      cost(2),
    ),
    global(
      'sets.intersects',
      pair,
      BOOL,
      (a, b, meter) => {
        for (const value of b) {
          if (value instanceof EvaluationError) return value;
          const found = contains(a, value, meter);
          if (found !== false) return found;
        }
        return false;
      },
      cost(1),
    ),
  ];
}
