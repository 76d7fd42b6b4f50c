import type { JsonObject } from './schema/json-value.ts';
import { own } from './schema/json-value.ts';
import { isRecord } from '../util/values.ts';
import type { Change } from './watch-history.ts';

/** What a budget needs of a history. */
interface Holder {
  /** What its changes hold, in bytes, about. */
  readonly bytes: number;
  /** Forgets the oldest changes, at least one, that hold `bytes` together; false if there are none. */
  forgetOldest(bytes: number): boolean;
}

/** After histories had to forget, this part of the budget is in use, so that they need not soon. */
const KEPT = 3 / 4;

/**
 * The memory that the histories of all resources share. When it is used up, the largest history
 * forgets its oldest changes: a resource with large objects or many writes does not shorten the
 * history of the others.
 */
export class HistoryBudget {
  readonly #limit: number;
  readonly #holders = new Set<Holder>();
  #used = 0;

  /** @param limit in bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What all histories hold, in bytes, about. */
  get used(): number {
    return this.#used;
  }

  join(holder: Holder): void {
    this.#holders.add(holder);
  }

  /** A history holds so many bytes more, or less. */
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

/** Of a change itself, of a container and of a member, in bytes: about what V8 takes. */
const CHANGE_BYTES = 200;
const CONTAINER_BYTES = 48;
const MEMBER_BYTES = 24;

/**
 * What a history holds by keeping `change`, in bytes: the parts of the previous object that the next
 * one does not share. The store holds the next one anyway, or a later change is charged for it.
 */
export function bytesOf({ object, previous, removed }: Change): number {
  return CHANGE_BYTES + bytesBeside(previous, removed ? undefined : object);
}

/** Recursive: how deeply objects are nested was bounded on arrival. */
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
