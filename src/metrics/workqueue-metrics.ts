import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from './registry.ts';

/** What is asked of a queue at each scrape. */
export interface QueueState {
  /** Keys that are ready. */
  readonly length: number;
  /** For how long each key in flight has been so, in milliseconds. */
  inFlightMs(): readonly number[];
}

/** What a queue tells as it happens. */
export interface QueueMetrics {
  /** A key became ready. */
  added(): void;
  /** A key was added with a delay. */
  retried(): void;
  /** A key was handed out `ms` milliseconds after it became ready. */
  handedOut(ms: number): void;
  /** A key was given back `ms` milliseconds after it was handed out. */
  finished(ms: number): void;
}

export interface WorkqueueMetrics {
  /** The series of the queue `name`, from zero on; `state` replaces that of an earlier queue so named. */
  queue(name: string, state: QueueState): QueueMetrics;
}

/** Counts nothing. */
export const noWorkqueueMetrics: WorkqueueMetrics = {
  queue: () => ({
    added: () => undefined,
    retried: () => undefined,
    handedOut: () => undefined,
    finished: () => undefined,
  }),
};

/** Seconds, from a microsecond to a quarter of an hour. */
const DURATION_BUCKETS = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000];

/** client-go's work queue metrics, by its names. Call it once for a registry. */
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
  gauge('workqueue_depth', 'Keys that are ready to be processed', (state) => state.length);
  gauge(
    'workqueue_unfinished_work_seconds',
    'Sum of the ages of the keys in flight; a value that keeps growing means a stuck worker',
    (state) => state.inFlightMs().reduce((sum, ms) => sum + ms, 0) / 1000,
  );
  gauge(
    'workqueue_longest_running_processor_seconds',
    'Age of the key that has been in flight for longest',
    (state) => Math.max(0, ...state.inFlightMs()) / 1000,
  );

  const adds = new Counter({
    name: 'workqueue_adds_total',
    help: 'Times a key became ready',
    labelNames,
    registers,
  });
  const retries = new Counter({
    name: 'workqueue_retries_total',
    help: 'Times a key was added with a delay',
    labelNames,
    registers,
  });
  const waits = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'Time a key was ready before it was handed out',
    labelNames,
    registers,
    buckets: DURATION_BUCKETS,
  });
  const runs = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'Time a key was in flight',
    labelNames,
    registers,
    buckets: DURATION_BUCKETS,
  });

  return {
    queue: (name, state) => {
      states.set(name, state);
      adds.inc(labels(name), 0);
      retries.inc(labels(name), 0);
      waits.zero(labels(name));
      runs.zero(labels(name));
      return {
        added: () => adds.inc(labels(name)),
        retried: () => retries.inc(labels(name)),
        handedOut: (ms) => waits.observe(labels(name), ms / 1000),
        finished: (ms) => runs.observe(labels(name), ms / 1000),
      };
    },
  };
}

/** controller-runtime gives a queue its controller's name, and dashboards ask for either label. */
function labels(queue: string): { name: string; controller: string } {
  return { name: queue, controller: queue };
}
