import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import { countLazyFields, parseLazyFields, shareFields } from '../client/lazy-object.ts';
import type { InformerMetrics } from '../metrics/reflector-metrics.ts';
import type { Logger } from '../util/logger.ts';
import { occurrenceFields } from '../util/rate-limited-log.ts';
import type { RateLimitedLog } from '../util/rate-limited-log.ts';
import type { Delta, DeltaSink } from './delta-queue.ts';
import type { Indexer } from './indexer.ts';

/** Changes an object before it is cached, for example to drop fields. May modify it in place. */
export type Transform<T extends KubernetesObject> = (object: T) => T;

/** Dependencies of `TransformingSink`. */
export interface TransformingSinkDeps<T extends KubernetesObject> {
  readonly queue: DeltaSink<DeepReadonly<T>>;
  readonly indexer: Indexer<T>;
  readonly log: Logger;
  readonly errors: RateLimitedLog;
  readonly metrics: InformerMetrics;
  readonly transform: Transform<T> | undefined;
  /** Whether to freeze every object deeply. */
  readonly freeze: boolean;
}

/**
 * Transforms each object once, before it enters the delta queue. An object whose transform throws is
 * logged, counted and skipped. If the cache contains an earlier state of it, that state remains, since
 * a failed transform is not a deletion.
 */
export class TransformingSink<T extends KubernetesObject> implements DeltaSink<T> {
  readonly #deps: TransformingSinkDeps<T>;
  readonly #isIdentity: boolean;

  constructor(deps: TransformingSinkDeps<T>) {
    this.#deps = deps;
    this.#isIdentity = deps.transform === undefined && !deps.freeze;
  }

  push(delta: Delta<T>): Promise<void> | undefined {
    const { queue } = this.#deps;
    if (this.#isIdentity) return queue.push(shared(delta));
    switch (delta.type) {
      case 'changed': {
        const object = this.#transform(delta.object);
        return object && queue.push(readOnly({ ...delta, object }));
      }
      case 'deleted':
        // A deletion applies even if the transform of the last state fails.
        return queue.push(
          readOnly({ ...delta, lastKnown: this.#transform(delta.lastKnown) ?? delta.lastKnown }),
        );
      case 'replaced':
        return queue.push({ ...delta, objects: this.#transformAll(delta.objects) });
      case 'synced':
      case 'resync':
        return queue.push(delta);
    }
  }

  #transformAll(objects: readonly T[]): DeepReadonly<T>[] {
    const results: DeepReadonly<T>[] = [];
    for (const object of objects) {
      const transformed = this.#transform(object);
      const result = transformed ? readOnly(transformed) : this.#deps.indexer.get(keyOf(object));
      if (result !== undefined) results.push(result);
    }
    return results;
  }

  #transform(object: T): T | undefined {
    const { transform, freeze, log, errors, metrics } = this.#deps;
    try {
      const transformed = transform ? transformWith(transform, object) : object;
      if (freeze) deepFreeze(transformed);
      shareFields(transformed);
      return transformed;
    } catch (error) {
      metrics.objectRefused();
      errors.report('transform', keyOf(object), (seen) =>
        log.error(error, 'Could not transform an object', occurrenceFields('key', 'keys', seen)),
      );
      return undefined;
    }
  }
}

/** A transform that drops a field must not leave its text in memory. */
function transformWith<T extends KubernetesObject>(transform: Transform<T>, object: T): T {
  const before = countLazyFields(object);
  const transformed = transform(object);
  if (transformed === object && countLazyFields(object) < before) parseLazyFields(object);
  return transformed;
}

/** Declares that the objects of a delta are not modified any more. */
function shared<O extends KubernetesObject>(delta: Delta<O>): Delta<DeepReadonly<O>> {
  switch (delta.type) {
    case 'changed':
      shareFields(delta.object);
      break;
    case 'replaced':
      for (const object of delta.objects) shareFields(object);
      break;
    case 'deleted':
    case 'synced':
    case 'resync':
  }
  return readOnly(delta);
}

/** Changes the type of a shared value to read-only. */
function readOnly<O extends KubernetesObject>(object: O): DeepReadonly<O>;
function readOnly<O>(delta: Delta<O>): Delta<DeepReadonly<O>>;
function readOnly(value: unknown): unknown {
  return value;
}

/**
 * Freezes a JSON value deeply, so that code that modifies a shared object throws at that place.
 * Iterative, because the server determines the depth.
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
