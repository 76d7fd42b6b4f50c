import { Counter, Gauge, Histogram } from './prom-client.ts';
import type { Registry } from './registry.ts';
import { SeriesHistogram } from './series.ts';

/** Labels of an informer. Their values come from configuration, never from objects. */
export interface InformerLabels {
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** State of an informer, which is read at each scrape. */
export interface InformerState {
  /** Number of deltas in the queue. */
  readonly queued: number;
  /** Number of objects in the store. */
  readonly objects: number;
  /** The latest resourceVersion in the store. */
  readonly storeResourceVersion: string;
  /** The latest resourceVersion of the reflector. */
  readonly reflectorResourceVersion: string;
  /** Time since the last activity of the server, in milliseconds. */
  readonly inactiveMs: number;
  /**
   * Time of the last list, event or bookmark, in milliseconds since the epoch. Undefined before the first
   * one.
   */
  readonly lastProgressMs: number | undefined;
}

/** Records the activity of an informer and its reflector. */
export interface InformerMetrics {
  /** All objects were fetched by a list or a streaming list, in `ms` milliseconds. */
  listed(ms: number, items: number): void;
  watchStarted(): void;
  /** A watch ended after `ms` milliseconds. `short` means within a second and without an event. */
  watchEnded(ms: number, events: number, short: boolean): void;
  /** A watch was ended because nothing arrived or its connection did not answer a ping. */
  watchStalled(): void;
  /** The server lost its history, for example by a restore of etcd. */
  historyLost(): void;
  /** A batch of deltas was processed by store and handlers in `ms` milliseconds. */
  processed(ms: number): void;
  /** An event handler threw or violated its contract. */
  handlerFailed(): void;
  /** An object was not cached: it was malformed, or a transform or index function failed. */
  objectRefused(): void;
}

export interface ReflectorMetrics {
  /** Creates the series of an informer with value zero. `state` replaces an earlier one of the same name. */
  informer(labels: InformerLabels, state: InformerState): InformerMetrics;
}

/** Seconds. A list takes milliseconds from a watch cache and minutes from an overloaded etcd. */
const LIST_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** Seconds. A healthy watch lasts for five to ten minutes. */
const WATCH_SECONDS = [1, 5, 15, 60, 120, 300, 360, 420, 480, 540, 600, 1200];
const COUNTS = [0, 1, 10, 100, 1000, 10_000, 100_000];
/** Seconds, from 10 µs to 10 s. */
const PROCESSING_SECONDS = [1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10];

/** Registers client-go's reflector and informer metrics and ours. Called once per registry. */
export function reflectorMetrics(registry: Registry): ReflectorMetrics {
  const informers = new Map<string, { labels: InformerLabels; state: InformerState }>();
  const registers = [registry];
  const reflectorLabels = ['name'] as const;
  const informerLabels = ['name', 'group', 'version', 'resource'] as const;

  const counter = (name: string, help: string) =>
    new Counter({ name, help, labelNames: reflectorLabels, registers });
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, labelNames: reflectorLabels, registers, buckets });
  const gauge = (name: string, help: string, value: (state: InformerState) => number | undefined) =>
    new Gauge({
      name,
      help,
      labelNames: informerLabels,
      registers,
      collect() {
        for (const { labels, state } of informers.values()) {
          const current = value(state);
          if (current !== undefined) this.set({ ...labels }, current);
        }
      },
    });

  const lists = counter('reflector_lists_total', 'Number of lists');
  const listDuration = histogram(
    'reflector_list_duration_seconds',
    'Duration of a list in seconds',
    LIST_SECONDS,
  );
  const listItems = histogram('reflector_items_per_list', 'Number of objects in a list', COUNTS);
  const watches = counter('reflector_watches_total', 'Number of watches');
  const shortWatches = counter(
    'reflector_short_watches_total',
    'Number of watches that ended within a second and without an event',
  );
  const watchDuration = histogram(
    'reflector_watch_duration_seconds',
    'Duration of a watch in seconds',
    WATCH_SECONDS,
  );
  const watchItems = histogram('reflector_items_per_watch', 'Number of events of a watch', COUNTS);
  const stalls = counter(
    'crd_controller_watch_stalls_total',
    'Number of watches that were ended because nothing arrived or their connection did not answer a ping',
  );
  const historyLosses = counter(
    'crd_controller_history_losses_total',
    'Number of times the server lost its history, for example by a restore of etcd',
  );
  const handlerErrors = counter(
    'crd_controller_informer_handler_errors_total',
    'Number of calls in which an event handler threw or violated its contract',
  );
  const refusals = counter(
    'crd_controller_informer_refused_objects_total',
    'Number of objects that could not be cached or indexed',
  );
  const processing = new SeriesHistogram({
    name: 'informer_processing_latency_seconds',
    help: 'Time in seconds to process a batch of deltas, including event handlers',
    labelNames: informerLabels,
    registers,
    buckets: PROCESSING_SECONDS,
  });
  gauge('informer_queued_items', 'Number of deltas in the queue', (state) => state.queued);
  gauge(
    'crd_controller_informer_age_seconds',
    'Time in seconds since the last activity of the server: a received byte, a list, or the answer to a ping',
    (state) => state.inactiveMs / 1000,
  );
  gauge(
    'crd_controller_informer_last_event_or_bookmark_timestamp_seconds',
    'Time of the last list, event or bookmark, in seconds since the epoch',
    (state) => (state.lastProgressMs === undefined ? undefined : state.lastProgressMs / 1000),
  );
  gauge(
    'informer_store_resource_version',
    'Last 15 digits of the latest resourceVersion in the store',
    (state) => lastDigits(state.storeResourceVersion),
  );
  registry.registerMetric(
    new Gauge({
      name: 'reflector_last_resource_version',
      help: 'Last 15 digits of the latest resourceVersion of the reflector; the lowest one if a resource has several reflectors',
      labelNames: reflectorLabels,
      registers: [],
      collect() {
        const least = new Map<string, number>();
        for (const { labels, state } of informers.values()) {
          const name = reflectorName(labels);
          const reached = lastDigits(state.reflectorResourceVersion);
          least.set(name, Math.min(reached, least.get(name) ?? reached));
        }
        for (const [name, reached] of least) this.set({ name }, reached);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: 'crd_controller_cache_objects',
      help: 'Number of objects in the caches of a resource',
      labelNames: ['resource'] as const,
      registers: [],
      collect() {
        this.reset();
        for (const { labels, state } of informers.values()) {
          this.inc({ resource: reflectorName(labels) }, state.objects);
        }
      },
    }),
  );

  return {
    informer: (labels, state) => {
      informers.set(labels.name, { labels, state });
      const name = { name: reflectorName(labels) };
      for (const series of [
        lists,
        watches,
        shortWatches,
        stalls,
        historyLosses,
        handlerErrors,
        refusals,
      ]) {
        series.inc(name, 0);
      }
      const processed = processing.series({ ...labels });
      return {
        listed: (ms, items) => {
          lists.inc(name);
          listDuration.observe(name, ms / 1000);
          listItems.observe(name, items);
        },
        watchStarted: () => watches.inc(name),
        watchEnded: (ms, events, short) => {
          if (short) shortWatches.inc(name);
          watchDuration.observe(name, ms / 1000);
          watchItems.observe(name, events);
        },
        watchStalled: () => stalls.inc(name),
        historyLost: () => historyLosses.inc(name),
        processed: (ms) => processed.observe(ms / 1000),
        handlerFailed: () => handlerErrors.inc(name),
        objectRefused: () => refusals.inc(name),
      };
    },
  };
}

/** Returns the full name of a resource in kubectl: `counts.v1.demo.mark8s.io`. */
function reflectorName({ group, version, resource }: InformerLabels): string {
  return [resource, version, ...(group ? [group] : [])].join('.');
}

/** A sample is a double, which is exact up to 15 digits. */
function lastDigits(resourceVersion: string): number {
  return /^[0-9]+$/.test(resourceVersion) ? Number(resourceVersion.slice(-15)) : 0;
}
