import { getHeapStatistics } from 'node:v8';
import { collectDefaultMetrics, Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/**
 * The process's and Node's own metrics (`process_*`, `nodejs_*`), and how much heap there may be: used
 * heap says little without it. They observe the whole process. Call it once for a registry.
 */
export function processMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  const limit = new Gauge({
    name: 'crd_controller_heap_limit_bytes',
    help: 'Heap beyond which Node.js ends the process',
    registers: [registry],
  });
  limit.set(getHeapStatistics().heap_size_limit);
}

/** What was built from what. */
export interface Build {
  readonly version: string;
  /**
   * Commit that was built.
   * @default unknown
   */
  readonly revision?: string | undefined;
}

/** Always 1; its labels say what runs here. Call it once for a registry. */
export function buildMetrics(registry: Registry, { version, revision = 'unknown' }: Build): void {
  new Gauge({
    name: 'crd_controller_build_info',
    help: 'Always 1; the labels are version and commit of this program, and the version of Node.js',
    labelNames: ['version', 'revision', 'node_version'],
    registers: [registry],
  }).set({ version, revision, node_version: process.version }, 1);
}

/** Counts log lines that could not be written; `dropped` returns their number so far. Call it once for a registry. */
export function logMetrics(registry: Registry, dropped: () => number): void {
  let counted = 0;
  const counter = new Counter({
    name: 'crd_controller_log_lines_dropped_total',
    help: 'Log lines that were dropped because they could not be written: the disk is full, or the reader is gone or too slow',
    registers: [registry],
    collect: () => {
      const total = dropped();
      counter.inc(total - counted);
      counted = total;
    },
  });
}
