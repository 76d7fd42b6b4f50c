import { HttpClient } from '../../client/http-client.ts';
import { controllerManager } from '../../manager/run-controllers.ts';
import { customMetrics } from '../../metrics/custom-metrics.ts';
import type { CustomMetricOptions, CustomMetrics } from '../../metrics/custom-metrics.ts';
import { metricsOf } from '../../metrics/metrics.ts';
import { createRegistry } from '../../metrics/registry.ts';
import { flagValues, loadBuilders } from './program.ts';
import type { ProgramOptions } from './program.ts';

/** A metric of a program's own. */
export interface DeclaredMetric {
  readonly type: keyof CustomMetrics;
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/**
 * Returns the custom metrics that the controllers and webhooks of a program request when they are built, by name. They get the
 * defaults of the flags, and a client that sends no requests.
 */
export async function declaredMetrics(program: ProgramOptions): Promise<DeclaredMetric[]> {
  const { controllers, webhooks } = program;
  const builders = await loadBuilders(program, Object.keys(controllers));
  const flags: Readonly<Record<string, unknown>> = flagValues(program);
  const declared = new Map<string, DeclaredMetric>();
  const handler = () =>
    Promise.reject(new Error('controllers must send no request before they are started'));
  controllerManager({
    client: new HttpClient({ handler, server: 'none' }),
    metrics: { ...metricsOf(createRegistry()), custom: recording(declared) },
    controllers: (kit) => {
      if (typeof webhooks === 'function') webhooks(kit, flags);
      return [...builders.values()].flatMap((build) => build(kit, flags));
    },
  });
  return [...declared.values()].toSorted((left, right) => (left.name < right.name ? -1 : 1));
}

/** Returns custom metrics whose values are dropped, and which record what is requested. */
function recording(declared: Map<string, DeclaredMetric>): CustomMetrics {
  const custom = customMetrics();
  const record = (
    type: DeclaredMetric['type'],
    { name, help, labels = [] }: CustomMetricOptions<string>,
  ) => declared.set(name, { type, name, help, labels });
  return {
    counter: (options) => {
      record('counter', options);
      return custom.counter(options);
    },
    gauge: (options) => {
      record('gauge', options);
      return custom.gauge(options);
    },
    histogram: (options) => {
      record('histogram', options);
      return custom.histogram(options);
    },
  };
}
