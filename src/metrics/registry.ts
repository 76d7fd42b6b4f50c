import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Histogram } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';

export type { Registry };

/** Options of {@link createRegistry}. */
export interface RegistryOptions {
  /**
   * Also collect metrics of the process (`process_*`, `nodejs_*`, and the heap limit). Use it for one
   * registry per process.
   * @default false
   */
  readonly processMetrics?: boolean;
}

/** The response to a scrape. */
export interface MetricsText {
  readonly contentType: string;
  readonly text: string;
}

/**
 * Creates a registry. Registries are independent: nothing is registered globally.
 *
 * @example
 * ```ts
 * import { createRegistry, expose, metricsOf } from 'crd-controller/metrics';
 *
 * const registry = createRegistry();
 * metricsOf(registry).events.dropped('spam');
 * const { text } = await expose(registry);
 * console.log(text.includes('events_dropped_total{reason="spam"} 1')); // prints: true
 * ```
 */
export function createRegistry(options: RegistryOptions = {}): Registry {
  const { processMetrics = false } = options;
  const registry = new Registry();
  if (processMetrics) collectProcessMetrics(registry);
  return registry;
}

/** Returns the current values of all series in the text format of Prometheus. */
export async function expose(registry: Registry): Promise<MetricsText> {
  return { contentType: registry.contentType, text: await registry.metrics() };
}

/** Interval of the timer that measures the delay of the event loop, in milliseconds. */
const LAG_INTERVAL_MS = 100;

/** Longer than any process runs. */
const NEVER_MS = 2 ** 31 - 1;

/** Used heap means little without its limit, which the default metrics do not contain. */
function collectProcessMetrics(registry: Registry): void {
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

/** The version of this program. */
export interface Build {
  readonly version: string;
  /**
   * The commit it was built from.
   * @default unknown
   */
  readonly revision?: string | undefined;
}

/** Registers the build info metric, which is always 1. Called once per registry. */
export function buildMetrics(registry: Registry, { version, revision = 'unknown' }: Build): void {
  new Gauge({
    name: 'crd_controller_build_info',
    help: 'Always 1; labels: version and commit of this program, version of Node.js',
    labelNames: ['version', 'revision', 'node_version'],
    registers: [registry],
  }).set({ version, revision, node_version: process.version }, 1);
}

/** Registers the metric of dropped log lines. `dropped` returns their number so far. Called once per registry. */
export function logMetrics(registry: Registry, dropped: () => number): void {
  let counted = 0;
  const counter = new Counter({
    name: 'crd_controller_log_lines_dropped_total',
    help: 'Number of log lines that were dropped because the disk was full, or the reader was gone or too slow',
    registers: [registry],
    collect: () => {
      const total = dropped();
      counter.inc(total - counted);
      counted = total;
    },
  });
}
