import { compareBytes, toBase64, utf8Bytes } from '../../util/bytes.ts';
import { equalJson } from '../../api/equal.ts';
import type { CostMeter } from './overload.ts';
import type { Dictionary, ListKind, Result, Value } from './value.ts';
import {
  Duration,
  EvaluationError,
  List,
  NO_OVERLOAD,
  Opaque,
  Optional,
  Timestamp,
  TypeValue,
  Uint,
  isDictionary,
  textSize,
} from './value.ts';

/** Cost of comparing one pair of values. Upstream charges only for the size of the outermost pair. */
const COST = 0.5;

/** Whether two values are equal. Numbers are compared by value, also across types. */
export function equals(a: Result, b: Result, meter: CostMeter): boolean | EvaluationError {
  meter.spend(COST);
  if (a instanceof EvaluationError) return a;
  if (b instanceof EvaluationError) return b;
  const [left, right] = [numeric(a), numeric(b)];
  if (left !== undefined || right !== undefined) {
    return left !== undefined && right !== undefined && sameNumber(left, right);
  }
  if (typeof a === 'string' && typeof b === 'string') return a === b;
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b) === 0;
  if (a instanceof Timestamp && b instanceof Timestamp) return a.nanos === b.nanos;
  if (a instanceof Duration && b instanceof Duration) return a.nanos === b.nanos;
  if (a instanceof TypeValue && b instanceof TypeValue) return a.name === b.name;
  if (a instanceof Opaque && b instanceof Opaque) {
    return a.constructor === b.constructor && a.identity === b.identity;
  }
  if (a instanceof Optional && b instanceof Optional) {
    if (a.value === undefined || b.value === undefined) return a.value === b.value;
    return equals(a.value, b.value, meter);
  }
  if (a instanceof List && b instanceof List) return equalLists(a, b, meter);
  if (isDictionary(a) && isDictionary(b)) return equalMaps(a, b, meter);
  return a === b;
}

function equalLists(a: List, b: List, meter: CostMeter): boolean | EvaluationError {
  if (a.size !== b.size) return false;
  const kind = a.kind !== 'atomic' ? a.kind : b.kind;
  const others = kind === 'atomic' ? undefined : itemsById(b, kind, meter);
  for (let index = 0; index < a.size; index++) {
    const item = a.at(index);
    const other = others ? others.get(idOf(item, kind, meter)) : b.at(index);
    if (other === undefined) return false;
    const equal = equals(item, other, meter);
    if (equal !== true) return equal;
  }
  return true;
}

/** Returns the items of a set, or of a list of type map, by their identity. */
export function itemsById(list: List, kind: ListKind, meter: CostMeter): Map<string, Result> {
  return new Map(Array.from(list, (item) => [idOf(item, kind, meter), item]));
}

export function idOf(item: Result, kind: ListKind, meter: CostMeter): string {
  const text =
    typeof kind === 'object'
      ? kind.keys.map((key) => idText(memberOf(item, key))).join()
      : idText(item);
  meter.spend(1 + text.length * 0.01);
  return text;
}

/** A text that is the same exactly for equal values. */
function idText(value: Result): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (value instanceof EvaluationError) return value.message;
  const number = numeric(value);
  if (number !== undefined) return String(number);
  if (value instanceof List) return `[${Array.from(value, idText).join()}]`;
  if (isDictionary(value)) {
    const members = Array.from(
      value.keys(),
      (key) => `${idText(key)}:${idText(value.get(key) ?? null)}`,
    );
    return `{${members.sort().join()}}`;
  }
  if (value instanceof Timestamp || value instanceof Duration) return `t${value.nanos}`;
  if (value instanceof Uint8Array) return `b${toBase64(value)}`;
  if (value instanceof Opaque) return `o${value.identity}`;
  if (value instanceof Optional) return `?${value.value === undefined ? '' : idText(value.value)}`;
  return value instanceof TypeValue ? value.name : '';
}

function memberOf(value: Result, key: string): Result {
  return isDictionary(value) ? (value.get(key) ?? null) : null;
}

function equalMaps(a: Dictionary, b: Dictionary, meter: CostMeter): boolean | EvaluationError {
  if (a.size !== b.size) return false;
  for (const key of a.keys()) {
    const [mine, other] = [a.get(key), b.get(key)];
    if (mine === undefined || other === undefined) {
      if (mine !== other) return false;
      continue;
    }
    const equal = equals(mine, other, meter);
    if (equal !== true) return equal;
  }
  return equalJson(a.unseen?.(), b.unseen?.());
}

/** Orders two values like a comparator. Returns a failure if they have no order. NaN is unordered. */
export function compare(a: Value, b: Value): number | EvaluationError {
  const [left, right] = [numeric(a), numeric(b)];
  if (left !== undefined && right !== undefined) {
    if (Number.isNaN(left) || Number.isNaN(right)) return Number.NaN;
    return left < right ? -1 : left > right ? 1 : 0;
  }
  if (typeof a === 'string' && typeof b === 'string') return compareTexts(a, b);
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b);
  if (a instanceof Timestamp && b instanceof Timestamp) return order(a.nanos, b.nanos);
  if (a instanceof Duration && b instanceof Duration) return order(a.nanos, b.nanos);
  return NO_OVERLOAD;
}

/** Compares by code point like UTF-8. UTF-16 order differs beyond the basic plane. */
function compareTexts(a: string, b: string): number {
  if (textSize(a) === a.length && textSize(b) === b.length) return a < b ? -1 : a > b ? 1 : 0;
  return compareBytes(utf8Bytes(a), utf8Bytes(b));
}

function order(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function numeric(value: Value): bigint | number | undefined {
  if (value instanceof Uint) return value.value;
  return typeof value === 'bigint' || typeof value === 'number' ? value : undefined;
}

function sameNumber(a: bigint | number, b: bigint | number): boolean {
  // `===` does not compare a bigint with a number by value.
  return !(a < b) && !(a > b) && !Number.isNaN(a) && !Number.isNaN(b);
}
