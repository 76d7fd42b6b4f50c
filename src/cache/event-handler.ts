import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { Logger } from '../util/logger.ts';
import { occurrenceFields } from '../util/rate-limited-log.ts';
import type { RateLimitedLog } from '../util/rate-limited-log.ts';

/**
 * Receives every change of a cache, after the cache contains it. Handlers are synchronous: they usually
 * add a key to a work queue and return.
 */
export interface EventHandler<T extends KubernetesObject> {
  /** `isInInitialList`: the object was in the cache before the handler was added. */
  onAdd?(object: DeepReadonly<T>, isInInitialList: boolean): void;

  /**
   * At a resync, `old` and `object` are the same object. An object that was deleted and recreated while
   * there was no watch is an update with another `metadata.uid`. After a restore of etcd, two states
   * may have the same resourceVersion.
   */
  onUpdate?(old: DeepReadonly<T>, object: DeepReadonly<T>): void;

  /**
   * `finalStateKnown`: `lastKnown` is the state at the deletion. Otherwise a relist detected the
   * deletion, and `lastKnown` is the last cached state.
   */
  onDelete?(lastKnown: DeepReadonly<T>, finalStateKnown: boolean): void;
}

/** Options of an event handler. */
export interface EventHandlerOptions<T extends KubernetesObject = KubernetesObject> {
  /** Name in log lines. */
  readonly name?: string | undefined;
  /**
   * Selects the objects of this handler. Synchronous, and depends on the object alone. For the
   * handler, an object is added when a change makes it match, and deleted when it no longer matches.
   * @default all objects
   */
  readonly filter?: ((object: DeepReadonly<T>) => boolean) | undefined;
  /**
   * Resync interval in milliseconds, at least 1000; 0 disables the resync. A resync calls `onUpdate`
   * for every object.
   * @default 0
   */
  readonly resyncPeriodMs?: number | undefined;
}

/** Registration of one handler at an informer. */
export interface HandlerRegistration {
  /** The handler has received everything that was cached when it was added. Never reset. */
  readonly hasSynced: boolean;
  /** Resolves when `hasSynced` becomes true; rejects if the handler is removed first. */
  readonly synced: Promise<void>;
  /**
   * Stops the delivery at once, also of events in progress: after it returns, no method of the handler
   * is called. Idempotent.
   */
  remove(): void;
}

/** Minimum resync interval in milliseconds; a shorter one would occupy the process. */
const MIN_RESYNC_MS = 1000;

/** Dependencies of `Listener`. */
export interface ListenerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly errors: RateLimitedLog;
  /** Called when a handler method failed. */
  readonly onFailure: () => void;
  readonly onRemove: () => void;
}

/**
 * Delivers events to one handler. Errors of the handler are logged and counted; they affect neither the
 * cache nor other handlers. A handler that returns a promise fails with a TypeError, since nothing
 * awaits the promise.
 */
export class Listener<T extends KubernetesObject> implements HandlerRegistration {
  readonly name: string;
  /** 0: no resync. */
  readonly resyncPeriodMs: number;
  /** `Clock.monotonic()` of the next resync. */
  nextResyncMs: number;
  /** A resync of this handler is queued. */
  resyncDue = false;
  readonly #handler: EventHandler<T>;
  readonly #deps: ListenerDeps;
  readonly #synced = new Deferred();
  #hasSynced = false;
  #state: 'waiting' | 'active' | 'removed' = 'waiting';

  constructor(handler: EventHandler<T>, options: EventHandlerOptions<T>, deps: ListenerDeps) {
    this.name = options.name ?? nameOf(handler);
    this.#handler = options.filter ? filteringHandler(handler, options.filter) : handler;
    this.#deps = deps;
    requireSynchronous(this.name, handler, options);
    const periodMs = options.resyncPeriodMs ?? 0;
    if (!(periodMs >= 0)) {
      throw new RangeError(`resyncPeriodMs: expected 0 or more milliseconds, got ${periodMs}`);
    }
    this.resyncPeriodMs = periodMs === 0 ? 0 : Math.max(periodMs, MIN_RESYNC_MS);
    this.nextResyncMs = deps.clock.monotonic() + this.resyncPeriodMs;
    // Prevents an unhandled rejection if no caller awaits `synced`.
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

  /** Starts the delivery. */
  activate(): void {
    if (this.#state === 'waiting') this.#state = 'active';
  }

  /** Ends the delivery. */
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
      this.#requireNoPromise(this.#handler.onAdd(object, isInInitialList), 'onAdd');
    } catch (error) {
      this.#failed(error, 'onAdd', object);
    }
  }

  update(old: DeepReadonly<T>, object: DeepReadonly<T>): void {
    if (this.#state !== 'active' || !this.#handler.onUpdate) return;
    try {
      this.#requireNoPromise(this.#handler.onUpdate(old, object), 'onUpdate');
    } catch (error) {
      this.#failed(error, 'onUpdate', object);
    }
  }

  delete(lastKnown: DeepReadonly<T>, finalStateKnown: boolean): void {
    if (this.#state !== 'active' || !this.#handler.onDelete) return;
    try {
      this.#requireNoPromise(this.#handler.onDelete(lastKnown, finalStateKnown), 'onDelete');
    } catch (error) {
      this.#failed(error, 'onDelete', lastKnown);
    }
  }

  #requireNoPromise(returned: unknown, method: string): void {
    if (returned === undefined || !isThenable(returned)) return;
    const message = 'Event handler returned a promise that rejected; handlers must be synchronous';
    returned.then(undefined, (error: unknown) => {
      this.#deps.errors.report(`handler\0${this.name}`, method, ({ times }) =>
        this.#deps.log.error(error, message, {
          handler: this.name,
          method,
          ...(times > 1 && { times }),
        }),
      );
    });
    throw new TypeError(
      `Handler ${this.name}: ${method} returned a promise; handlers are synchronous: add a key to a queue and return`,
    );
  }

  #failed(error: unknown, method: string, object: DeepReadonly<T>): void {
    this.#deps.onFailure();
    const message = 'Event handler failed';
    this.#deps.errors.report(`handler\0${this.name}`, keyOf(object), (seen) =>
      this.#deps.log.error(error, message, {
        handler: this.name,
        method,
        ...occurrenceFields('object', 'objects', seen),
      }),
    );
  }
}

/**
 * Returns a handler that receives only objects for which `filter` is true. If a change makes an object match, it is an
 * addition. If an object no longer matches, it is a deletion of the last matching state. A change between two
 * matching states is an update, also if they belong to two objects of the same name.
 *
 * A filter that throws, or does not return a boolean, fails the call like an error of the handler.
 */
function filteringHandler<T extends KubernetesObject>(
  handler: EventHandler<T>,
  filter: (object: DeepReadonly<T>) => boolean,
): EventHandler<T> {
  const matches = (object: DeepReadonly<T>): boolean => {
    const result: unknown = filter(object);
    if (typeof result === 'boolean') return result;
    if (result instanceof Promise) result.catch(() => undefined);
    const got = result instanceof Promise ? 'a promise' : typeof result;
    throw new TypeError(`The filter of a handler returned ${got}; expected true or false`);
  };
  return {
    onAdd: (object, isInInitialList) =>
      matches(object) ? handler.onAdd?.(object, isInInitialList) : undefined,
    onUpdate: (old, object) => {
      const before = matches(old);
      const after = matches(object);
      if (before && after) return handler.onUpdate?.(old, object);
      if (after) return handler.onAdd?.(object, false);
      if (before) return handler.onDelete?.(old, true);
      return undefined;
    },
    onDelete: (lastKnown, finalStateKnown) => {
      return matches(lastKnown) ? handler.onDelete?.(lastKnown, finalStateKnown) : undefined;
    },
  };
}

/** Throws early for methods that are declared async. */
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

/** Resync state of one handler. */
export interface Resyncing {
  /** 0: no resync. */
  readonly resyncPeriodMs: number;
  nextResyncMs: number;
  resyncDue: boolean;
}

/** Marks each member as due at its own interval. Uses one timer, set to the earliest. */
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

  /** Sets the timer. Call it at the start, and after members were added or removed. */
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
