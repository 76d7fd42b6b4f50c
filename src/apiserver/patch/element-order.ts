import { own } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';

/**
 * The order of a merged list. Items named by `order` come in that order; the others keep the order
 * of `live`, and each stands before the first ordered item that it stood before there.
 *
 * @param mergeKey the member that tells objects apart; undefined in a list of scalars
 */
export function orderItems(
  items: readonly unknown[],
  order: readonly unknown[],
  live: readonly unknown[],
  mergeKey: string | undefined,
): readonly unknown[] {
  const identity = (item: unknown) =>
    mergeKey !== undefined && isRecord(item) ? own(item, mergeKey) : item;
  const wanted = placesOf(order.map(identity));
  const before = placesOf(live.map(identity));
  const place = (places: ReadonlyMap<unknown, number>, item: unknown) =>
    places.get(identity(item)) ?? Number.MAX_SAFE_INTEGER;
  const inOrder = (places: ReadonlyMap<unknown, number>) => (a: unknown, b: unknown) =>
    place(places, a) - place(places, b);

  const ordered = items.filter((item) => wanted.has(identity(item))).sort(inOrder(wanted));
  const others = items.filter((item) => !wanted.has(identity(item))).sort(inOrder(before));
  const result: unknown[] = [];
  let next = 0;
  for (const item of others) {
    while (next < ordered.length && !precedes(before, identity(item), identity(ordered[next]))) {
      result.push(ordered[next++]);
    }
    result.push(item);
  }
  return [...result, ...ordered.slice(next)];
}

/** True if both were in the live list, and `a` stood before `b`. */
function precedes(before: ReadonlyMap<unknown, number>, a: unknown, b: unknown): boolean {
  const [left, right] = [before.get(a), before.get(b)];
  return left !== undefined && right !== undefined && left < right;
}

function placesOf(identities: readonly unknown[]): ReadonlyMap<unknown, number> {
  const places = new Map<unknown, number>();
  for (const [index, identity] of identities.entries()) {
    if (!places.has(identity)) places.set(identity, index);
  }
  return places;
}
