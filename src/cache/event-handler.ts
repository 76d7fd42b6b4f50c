import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { Logger } from '../util/logger.ts';
import { LineBudget } from './line-budget.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

/**
 * Told of every change of a cache, after the cache shows it. Handlers are synchronous: they note
 * what is to be done, usually by adding a key to a work queue, and return.
 */
export interface EventHandler<T extends KubernetesObject> {
  /** `isInInitialList`: the object was there before this handler began to listen. */
  onAdd?(object: DeepReadonly<T>, isInInitialList: boolean): void;

  /**
   * Equal resourceVersions mean a resync. An object that was deleted and created anew while the
   * watch was down comes as an update to another `metadata.uid`.
   */
  onUpdate?(old: DeepReadonly<T>, object: DeepReadonly<T>): void;

  /**
   * `finalStateKnown`: `lastKnown` is the state in which it was deleted; otherwise the deletion was
   * noticed later, by a list, and `lastKnown` is what the cache had.
   */
  onDelete?(lastKnown: DeepReadonly<T>, finalStateKnown: boolean): void;
}

/** Options of `EventHandler`. */
export interface EventHandlerOptions<T extends KubernetesObject = KubernetesObject> {
  /** What log lines call it. */
  readonly name?: string;
  /**
   * Which objects concern the handler; synchronous, and a function of the object alone. It hears of
   * no others: one that begins to concern it is added, one that ceases to is deleted.
   * @default all
   */
  readonly filter?: (object: DeepReadonly<T>) => boolean;
  /**
   * How often every object is handed over again as an update to itself, in milliseconds; at least
   * 1000. 0: never.
   * @default 0
   */
  readonly resyncPeriodMs?: number;
}

/** One handler's seat at an informer. */
export interface HandlerRegistration {
  /** The handler has been told of everything that was there when it was added. Never goes back. */
  readonly hasSynced: boolean;
  /** Resolves when `hasSynced` becomes true; rejects if the seat is given up before. */
  readonly synced: Promise<void>;
  /**
   * Nothing more is delivered, not even what is under way: as handlers are synchronous, none of the
   * handler's methods is running or will be called once this returns, unless it is called by one of
   * them. To remove twice is to remove.
   */
  remove(): void;
}

const HANDLER_OPTIONS: OptionNames<EventHandlerOptions> = {
  name: true,
  filter: true,
  resyncPeriodMs: true,
};

/** A shorter resync would keep the daemon busy with itself, in milliseconds. */
const SHORTEST_RESYNC_MS = 1000;

/** Dependencies of `Listener`. */
export interface ListenerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** A call failed. */
  readonly onFailure: () => void;
  readonly onRemove: () => void;
}

/**
 * Delivers to one handler. What the handler throws is logged, counted and goes no further: neither
 * the cache nor other handlers notice. A handler that returns a promise is refused with a
 * TypeError, since nobody would wait for it or hear of its failure.
 */
export class Listener<T extends KubernetesObject> implements HandlerRegistration {
  readonly name: string;
  /** 0: never. */
  readonly resyncPeriodMs: number;
  /** `Clock.monotonic()` of the next resync. */
  nextResyncMs: number;
  /** A resync is under way to this handler. */
  resyncDue = false;
  readonly #handler: EventHandler<T>;
  readonly #deps: ListenerDeps;
  readonly #synced = new Deferred();
  #hasSynced = false;
  #state: 'waiting' | 'active' | 'removed' = 'waiting';
  readonly #budget: LineBudget;

  constructor(handler: EventHandler<T>, options: EventHandlerOptions<T>, deps: ListenerDeps) {
    checkOptions(options, HANDLER_OPTIONS, 'addHandler');
    this.name = options.name ?? nameOf(handler);
    this.#handler = options.filter ? filtered(handler, options.filter) : handler;
    this.#deps = deps;
    this.#budget = new LineBudget(deps.clock);
    requireSynchronous(this.name, handler, options);
    const periodMs = options.resyncPeriodMs ?? 0;
    if (!(periodMs >= 0)) {
      throw new RangeError(`resyncPeriodMs: expected 0 or more milliseconds, got ${periodMs}`);
    }
    this.resyncPeriodMs = periodMs === 0 ? 0 : Math.max(periodMs, SHORTEST_RESYNC_MS);
    this.nextResyncMs = deps.clock.monotonic() + this.resyncPeriodMs;
    // Whoever awaits it hears of a rejection; that nobody does is no fault.
    this.#synced.promise.catch(() => undefined);
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get removed(): boolean {
    return this.#state === 'removed';
  }

  remove(): void {
    if (this.removed) return;
    this.end(`Handler ${this.name} was removed before it had synced`);
    this.#deps.onRemove();
  }

  /** Delivers from now on. */
  activate(): void {
    if (this.#state === 'waiting') this.#state = 'active';
  }

  /** Delivers nothing from now on. */
  end(reason: string): void {
    this.#state = 'removed';
    if (!this.#hasSynced) this.#synced.reject(new Error(reason));
  }

  markSynced(): void {
    if (this.#state !== 'active' || this.#hasSynced) return;
    this.#hasSynced = true;
    this.#synced.resolve();
  }

  add(object: DeepReadonly<T>, isInInitialList: boolean): void {
    if (this.#state !== 'active' || !this.#handler.onAdd) return;
    try {
      this.#require(this.#handler.onAdd(object, isInInitialList), 'onAdd');
    } catch (error) {
      this.#failed(error, 'onAdd', object);
    }
  }

  update(old: DeepReadonly<T>, object: DeepReadonly<T>): void {
    if (this.#state !== 'active' || !this.#handler.onUpdate) return;
    try {
      this.#require(this.#handler.onUpdate(old, object), 'onUpdate');
    } catch (error) {
      this.#failed(error, 'onUpdate', object);
    }
  }

  delete(lastKnown: DeepReadonly<T>, finalStateKnown: boolean): void {
    if (this.#state !== 'active' || !this.#handler.onDelete) return;
    try {
      this.#require(this.#handler.onDelete(lastKnown, finalStateKnown), 'onDelete');
    } catch (error) {
      this.#failed(error, 'onDelete', lastKnown);
    }
  }

  #require(returned: unknown, method: string): void {
    if (returned === undefined || !isThenable(returned)) return;
    returned.then(undefined, (error: unknown) => {
      const held = this.#budget.take();
      if (!held) return;
      this.#deps.log.error(error, 'Event handler failed in the promise it should not return', {
        handler: this.name,
        method,
        ...held,
      });
    });
    throw new TypeError(
      `Handler ${this.name}: ${method} returned a promise; handlers are synchronous: add a key to a queue and return`,
    );
  }

  #failed(error: unknown, method: string, object: DeepReadonly<T>): void {
    this.#deps.onFailure();
    const held = this.#budget.take();
    if (!held) return;
    this.#deps.log.error(error, 'Event handler failed', {
      handler: this.name,
      method,
      object: keyOf(object),
      ...held,
    });
  }
}

function requireSynchronous(name: string, handler: object, { filter }: { filter?: unknown }): void {
  const methods = ['onAdd', 'onUpdate', 'onDelete'].map((method): [string, unknown] => [
    method,
    Reflect.get(handler, method),
  ]);
  for (const [method, member] of [...methods, ['filter', filter] as const]) {
    if (typeof member === 'function' && member.constructor.name === 'AsyncFunction') {
      throw new TypeError(
        `Handler ${name}: ${method} is async; handlers are synchronous: add a key to a queue and return`,
      );
    }
  }
}

function nameOf(handler: object): string {
  const { name } = handler.constructor;
  return name === 'Object' ? 'unnamed' : name;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' && value !== null && typeof Reflect.get(value, 'then') === 'function'
  );
}

/**
 * `handler`, told only of objects that pass. An object that begins to pass is added and one that
 * ceases to is deleted, in the last state that passed; what is between two states that both pass is
 * an update, also when they are of two objects of one name.
 *
 * A filter that throws, or answers with anything but a boolean, fails the call as the handler would:
 * a promise is true to an `if`.
 */
export function filtered<T extends KubernetesObject>(
  handler: EventHandler<T>,
  filter: (object: DeepReadonly<T>) => boolean,
): EventHandler<T> {
  const passes = (object: DeepReadonly<T>): boolean => {
    const verdict: unknown = filter(object);
    if (typeof verdict === 'boolean') return verdict;
    if (verdict instanceof Promise) verdict.catch(() => undefined);
    const found = verdict instanceof Promise ? 'a promise' : typeof verdict;
    throw new TypeError(`The filter of a handler returned ${found}; expected true or false`);
  };
  return {
    onAdd: (object, isInInitialList) =>
      passes(object) ? handler.onAdd?.(object, isInInitialList) : undefined,
    onUpdate: (old, object) => {
      const before = passes(old);
      const after = passes(object);
      if (before && after) return handler.onUpdate?.(old, object);
      if (after) return handler.onAdd?.(object, false);
      if (before) return handler.onDelete?.(old, true);
      return undefined;
    },
    onDelete: (lastKnown, finalStateKnown) => {
      return passes(lastKnown) ? handler.onDelete?.(lastKnown, finalStateKnown) : undefined;
    },
  };
}

/** Something that wants a resync now and then. */
export interface Resyncing {
  /** 0: never. */
  readonly resyncPeriodMs: number;
  nextResyncMs: number;
  resyncDue: boolean;
}

/**
 * Marks each member as due when its own period has passed, whatever the others' periods are, and
 * says so. One timer, set to the earliest.
 */
export class ResyncTimer {
  readonly #clock: Clock;
  readonly #members: Iterable<Resyncing>;
  readonly #onDue: () => void;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, members: Iterable<Resyncing>, onDue: () => void) {
    this.#clock = clock;
    this.#members = members;
    this.#onDue = onDue;
  }

  /** Sets the timer anew: at the start, and when members have come or gone. */
  arm(): void {
    this.stop();
    let earliestMs = Infinity;
    for (const { resyncPeriodMs, nextResyncMs } of this.#members) {
      if (resyncPeriodMs > 0) earliestMs = Math.min(earliestMs, nextResyncMs);
    }
    if (earliestMs === Infinity) return;
    this.#cancel = this.#clock.after(earliestMs - this.#clock.monotonic(), this.#fire);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  readonly #fire = (): void => {
    const nowMs = this.#clock.monotonic();
    let anyDue = false;
    for (const member of this.#members) {
      if (member.resyncPeriodMs === 0 || member.nextResyncMs > nowMs) continue;
      member.nextResyncMs = nowMs + member.resyncPeriodMs;
      member.resyncDue = true;
      anyDue = true;
    }
    this.arm();
    if (anyDue) this.#onDue();
  };
}
