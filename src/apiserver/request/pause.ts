import type { ReceivedRequest } from './received-request.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import type { HttpRequest } from '../../util/http.ts';

/** Length of a body, or weight of an object, from which its steps are separate. */
const LARGE = 128 * 1024;

/** Weight of a value besides its text. */
const VALUE_WEIGHT = 8;

/** Rounds of the event loop without a step, after which a write waits for something else, such as a webhook. */
const IDLE_ROUNDS = 3;

/** The large write whose turn it is. */
let holder: { readonly request: HttpRequest; steps: number } | undefined;

/**
 * Lets other requests proceed between two steps of a write. Each step of a large object takes some time. Returns no
 * promise for others. Large writes take turns, because each needs much memory.
 *
 * @param object the stored object, if the step depends on it
 */
export function pause(
  { request }: Pick<ReceivedRequest, 'request'>,
  object?: StoredObject,
): Promise<void> | undefined {
  const { body = '' } = request;
  const isLarge = body.length >= LARGE || (object && weightLeft(object, LARGE) < 0);
  return isLarge ? turnOf(request) : undefined;
}

/** Ends the turn of a request. */
export function endTurn({ request }: Pick<ReceivedRequest, 'request'>): void {
  if (holder?.request === request) holder = undefined;
}

async function turnOf(request: HttpRequest): Promise<void> {
  let seen: { readonly by: typeof holder; readonly steps: number } | undefined;
  let idleRounds = 0;
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    if (holder?.request === request) {
      holder.steps++;
      return;
    }
    const isIdle = seen?.by === holder && seen?.steps === holder?.steps;
    idleRounds = isIdle ? idleRounds + 1 : 0;
    if (!holder || idleRounds > IDLE_ROUNDS) {
      holder = { request, steps: 0 };
      return;
    }
    seen = { by: holder, steps: holder.steps };
  }
}

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
