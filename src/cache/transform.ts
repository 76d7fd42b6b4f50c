import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { InformerMetrics } from '../metrics/reflector-metrics.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Delta, DeltaSink } from './delta-queue.ts';
import type { Indexer } from './indexer.ts';
import { LineBudget } from './line-budget.ts';

/** Makes of an object what the cache is to keep; may change it in place, as nobody else has it. */
export type Transform<T extends KubernetesObject> = (object: T) => T;

/** Dependencies of `Intake`. */
export interface IntakeDeps<T extends KubernetesObject> {
  readonly queue: DeltaSink<DeepReadonly<T>>;
  readonly indexer: Indexer<T>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: InformerMetrics;
  readonly transform: Transform<T> | undefined;
  /** Freeze every object with all that is in it. */
  readonly freeze: boolean;
}

/**
 * Prepares what the reflector learned for the cache: each object is transformed once, before anyone
 * else sees it. An object that the transform fails on is logged, counted and skipped; if the cache
 * knows it, it keeps what it has, for a failure to understand is not a deletion.
 */
export class TransformingSink<T extends KubernetesObject> implements DeltaSink<T> {
  readonly #deps: IntakeDeps<T>;
  readonly #plain: boolean;
  readonly #budget: LineBudget;

  constructor(deps: IntakeDeps<T>) {
    this.#deps = deps;
    this.#plain = deps.transform === undefined && !deps.freeze;
    this.#budget = new LineBudget(deps.clock);
  }

  push(delta: Delta<T>): Promise<void> | undefined {
    const { queue } = this.#deps;
    if (this.#plain) return queue.push(shared(delta));
    switch (delta.type) {
      case 'changed': {
        const object = this.#prepare(delta.object);
        return object && queue.push(shared({ ...delta, object }));
      }
      case 'deleted':
        // The deletion holds even if the last state cannot be understood.
        return queue.push(
          shared({ ...delta, lastKnown: this.#prepare(delta.lastKnown) ?? delta.lastKnown }),
        );
      case 'replaced':
        return queue.push({ ...delta, objects: this.#prepareAll(delta.objects) });
      case 'synced':
      case 'resync':
        return queue.push(delta);
    }
  }

  #prepareAll(objects: readonly T[]): DeepReadonly<T>[] {
    const prepared: DeepReadonly<T>[] = [];
    for (const object of objects) {
      const ready = this.#prepare(object);
      const kept = ready ? shared(ready) : this.#deps.indexer.get(keyOf(object));
      if (kept !== undefined) prepared.push(kept);
    }
    return prepared;
  }

  #prepare(object: T): T | undefined {
    const { transform, freeze, log, metrics } = this.#deps;
    try {
      const prepared = transform ? transform(object) : object;
      if (freeze) deepFreeze(prepared);
      return prepared;
    } catch (error) {
      metrics.objectRefused();
      const held = this.#budget.take();
      if (held) log.error(error, 'Could not transform an object', { key: keyOf(object), ...held });
      return undefined;
    }
  }
}

/** From here on it is everybody's, and nobody's to change. */
function shared<O extends KubernetesObject>(object: O): DeepReadonly<O>;
function shared<O>(delta: Delta<O>): Delta<DeepReadonly<O>>;
function shared(value: unknown): unknown {
  return value;
}

/**
 * Freezes a JSON value with everything in it, so that whoever changes a shared object is thrown at
 * where it happens. Iterative: depth is the sender's choice, the stack is ours.
 */
export function deepFreeze(root: object): void {
  const pending: object[] = [root];
  for (let value = pending.pop(); value; value = pending.pop()) {
    if (Object.isFrozen(value)) continue;
    Object.freeze(value);
    for (const member of Object.values(value)) {
      if (typeof member === 'object' && member !== null) pending.push(member);
    }
  }
}
