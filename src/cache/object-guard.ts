import type { InformerMetrics } from '../metrics/reflector-metrics.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { occurrenceFields, RateLimitedLog } from '../util/rate-limited-log.ts';
import { isRecord } from '../util/values.ts';

/**
 * Rejects values that cannot be cached: objects without a name or resourceVersion, and Tables, into
 * which some proxies convert objects. The client's types do not bind the server.
 */
export class ObjectGuard {
  readonly #log: Logger;
  readonly #metrics: InformerMetrics;
  readonly #errors: RateLimitedLog;

  constructor(clock: Clock, log: Logger, metrics: InformerMetrics) {
    this.#log = log;
    this.#metrics = metrics;
    this.#errors = new RateLimitedLog(clock, { burst: 10 });
  }

  /** Whether the object can be cached. Counts and logs it if not. */
  admits(object: unknown): boolean {
    if (isCacheable(object)) return true;
    this.#metrics.objectRefused();
    const kind = isRecord(object) ? String(object['kind']) : typeof object;
    this.#errors.report('malformed', kind, (seen) => {
      const fields = occurrenceFields('kind', 'kinds', seen);
      this.#log.error(undefined, 'Skipped a value that is not a Kubernetes object', fields);
    });
    return false;
  }

  /** Logs suppressed lines. */
  flush(): void {
    this.#errors.flush();
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
