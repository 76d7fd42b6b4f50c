/**
 * Metrics with the names of client-go and controller-runtime, on a prom-client registry.
 *
 * @public
 * @module
 */
export { apiServerMetrics } from './metrics/api-server-metrics.ts';
export type { ApiServerMetrics, ObjectCount, RequestLabels } from './metrics/api-server-metrics.ts';
export { customMetrics } from './metrics/custom-metrics.ts';
export type {
  CustomCounter,
  CustomGauge,
  CustomHistogram,
  CustomHistogramOptions,
  CustomMetricOptions,
  CustomMetrics,
  LabelArguments,
} from './metrics/custom-metrics.ts';
export { metricsOf } from './metrics/metrics.ts';
export type { Metrics } from './metrics/metrics.ts';
export { collectProcessMetrics } from './metrics/process-metrics.ts';
export { createRegistry, expose } from './metrics/registry.ts';
export type { MetricsText as Exposition, Registry } from './metrics/registry.ts';
