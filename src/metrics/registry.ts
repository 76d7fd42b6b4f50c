import type { Registry } from 'prom-client';
import { Counter, Gauge, MetricRegistry } from './prom-client.ts';

export type { Registry };

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
export function createRegistry(): Registry {
  return new MetricRegistry();
}

/** Returns the current values of all series in the text format of Prometheus. */
export async function expose(registry: Registry): Promise<MetricsText> {
  return { contentType: registry.contentType, text: await registry.metrics() };
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
