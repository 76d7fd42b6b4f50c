import { getHeapStatistics } from 'node:v8';
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const OPTIONS: OptionNames<RegistryOptions> = {
  processMetrics: true,
};

export type { Registry };

export interface RegistryOptions {
  /**
   * Also collect the process's and Node's own metrics (`process_*`, `nodejs_*`, and the limit of the
   * heap). They observe the whole process, so one registry of a process should.
   * @default false
   */
  readonly processMetrics?: boolean;
}

/** What a scrape is answered with. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/** The series of one manager. Nothing is registered globally, so two of them share nothing. */
export function createRegistry(options: RegistryOptions = {}): Registry {
  checkOptions(options, OPTIONS, 'createRegistry');
  const { processMetrics = false } = options;
  const registry = new Registry();
  if (processMetrics) collectProcessMetrics(registry);
  return registry;
}

/** All series as they are now, in Prometheus' text format. */
export async function expose(registry: Registry): Promise<Exposition> {
  return { contentType: registry.contentType, text: await registry.metrics() };
}

/**
 * The process's and Node's own metrics (`process_*`, `nodejs_*`), and how much heap there may be: used
 * heap says little without it. They observe the whole process. Call it once for a registry.
 */
function collectProcessMetrics(registry: Registry): void {
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
