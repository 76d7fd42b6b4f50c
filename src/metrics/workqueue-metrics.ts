import { Gauge } from './prom-client.ts';
import type { Registry } from './registry.ts';
import { SeriesCounter, SeriesHistogram } from './series.ts';

/** State of a queue, which is read at each scrape. */
export interface QueueState {
  /** Number of keys that are ready. */
  readonly length: number;
  /** Returns the time that each key has been in flight, in milliseconds. */
  inFlightMs(): readonly number[];
}

/** Records the activity of a queue. */
export interface QueueMetrics {
  /** A key became ready. */
  added(): void;
  /** A key was added with a delay. */
  retried(): void;
  /** A worker took a key that waited `ms` milliseconds. */
  taken(ms: number): void;
  /** A worker finished a key `ms` milliseconds after it took it. */
  finished(ms: number): void;
}

export interface WorkqueueMetrics {
  /** Creates the series of the queue `name` with value zero. `state` replaces an earlier one of the same name. */
  queue(name: string, state: QueueState): QueueMetrics;
}

/** Seconds, from 1 µs to 1000 s. */
const DURATION_BUCKETS = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000];

/** Registers client-go's work queue metrics. Called once per registry. */
export function workqueueMetrics(registry: Registry): WorkqueueMetrics {
  const states = new Map<string, QueueState>();
  const labelNames = ['name', 'controller'] as const;
  const registers = [registry];

  const gauge = (name: string, help: string, value: (state: QueueState) => number) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        for (const [queue, state] of states) this.set(labels(queue), value(state));
      },
    });
  gauge(
    'workqueue_depth',
    'Number of keys that are ready to be processed',
    (state) => state.length,
  );
  gauge(
    'workqueue_unfinished_work_seconds',
    'Sum of the times in seconds that keys have been in flight; a growing value indicates stuck workers',
    (state) => state.inFlightMs().reduce((sum, ms) => sum + ms, 0) / 1000,
  );
  gauge(
    'workqueue_longest_running_processor_seconds',
    'Longest time in seconds that a key has been in flight',
    (state) => Math.max(0, ...state.inFlightMs()) / 1000,
  );

  const adds = new SeriesCounter({
    name: 'workqueue_adds_total',
    help: 'Number of times a key became ready',
    labelNames,
    registers,
  });
  const retries = new SeriesCounter({
    name: 'workqueue_retries_total',
    help: 'Number of times a key was added with a delay',
    labelNames,
    registers,
  });
  const waits = new SeriesHistogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'Time in seconds from when a key became ready, or the workers started, until a worker took it',
    labelNames,
    registers,
    buckets: DURATION_BUCKETS,
  });
  const runs = new SeriesHistogram({
    name: 'workqueue_work_duration_seconds',
    help: 'Time in seconds that a key was in flight',
    labelNames,
    registers,
    buckets: DURATION_BUCKETS,
  });

  return {
    queue: (name, state) => {
      states.set(name, state);
      const added = adds.series(labels(name));
      const retried = retries.series(labels(name));
      const waited = waits.series(labels(name));
      const worked = runs.series(labels(name));
      return {
        added: () => added.inc(),
        retried: () => retried.inc(),
        taken: (ms) => waited.observe(ms / 1000),
        finished: (ms) => worked.observe(ms / 1000),
      };
    },
  };
}

/** In controller-runtime a queue has the name of its controller. Dashboards use either label. */
function labels(queue: string): { name: string; controller: string } {
  return { name: queue, controller: queue };
}
