/**
 * The part of prom-client that a program with metrics needs. Its entry point also loads pushing, clusters, summaries, and the
 * metrics of the process with OpenTelemetry: 80 modules instead of 8.
 */
import type * as PromClient from 'prom-client';
// @ts-expect-error -- only the entry point has types
import counter from 'prom-client/lib/counter.js';
// @ts-expect-error -- only the entry point has types
import gauge from 'prom-client/lib/gauge.js';
// @ts-expect-error -- only the entry point has types
import histogram from 'prom-client/lib/histogram.js';
// @ts-expect-error -- only the entry point has types
import registry from 'prom-client/lib/registry.js';

export const Counter = counter as typeof PromClient.Counter;
export type Counter<T extends string = string> = PromClient.Counter<T>;

export const Gauge = gauge as typeof PromClient.Gauge;
export type Gauge<T extends string = string> = PromClient.Gauge<T>;

export const Histogram = histogram as typeof PromClient.Histogram;
export type Histogram<T extends string = string> = PromClient.Histogram<T>;

export const MetricRegistry = registry as typeof PromClient.Registry;
