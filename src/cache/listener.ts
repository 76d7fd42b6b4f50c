import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { Logger } from '../util/logger.ts';
import { filtered } from './filtered-handler.ts';
import type { HandlerOptions, InformerHandler, Registration } from './handler.ts';
import { LineBudget } from './reflector/line-budget.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const HANDLER_OPTIONS: OptionNames<HandlerOptions> = {
  name: true,
  filter: true,
  resyncPeriodMs: true,
};

/** A shorter resync would keep the daemon busy with itself, in milliseconds. */
const SHORTEST_RESYNC_MS = 1000;

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
export class Listener<T extends KubernetesObject> implements Registration {
  readonly name: string;
  /** 0: never. */
  readonly resyncPeriodMs: number;
  /** `Clock.monotonic()` of the next resync. */
  nextResyncMs: number;
  /** A resync is under way to this handler. */
  resyncDue = false;
  readonly #handler: InformerHandler<T>;
  readonly #deps: ListenerDeps;
  readonly #synced = new Deferred();
  #hasSynced = false;
  #state: 'waiting' | 'active' | 'removed' = 'waiting';
  readonly #budget: LineBudget;

  constructor(handler: InformerHandler<T>, options: HandlerOptions<T>, deps: ListenerDeps) {
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
