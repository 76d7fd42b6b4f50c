import { IndexedHeap } from '../util/indexed-heap.ts';

/**
 * How often in a row a priority may be passed over while it has keys: then it gets one turn, however
 * much of higher priority waits.
 */
export const AGEING_TURNS = 10;

/** One priority: its tenants, the one whose turn is next in front. Never empty. */
interface Level<K> {
  readonly priority: number;
  readonly tenants: IndexedHeap<string, Tenant<K>>;
  /** Turns that went to other levels since this one had its last. */
  passedOver: number;
}

/** A tenant that has keys in one level, oldest in front. */
interface Tenant<K> {
  readonly turn: number;
  readonly keys: IndexedHeap<K, number>;
}

/**
 * Keys that may be handed out, in the order in which they will be:
 *
 * 1. Higher priority first. So that lower ones never starve they age: a priority that was passed
 *    over `AGEING_TURNS` times gets the next turn (the most often passed over, if several were), so
 *    each of p priorities in use gets at least one in `AGEING_TURNS + p` turns. The measure is
 *    turns, not time: after a restart a flood of low keys grows old together, and would by time
 *    overtake fresh changes together.
 * 2. Within a priority the tenants take turns, so that one with ten thousand keys delays another
 *    with one by one key. A tenant that comes (again) goes to the end of the round.
 * 3. Within a tenant, first in first out.
 *
 * Every operation costs O(log n) for n keys, and O(p); p is two unless callers invent priorities.
 */
export class ReadyKeys<K> {
  /** Highest priority first. */
  readonly #levels: Level<K>[] = [];
  /** Numbers both turns and arrivals; only their order counts. */
  #sequence = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Puts a key that is not in here at the end of its tenant's line. */
  add(key: K, priority: number, tenant: string): void {
    const { tenants } = this.#levelOf(priority);
    const line = tenants.get(tenant) ?? {
      turn: this.#sequence++,
      keys: new IndexedHeap<K, number>((a, b) => a < b),
    };
    line.keys.set(key, this.#sequence++);
    if (line.keys.size === 1) tenants.set(tenant, line);
    this.#size++;
  }

  /** Takes a key out again, from where it was added. */
  remove(key: K, priority: number, tenant: string): void {
    const level = this.#levels.find((level) => level.priority === priority);
    const line = level?.tenants.get(tenant);
    if (!level || !line?.keys.delete(key)) return;
    this.#size--;
    if (line.keys.size === 0) level.tenants.delete(tenant);
    this.#dropIfEmpty(level);
  }

  /** Removes and returns the key whose turn it is. */
  next(): K | undefined {
    const level = this.#nextLevel();
    const [tenant, line] = level?.tenants.peek() ?? [];
    const [key] = line?.keys.pop() ?? [];
    if (!level || tenant === undefined || !line || key === undefined) return undefined;
    this.#size--;
    if (line.keys.size === 0) level.tenants.delete(tenant);
    else level.tenants.set(tenant, { turn: this.#sequence++, keys: line.keys });
    this.#dropIfEmpty(level);
    return key;
  }

  clear(): void {
    this.#levels.length = 0;
    this.#size = 0;
  }

  #nextLevel(): Level<K> | undefined {
    let next = this.#levels[0];
    let mostPassedOver = AGEING_TURNS - 1;
    for (const level of this.#levels) {
      if (level.passedOver > mostPassedOver) {
        next = level;
        mostPassedOver = level.passedOver;
      }
    }
    for (const level of this.#levels) level.passedOver = level === next ? 0 : level.passedOver + 1;
    return next;
  }

  #levelOf(priority: number): Level<K> {
    const found = this.#levels.find((level) => level.priority === priority);
    if (found) return found;
    const level: Level<K> = {
      priority,
      tenants: new IndexedHeap((a, b) => a.turn < b.turn),
      passedOver: 0,
    };
    const below = this.#levels.findIndex((other) => other.priority < priority);
    this.#levels.splice(below === -1 ? this.#levels.length : below, 0, level);
    return level;
  }

  #dropIfEmpty(level: Level<K>): void {
    if (level.tenants.size === 0) this.#levels.splice(this.#levels.indexOf(level), 1);
  }
}
