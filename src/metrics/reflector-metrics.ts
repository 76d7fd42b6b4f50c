import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from './registry.ts';

/** Which informer a series is about. Values come from configuration, never from objects. */
export interface InformerLabels {
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** What is asked of an informer at each scrape. */
export interface InformerState {
  /** Deltas that wait to be processed. */
  readonly queued: number;
  /** Objects in the store. */
  readonly objects: number;
  /** How far the store has come. */
  readonly storeResourceVersion: string;
  /** How far the reflector has come. */
  readonly reflectorResourceVersion: string;
  /** For how long nothing has been heard from the server, in milliseconds. */
  readonly silentMs: number;
  /**
   * When the server last told how far it has come, by a list, an event or a bookmark: milliseconds
   * since the epoch; undefined before the first.
   */
  readonly toldAtMs: number | undefined;
}

/** What an informer and its reflector tell as it happens. */
export interface InformerMetrics {
  /** The whole state was fetched, by a list or a stream, in `ms` milliseconds. */
  listed(ms: number, items: number): void;
  watchStarted(): void;
  /** A watch ended after `ms` milliseconds; `short`: within a second and without an event. */
  watchEnded(ms: number, events: number, short: boolean): void;
  /** A watch was given up because nothing arrived, or its connection answered no ping. */
  watchStalled(): void;
  /** The server was found to have lost its history, as after a restore of etcd. */
  historyLost(): void;
  /** A run of deltas was processed, handlers included, in `ms` milliseconds. */
  processed(ms: number): void;
  /** A handler threw, or broke its contract. */
  handlerFailed(): void;
  /** An object could not be used: malformed, or refused by the transform or an index function. */
  objectRefused(): void;
}

export interface ReflectorMetrics {
  /** The series of one informer, from zero on; `state` replaces that of an earlier one so named. */
  informer(labels: InformerLabels, state: InformerState): InformerMetrics;
}

/** Counts nothing. */
export const noInformerMetrics: InformerMetrics = {
  listed: () => undefined,
  watchStarted: () => undefined,
  watchEnded: () => undefined,
  watchStalled: () => undefined,
  historyLost: () => undefined,
  processed: () => undefined,
  handlerFailed: () => undefined,
  objectRefused: () => undefined,
};

/** Counts nothing. */
export const noReflectorMetrics: ReflectorMetrics = { informer: () => noInformerMetrics };

/** Seconds; a list answers in milliseconds from a watch cache and in minutes from a sick etcd. */
const LIST_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** Seconds; a healthy watch lives for five to ten minutes. */
const WATCH_SECONDS = [1, 5, 15, 60, 120, 300, 360, 420, 480, 540, 600, 1200];
const COUNTS = [0, 1, 10, 100, 1000, 10_000, 100_000];
/** Seconds, from ten microseconds to ten seconds. */
const PROCESSING_SECONDS = [1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10];

/** client-go's reflector and informer metrics, by its names, and ours. Call it once for a registry. */
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

  const lists = counter('reflector_lists_total', 'Times the whole state was fetched');
  const listDuration = histogram(
    'reflector_list_duration_seconds',
    'Time it took to fetch the whole state',
    LIST_SECONDS,
  );
  const listItems = histogram('reflector_items_per_list', 'Objects in the whole state', COUNTS);
  const watches = counter('reflector_watches_total', 'Watches begun');
  const shortWatches = counter(
    'reflector_short_watches_total',
    'Watches that ended within a second, without an event',
  );
  const watchDuration = histogram(
    'reflector_watch_duration_seconds',
    'Time a watch stood',
    WATCH_SECONDS,
  );
  const watchItems = histogram('reflector_items_per_watch', 'Events of a watch', COUNTS);
  const stalls = counter(
    'crd_controller_watch_stalls_total',
    'Watches given up because nothing arrived, or their connection answered no ping',
  );
  const historyLosses = counter(
    'crd_controller_history_losses_total',
    'Times the server was found to have lost its history, as after a restore of etcd',
  );
  const handlerErrors = counter(
    'crd_controller_informer_handler_errors_total',
    'Event handlers that threw or broke their contract',
  );
  const refusals = counter(
    'crd_controller_informer_refused_objects_total',
    'Objects that could not be cached or indexed as they came',
  );
  const processing = new Histogram({
    name: 'informer_processing_latency_seconds',
    help: 'Time to process a run of deltas, event handlers included',
    labelNames: informerLabels,
    registers,
    buckets: PROCESSING_SECONDS,
  });
  gauge('informer_queued_items', 'Deltas that wait to be processed', (state) => state.queued);
  gauge(
    'crd_controller_informer_age_seconds',
    'Time since the last sign of life of the server: a byte, a list, or the answer to a ping',
    (state) => state.silentMs / 1000,
  );
  gauge(
    'crd_controller_informer_last_event_or_bookmark_timestamp_seconds',
    'When the server last told how far it has come: by a list, an event or a bookmark',
    (state) => (state.toldAtMs === undefined ? undefined : state.toldAtMs / 1000),
  );
  gauge(
    'informer_store_resource_version',
    'The last 15 digits of the resourceVersion that the store has reached',
    (state) => lastDigits(state.storeResourceVersion),
  );
  registry.registerMetric(
    new Gauge({
      name: 'reflector_last_resource_version',
      help: 'The last 15 digits of the resourceVersion that the reflector has reached; of several reflectors of a resource, the one behind the others',
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
      help: 'Objects in the caches of a resource',
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
      const processed = processing.labels({ ...labels });
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

/** `counts.v1.demo.mark8s.io`: what kubectl calls a resource in full. */
function reflectorName({ group, version, resource }: InformerLabels): string {
  return [resource, version, ...(group ? [group] : [])].join('.');
}

/** A sample is a double; 15 digits are exact in one, and growth still shows. */
function lastDigits(resourceVersion: string): number {
  return /^[0-9]+$/.test(resourceVersion) ? Number(resourceVersion.slice(-15)) : 0;
}
