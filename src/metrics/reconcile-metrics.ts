import { Gauge } from './prom-client.ts';
import type { Registry } from './registry.ts';
import { SeriesCounter, SeriesHistogram } from './series.ts';

/** The result of a sync. */
export type ReconcileResult =
  | 'done'
  | 'requeueAfter'
  /** The handler threw. The key is retried. */
  | 'error'
  /** The handler threw a `TerminalError`. The key is not retried. */
  | 'terminalError'
  /** The handler violated its contract, which corresponds to a panic in Go. The key is retried. */
  | 'panic'
  /** The sync was aborted because the process stopped. */
  | 'cutOff';

export interface SyncMetrics {
  started(): void;
  finished(result: ReconcileResult, ms: number): void;
  /** A sync exceeded its timeout. */
  timedOut(): void;
  /** A key was dropped after the maximum number of retries. */
  dropped(): void;
}

/** Records postponed syncs. */
export interface PostponeMetrics {
  /** A sync was postponed because a cache does not contain the key's own writes yet. */
  stale(): void;
  /** A hot loop was detected. */
  hotLoop(): void;
  /** A sync was postponed because its key is in a hot loop. */
  damped(): void;
}

export interface ReconcileMetrics {
  /** Creates the series of the controller `name`, which has `concurrency` workers, with value zero. */
  controller(name: string, concurrency: number): SyncMetrics;
  /** Creates the series of postponed syncs of the controller `name`, with value zero. */
  postponed(name: string): PostponeMetrics;
}

/** The buckets of controller-runtime, in seconds. */
const DURATION_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];

/** Registers controller-runtime's reconcile metrics and our metrics of postponed syncs. Called once per registry. */
export function reconcileMetrics(registry: Registry): ReconcileMetrics {
  const labelNames = ['controller'] as const;
  const registers = [registry];
  const counter = (name: string, help: string) =>
    new SeriesCounter({ name: `controller_runtime_${name}`, help, labelNames, registers });

  const total = new SeriesCounter({
    name: 'controller_runtime_reconcile_total',
    help: 'Number of reconciliations by result',
    labelNames: ['controller', 'result'],
    registers,
  });
  const errors = counter('reconcile_errors_total', 'Number of reconciliations that failed');
  const terminalErrors = counter(
    'terminal_reconcile_errors_total',
    'Number of reconciliations that failed with an error that is not retried',
  );
  const panics = counter(
    'reconcile_panics_total',
    'Number of reconciliations in which the handler violated its contract',
  );
  const timeouts = counter(
    'reconcile_timeouts_total',
    'Number of reconciliations that exceeded their timeout',
  );
  const time = new SeriesHistogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Duration of a reconciliation in seconds',
    labelNames,
    registers,
    buckets: DURATION_BUCKETS,
  });
  const slots = new Gauge({
    name: 'controller_runtime_max_concurrent_reconciles',
    help: 'Maximum number of concurrent reconciliations',
    labelNames,
    registers,
  });
  const activeWorkers = new Map<string, { readonly count: number }>();
  const active: Gauge<'controller'> = new Gauge({
    name: 'controller_runtime_active_workers',
    help: 'Number of reconciliations in progress',
    labelNames,
    registers,
    collect: () => {
      for (const [controller, { count }] of activeWorkers) active.set({ controller }, count);
    },
  });

  const ours = (name: string, help: string) =>
    new SeriesCounter({ name: `crd_controller_${name}`, help, labelNames, registers });
  const staleRequeues = ours(
    'stale_requeues_total',
    "Number of reconciliations postponed because a cache did not contain the key's own writes yet",
  );
  const hotLoops = ours(
    'hot_loops_total',
    'Number of hot loops detected: keys that their own writes enqueue again and again',
  );
  const dampedRuns = ours(
    'hot_loop_damped_runs_total',
    'Number of reconciliations postponed because their key was in a hot loop',
  );
  const dropped = ours(
    'dropped_keys_total',
    'Number of keys dropped after the maximum number of retries',
  );

  return {
    controller: (controller, concurrency) => {
      const labels = { controller };
      const ended = (result: 'success' | 'error' | 'requeue' | 'requeue_after') =>
        total.series({ controller, result });
      const succeeded = ended('success');
      const failed = ended('error');
      ended('requeue');
      const requeuedAfter = ended('requeue_after');
      const failures = errors.series(labels);
      const terminalFailures = terminalErrors.series(labels);
      const contractViolations = panics.series(labels);
      const timedOut = timeouts.series(labels);
      const droppedKeys = dropped.series(labels);
      const took = time.series(labels);
      slots.set(labels, concurrency);
      const active = { count: 0 };
      activeWorkers.set(controller, active);
      const count = (result: ReconcileResult) => {
        switch (result) {
          case 'done':
            return succeeded.inc();
          case 'requeueAfter':
            return requeuedAfter.inc();
          case 'cutOff':
            return;
          case 'terminalError':
            terminalFailures.inc();
            break;
          case 'panic':
            contractViolations.inc();
            break;
          case 'error':
        }
        failed.inc();
        failures.inc();
      };
      return {
        started: () => void active.count++,
        finished: (result, ms) => {
          active.count--;
          took.observe(ms / 1000);
          count(result);
        },
        timedOut: () => timedOut.inc(),
        dropped: () => droppedKeys.inc(),
      };
    },
    postponed: (controller) => {
      const labels = { controller };
      const stale = staleRequeues.series(labels);
      const hotLoop = hotLoops.series(labels);
      const damped = dampedRuns.series(labels);
      return {
        stale: () => stale.inc(),
        hotLoop: () => hotLoop.inc(),
        damped: () => damped.inc(),
      };
    },
  };
}

/** Records which controllers run. */
export interface ManagerMetrics {
  /** The controller was started or stopped. */
  running(controller: string, runs: boolean): void;
}

/**
 * Registers the metric of running controllers, which is 0 on a standby. Called once per registry.
 *
 * @param manager value of the label that component-base defines
 */
export function managerMetrics(registry: Registry, manager: string): ManagerMetrics {
  const running = new Gauge({
    name: 'running_managed_controllers',
    help: '1 if the controller runs in this process, otherwise 0',
    labelNames: ['name', 'manager'],
    registers: [registry],
  });
  return {
    running: (name, runs) => running.set({ name, manager }, runs ? 1 : 0),
  };
}
