import type { InformerMetrics } from '../metrics/reflector-metrics.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { isRecord } from '../util/values.ts';
import { LineBudget } from './line-budget.ts';

/**
 * Turns away what cannot be cached: a thing without a name or a resourceVersion, and a Table, which
 * is what some proxies make of objects. What the client promises by its types, the network does not.
 */
export class ObjectGuard {
  readonly #log: Logger;
  readonly #metrics: InformerMetrics;
  readonly #budget: LineBudget;

  constructor(clock: Clock, log: Logger, metrics: InformerMetrics) {
    this.#log = log;
    this.#metrics = metrics;
    this.#budget = new LineBudget(clock);
  }

  /** True if the object can be cached; otherwise it is counted and logged. */
  admits(object: unknown): boolean {
    if (isCacheable(object)) return true;
    this.#metrics.objectRefused();
    const held = this.#budget.take();
    if (held) {
      this.#log.error(undefined, 'Skipped something that is not a Kubernetes object', {
        kind: isRecord(object) ? object['kind'] : typeof object,
        ...held,
      });
    }
    return false;
  }
}

function isCacheable(object: unknown): boolean {
  if (!isRecord(object) || object['kind'] === 'Table') return false;
  const { metadata } = object;
  if (!isRecord(metadata)) return false;
  const { name, namespace, resourceVersion } = metadata;
  return (
    typeof name === 'string' &&
    name !== '' &&
    (namespace === undefined || typeof namespace === 'string') &&
    typeof resourceVersion === 'string' &&
    resourceVersion !== ''
  );
}
