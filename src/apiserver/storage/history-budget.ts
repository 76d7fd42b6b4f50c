import type { JsonObject } from '../../util/json-value.ts';
import { own } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';

/** The part of a history that the budget uses. */
interface Holder {
  /** Approximate memory of its changes, in bytes. */
  readonly bytes: number;
  /** Drops the oldest changes, at least one, up to `bytes` in total. Returns false if there are none. */
  forgetOldest(bytes: number): boolean;
}

/** Part of the budget that remains in use after changes were dropped. */
const KEPT = 3 / 4;

/**
 * The shared memory of the histories of all resources. When it is exhausted, the largest history drops
 * its oldest changes, so that a resource with large objects or many writes does not shorten the
 * history of others.
 */
export class HistoryBudget {
  readonly #limit: number;
  readonly #holders = new Set<Holder>();
  #used = 0;

  /** @param limit in bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Approximate memory of all histories, in bytes. */
  get used(): number {
    return this.#used;
  }

  join(holder: Holder): void {
    this.#holders.add(holder);
  }

  /** Adds `bytes` to the size of all histories; a negative number if a history has shrunk. */
  charge(bytes: number): void {
    this.#used += bytes;
    if (this.#used <= this.#limit || bytes < 0) return;
    const target = this.#limit * KEPT;
    while (this.#used > target) {
      const [first, ...others] = this.#holders;
      if (!first) return;
      const largest = others.reduce((most, each) => (each.bytes > most.bytes ? each : most), first);
      if (!largest.forgetOldest(this.#used - target)) return;
    }
  }
}

/** The states of an object before and after a write. */
interface StateChange {
  readonly object: unknown;
  readonly previous: unknown;
  readonly removed: boolean;
}

/** Approximate V8 memory of a change, a container and a member, in bytes. */
const CHANGE_BYTES = 200;
const CONTAINER_BYTES = 48;
const MEMBER_BYTES = 24;

/**
 * Returns the memory that `change` keeps alive, in bytes: the parts of the previous object that the
 * next one does not share. The next object belongs to the store or to a later change.
 */
export function bytesOf({ object, previous, removed }: StateChange): number {
  return CHANGE_BYTES + bytesBeside(previous, removed ? undefined : object);
}

/** Recursive; the decoder has limited the depth. */
function bytesBeside(value: unknown, shared: unknown): number {
  if (value === shared) return 0;
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = CONTAINER_BYTES;
  if (Array.isArray(value)) {
    const other: readonly unknown[] = Array.isArray(shared) ? shared : [];
    for (let index = 0; index < value.length; index++) {
      bytes += MEMBER_BYTES + bytesBeside(value[index], other[index]);
    }
    return bytes;
  }
  const members = value as JsonObject;
  const other = isRecord(shared) ? shared : {};
  for (const key of Object.keys(members)) {
    bytes += MEMBER_BYTES + bytesBeside(members[key], own(other, key));
  }
  return bytes;
}
