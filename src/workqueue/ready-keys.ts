import { LinkedList } from '../util/linked-list.ts';
import type { Linked } from '../util/linked-list.ts';

/** Number of turns after which a priority with ready keys gets the next turn. */
const AGEING_TURNS = 10;

/** A key that is ready. Its priority does not change meanwhile. */
export interface ReadyKey<T> extends Linked<T> {
  readonly tenant: string;
  readonly priority: number;
}

/** A tenant with keys in one level, the oldest key in front. */
interface Tenant<T extends Linked<T>> extends Linked<Tenant<T>> {
  readonly name: string;
  readonly keys: LinkedList<T>;
}

/** The tenants of one priority. Never empty. */
class Level<T extends ReadyKey<T>> {
  readonly priority: number;
  /** Number of turns of other levels since the last one of this level. */
  passedOver = 0;
  readonly #tenants = new Map<string, Tenant<T>>();
  /** The same tenants, the next one in front. */
  readonly #turns = new LinkedList<Tenant<T>>();

  constructor(priority: number) {
    this.priority = priority;
  }

  get isEmpty(): boolean {
    return this.#turns.first === undefined;
  }

  add(key: T): void {
    let tenant = this.#tenants.get(key.tenant);
    if (!tenant) {
      const keys = new LinkedList<T>();
      tenant = { name: key.tenant, keys, previous: undefined, next: undefined };
      this.#tenants.set(key.tenant, tenant);
      this.#turns.append(tenant);
    }
    tenant.keys.append(key);
  }

  remove(key: T): void {
    const tenant = this.#tenants.get(key.tenant);
    if (!tenant) return;
    tenant.keys.remove(key);
    if (!tenant.keys.first) this.#removeTenant(tenant);
  }

  /** Removes and returns the next key. Its tenant goes to the end of the round. */
  next(): T | undefined {
    const tenant = this.#turns.first;
    const key = tenant?.keys.first;
    if (!tenant || !key) return undefined;
    tenant.keys.remove(key);
    if (!tenant.keys.first) {
      this.#removeTenant(tenant);
    } else if (tenant.next) {
      this.#turns.remove(tenant);
      this.#turns.append(tenant);
    }
    return key;
  }

  #removeTenant(tenant: Tenant<T>): void {
    this.#tenants.delete(tenant.name);
    this.#turns.remove(tenant);
  }
}

/**
 * Ready keys, in the order in which they are taken:
 *
 * 1. Higher priority first. Lower ones age, so that they never starve: a priority that got none of
 *    `AGEING_TURNS` turns gets the next one (if there are several, the one that has waited longest). So
 *    each of p priorities in use gets at least one of `AGEING_TURNS + p` turns. Age is measured in turns,
 *    not in time: after a restart, many low-priority keys would reach an age together and overtake new
 *    changes.
 * 2. Within a priority, tenants take turns. A tenant with ten thousand keys delays another one by one
 *    key. A tenant that is added (again) goes to the end of the round.
 * 3. Within a tenant, first in first out.
 *
 * Every operation costs O(p), for any number of keys and tenants. There are two priorities unless callers
 * add more.
 */
export class ReadyKeys<T extends ReadyKey<T>> {
  /** Highest priority first. */
  readonly #levels: Level<T>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Appends a key to those of its tenant. */
  add(key: T): void {
    this.#levelOf(key.priority).add(key);
    this.#size++;
  }

  /** @param key one that is ready */
  remove(key: T): void {
    const level = this.#levelOf(key.priority);
    level.remove(key);
    this.#size--;
    this.#dropIfEmpty(level);
  }

  /** Removes and returns the next key. */
  next(): T | undefined {
    const level = this.#nextLevel();
    const key = level?.next();
    if (!level || !key) return undefined;
    this.#size--;
    this.#dropIfEmpty(level);
    return key;
  }

  clear(): void {
    this.#levels.length = 0;
    this.#size = 0;
  }

  #nextLevel(): Level<T> | undefined {
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

  #levelOf(priority: number): Level<T> {
    for (const level of this.#levels) if (level.priority === priority) return level;
    const level = new Level<T>(priority);
    const below = this.#levels.findIndex((other) => other.priority < priority);
    this.#levels.splice(below === -1 ? this.#levels.length : below, 0, level);
    return level;
  }

  #dropIfEmpty(level: Level<T>): void {
    if (level.isEmpty) this.#levels.splice(this.#levels.indexOf(level), 1);
  }
}
