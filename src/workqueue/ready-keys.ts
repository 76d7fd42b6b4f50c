import { IndexedHeap } from '../util/indexed-heap.ts';

/** Number of turns for which a priority with keys may be passed over before it gets one. */
export const AGEING_TURNS = 10;

/** The tenants of one priority, the next one in front. Never empty. */
interface Level<K> {
  readonly priority: number;
  readonly tenants: IndexedHeap<string, Tenant<K>>;
  /** Number of turns of other levels since the last one of this level. */
  passedOver: number;
}

/** The keys of a tenant in one level, the oldest in front. */
interface Tenant<K> {
  readonly turn: number;
  readonly keys: IndexedHeap<K, number>;
}

/**
 * Ready keys, in the order in which they are taken:
 *
 * 1. Higher priority first. Lower ones age, so that they never starve: a priority that was passed over
 *    `AGEING_TURNS` times gets the next turn (if there are several, the one passed over most often). So
 *    each of p priorities in use gets at least one of `AGEING_TURNS + p` turns. Age is measured in turns,
 *    not in time: after a restart, many low-priority keys would reach an age together and overtake new
 *    changes.
 * 2. Within a priority, tenants take turns. A tenant with ten thousand keys delays another one by one
 *    key. A tenant that is added (again) goes to the end of the round.
 * 3. Within a tenant, first in first out.
 *
 * Every operation costs O(log n + p) for n keys. There are two priorities unless callers add more.
 */
export class ReadyKeys<K> {
  /** Highest priority first. */
  readonly #levels: Level<K>[] = [];
  /** Sequence number of turns and arrivals. */
  #sequence = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Appends a new key to the queue of its tenant. */
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

  /** Removes a key that was added with this priority and tenant. */
  remove(key: K, priority: number, tenant: string): void {
    const level = this.#levels.find((level) => level.priority === priority);
    const line = level?.tenants.get(tenant);
    if (!level || !line?.keys.delete(key)) return;
    this.#size--;
    if (line.keys.size === 0) level.tenants.delete(tenant);
    this.#dropIfEmpty(level);
  }

  /** Removes and returns the next key. */
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
