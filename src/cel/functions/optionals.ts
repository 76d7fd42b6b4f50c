import type { Overload } from '../values/overload.ts';
import { A, dyn, global, int, list, map, member, optional } from '../values/overload.ts';
import { BOOL, optionalOf, param } from '../values/type.ts';
import type { Result, Value } from '../values/value.ts';
import { Duration, Failure, List, Optional, Uint, isDictionary } from '../values/value.ts';
import { itemAt } from './operators.ts';

const maybe = optional(param('A'));
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
      value === undefined ? new Failure('optional.none() dereference') : value,
    ),
    member('or', [maybe, maybe], MAYBE, (first, second) =>
      first.value === undefined ? second : first,
    ),
    member('orValue', [maybe, A], param('A'), ({ value }, other) => value ?? absent(value, other)),
    global('_[?_]', [list(param('A')), int], MAYBE, (items, index) => found(inRange(items, index))),
    global('_[?_]', [map, A], optionalOf(param('B')), (entries, key) => found(entries.get(key))),
    global('_[?_]', [optional(dyn.type), dyn], optionalOf(dyn.type), ({ value }, key) =>
      lookUp(value, key),
    ),
    global('_[_]', [optional(dyn.type), dyn], optionalOf(dyn.type), ({ value }, key) =>
      lookUp(value, key),
    ),
  ];
}

/** Handles `null` as an ordinary value. */
function absent(value: null | undefined, other: Value): Value {
  return value === undefined ? other : null;
}

function inRange(items: List, index: bigint): Result | undefined {
  return index >= 0n && index < BigInt(items.size) ? itemAt(items, index) : undefined;
}

function lookUp(value: Value | undefined, key: Value): Result {
  if (value === undefined) return Optional.none;
  if (value instanceof List && typeof key === 'bigint') return found(inRange(value, key));
  return isDictionary(value) ? found(value.get(key)) : new Failure('no such overload');
}

export function found(value: Result | undefined): Result {
  if (value === undefined) return Optional.none;
  return value instanceof Failure ? value : new Optional(value);
}

function isZero(value: Value): boolean {
  if (value === null || value === false || value === 0 || value === 0n || value === '') return true;
  if (value instanceof Uint) return value.value === 0n;
  if (value instanceof Duration) return value.nanos === 0n;
  if (value instanceof Uint8Array) return value.length === 0;
  return (value instanceof List || isDictionary(value)) && value.size === 0;
}
