import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Histogram } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type * as PromClient from 'prom-client';
// @ts-expect-error -- only the entry point has types
import defaultMetrics from 'prom-client/lib/defaultMetrics.js';
import { Gauge } from './prom-client.ts';
import type { Registry } from './registry.ts';

const collectDefaultMetrics = defaultMetrics as typeof PromClient.collectDefaultMetrics;

/** Interval of the timer that measures the delay of the event loop, in milliseconds. */
const LAG_INTERVAL_MS = 100;

/** Longer than any process runs. */
const NEVER_MS = 2 ** 31 - 1;

/**
 * Collects metrics of the process in a registry: `process_*`, `nodejs_*`, and the heap limit, without which the used heap means
 * little. Use it for one registry per process.
 *
 * @example
 * ```ts
 * import { collectProcessMetrics, createRegistry, expose } from 'crd-controller/metrics';
 *
 * const registry = createRegistry();
 * collectProcessMetrics(registry);
 * const { text } = await expose(registry);
 * console.log(text.includes('process_cpu_seconds_total ')); // prints: true
 * ```
 */
export function collectProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  collectEventLoopLag(registry);
  const limit = new Gauge({
    name: 'crd_controller_heap_limit_bytes',
    help: 'Heap size in bytes at which Node.js aborts the process',
    registers: [registry],
  });
  limit.set(getHeapStatistics().heap_size_limit);
}

/** Statistics of the intervals between two calls of the timer, in nanoseconds. */
const LAG_STATISTICS: Readonly<Record<string, (intervals: Histogram) => number>> = {
  min: ({ min }) => min,
  max: ({ max }) => max,
  mean: ({ mean }) => mean,
  p50: (intervals) => intervals.percentile(50),
  p90: (intervals) => intervals.percentile(90),
  p99: (intervals) => intervals.percentile(99),
};

/**
 * Replaces the metrics of the event loop of prom-client. Its timer wakes an idle process a hundred times a second,
 * and its values contain the interval of the timer: 10 ms for an idle event loop.
 */
function collectEventLoopLag(registry: Registry): void {
  const intervals = monitorEventLoopDelay({ resolution: LAG_INTERVAL_MS });
  intervals.enable();
  const statistics = Object.entries(LAG_STATISTICS);
  for (const [at, [name, statistic]] of statistics.entries()) {
    const metric = `nodejs_eventloop_lag_${name}_seconds`;
    registry.removeSingleMetric(metric);
    const gauge = new Gauge({
      name: metric,
      help: `Delay of the timers of the event loop since the last scrape in seconds: ${name}`,
      registers: [registry],
      collect: () => {
        const ms = intervals.count === 0 ? 0 : statistic(intervals) / 1e6 - LAG_INTERVAL_MS;
        gauge.set(Math.max(0, ms) / 1000);
        if (at === statistics.length - 1) intervals.reset();
      },
    });
  }
  registry.removeSingleMetric('nodejs_eventloop_lag_stddev_seconds');
}
