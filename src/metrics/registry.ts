import { Registry } from 'prom-client';
import { processMetrics as collectProcessMetrics } from './process-metrics.ts';

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
  const { processMetrics = false } = options;
  const registry = new Registry();
  if (processMetrics) collectProcessMetrics(registry);
  return registry;
}

/** All series as they are now, in Prometheus' text format. */
export async function expose(registry: Registry): Promise<Exposition> {
  return { contentType: registry.contentType, text: await registry.metrics() };
}
