import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { RestClientMetrics } from '../../metrics/rest-client-metrics.ts';
import type { Clock } from '../../util/clock.ts';

export interface MeasuredLookupDeps {
  readonly metrics: Pick<RestClientMetrics, 'resolved'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** @default the machine's resolver */
  readonly lookup?: LookupFunction | undefined;
}

/**
 * A lookup that tells how long each name took, whether it was found or not: a resolver that times out
 * is what one looks for. Sockets ask only about names; an address in its place takes no time.
 */
export function measuredLookup({
  metrics,
  clock,
  lookup = systemLookup,
}: MeasuredLookupDeps): LookupFunction {
  return (host, options, callback) => {
    const sinceMs = clock.monotonic();
    lookup(host, options, (...answer) => {
      metrics.resolved({ host, seconds: (clock.monotonic() - sinceMs) / 1000 });
      callback(...answer);
    });
  };
}
