import type { ReceivedRequest } from './received-request.ts';
import { oncePerObject } from '../../util/memo.ts';
import type { StoredObject } from '../objects/resource-definition.ts';

/** Length of a body, or weight of an object, from which its steps are separate. */
const LARGE = 128 * 1024;

/** Weight of a value besides its text. */
const VALUE_WEIGHT = 8;

/**
 * Lets other requests proceed between two steps of a write. Each step of a large object takes some time. Returns no
 * promise for others.
 *
 * @param object the stored object, if the step depends on it
 */
export function pause(
  { request, turns }: Pick<ReceivedRequest, 'request' | 'turns'>,
  object?: StoredObject,
): Promise<void> | undefined {
  const { body = '' } = request;
  const isLarge =
    body.length >= LARGE || widened.has(request) || (object !== undefined && isHeavy(object));
  return isLarge ? turns.next(request) : undefined;
}

/** Requests with a small body and a large result. */
const widened = new WeakSet<ReceivedRequest['request']>();

/** Weight of the parts that a step handles. */
const STEP_WEIGHT = 32 * 1024;

/**
 * Runs steps, which yield the weight of what they have done, with a pause after many of them. All later steps of a request
 * whose steps have a large weight are separate, too.
 */
export async function runSteps<T>(
  call: Pick<ReceivedRequest, 'request' | 'turns'>,
  steps: Iterator<number, T>,
  object?: StoredObject,
): Promise<T> {
  let weight = 0;
  let total = 0;
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    weight += value;
    if (weight < STEP_WEIGHT) continue;
    total += weight;
    weight = 0;
    if (total >= LARGE) widened.add(call.request);
    await pause(call, object);
  }
}

const isHeavy = oncePerObject((object: StoredObject) => weightLeft(object, LARGE) < 0);

/** Returns `left` without the weight of a value, its number of characters and parts. Stops below 0. */
export function weightLeft(value: unknown, left: number): number {
  if (typeof value === 'string') return left - value.length;
  if (typeof value !== 'object' || value === null) return left;
  let rest = left;
  if (Array.isArray(value)) {
    for (const item of value) {
      rest = weightLeft(item, rest - VALUE_WEIGHT);
      if (rest < 0) return rest;
    }
    return rest;
  }
  for (const key in value) {
    rest = weightLeft((value as Record<string, unknown>)[key], rest - key.length - VALUE_WEIGHT);
    if (rest < 0) return rest;
  }
  return rest;
}
