import type { Overload } from '../values/overload.ts';
import {
  A,
  global,
  int,
  listParameter,
  mapParameter,
  member,
  optionalParameter,
} from '../values/overload.ts';
import { BOOL, listOf, mapOf, optionalOf, param } from '../values/type.ts';
import type { Result, Value } from '../values/value.ts';
import { Duration, EvaluationError, List, Optional, Uint, isDictionary } from '../values/value.ts';
import { itemAt } from './operators.ts';

const maybe = optionalParameter(param('A'));
const items = listParameter(param('A'));
const MAYBE = optionalOf(param('A'));

/** Functions of optional values: `oldSelf` of a rule with `optionalOldSelf`, `a.?b`, `a[?0]`. */
export function optionals(): Overload[] {
  return [
    global('optional.of', [A], MAYBE, (value) => new Optional(value)),
    global('optional.ofNonZeroValue', [A], MAYBE, (value) =>
      isZero(value) ? Optional.none : new Optional(value),
    ),
    global('optional.none', [], MAYBE, () => Optional.none),
    member('hasValue', [maybe], BOOL, ({ value }) => value !== undefined),
    member('value', [maybe], param('A'), ({ value }) =>
      value === undefined ? new EvaluationError('optional.none() dereference') : value,
    ),
    member('or', [maybe, maybe], MAYBE, (first, second) =>
      first.value === undefined ? second : first,
    ),
    member('orValue', [maybe, A], param('A'), ({ value }, other) => value ?? absent(value, other)),
    global('_[?_]', [items, int], MAYBE, (all, index) => found(inRange(all, index))),
    global('_[?_]', [mapParameter, A], optionalOf(param('B')), (entries, key) =>
      found(entries.get(key)),
    ),
    ...['_[?_]', '_[_]'].flatMap((name) => [
      global(name, [optionalParameter(listOf(param('A'))), int], MAYBE, lookUp),
      global(
        name,
        [optionalParameter(mapOf(param('A'), param('B'))), A],
        optionalOf(param('B')),
        lookUp,
      ),
    ]),
    member('first', [items], MAYBE, (all) => found(inRange(all, 0n))),
    member('last', [items], MAYBE, (all) => found(inRange(all, BigInt(all.size) - 1n))),
    global('optional.unwrap', [listParameter(MAYBE)], listOf(param('A')), unwrap),
    member('unwrapOpt', [listParameter(MAYBE)], listOf(param('A')), unwrap),
  ];
}

/** Handles `null` as an ordinary value. */
function absent(value: null | undefined, other: Value): Value {
  return value === undefined ? other : null;
}

function inRange(items: List, index: bigint): Result | undefined {
  return index >= 0n && index < BigInt(items.size) ? itemAt(items, index) : undefined;
}

/** Returns the values of the optionals that have one. */
function unwrap(optionals: List): Result {
  const values: Value[] = [];
  for (const each of optionals) {
    if (each instanceof EvaluationError) return each;
    if (!(each instanceof Optional)) return new EvaluationError('no such overload');
    if (each.value !== undefined) values.push(each.value);
  }
  return List.of(values);
}

function lookUp({ value }: Optional, key: Value): Result {
  if (value === undefined) return Optional.none;
  if (value instanceof List && typeof key === 'bigint') return found(inRange(value, key));
  return isDictionary(value) ? found(value.get(key)) : new EvaluationError('no such overload');
}

export function found(value: Result | undefined): Result {
  if (value === undefined) return Optional.none;
  return value instanceof EvaluationError ? value : new Optional(value);
}

function isZero(value: Value): boolean {
  if (value === null || value === false || value === 0 || value === 0n || value === '') return true;
  if (value instanceof Uint) return value.value === 0n;
  if (value instanceof Duration) return value.nanos === 0n;
  if (value instanceof Uint8Array) return value.length === 0;
  return (value instanceof List || isDictionary(value)) && value.size === 0;
}
