import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from './registry.ts';

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

export interface ControllerMetrics {
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
  controller(name: string, concurrency: number): ControllerMetrics;
  /** Creates the series of postponed syncs of the controller `name`, with value zero. */
  postponed(name: string): PostponeMetrics;
}

/** Records nothing. */
export const noReconcileMetrics: ReconcileMetrics = {
  controller: () => ({
    started: () => undefined,
    finished: () => undefined,
    timedOut: () => undefined,
    dropped: () => undefined,
  }),
  postponed: () => ({ stale: () => undefined, hotLoop: () => undefined, damped: () => undefined }),
};

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
    new Counter({ name: `controller_runtime_${name}`, help, labelNames, registers });
  const gauge = (name: string, help: string) =>
    new Gauge({ name: `controller_runtime_${name}`, help, labelNames, registers });

  const total = new Counter({
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
  const time = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Duration of a reconciliation in seconds',
    labelNames,
    registers,
    buckets: DURATION_BUCKETS,
  });
  const slots = gauge('max_concurrent_reconciles', 'Maximum number of concurrent reconciliations');
  const active = gauge('active_workers', 'Number of reconciliations in progress');

  const ours = (name: string, help: string) =>
    new Counter({ name: `crd_controller_${name}`, help, labelNames, registers });
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
      for (const result of ['success', 'error', 'requeue', 'requeue_after']) {
        total.inc({ controller, result }, 0);
      }
      for (const series of [errors, terminalErrors, panics, timeouts, dropped]) {
        series.inc(labels, 0);
      }
      time.zero(labels);
      slots.set(labels, concurrency);
      active.set(labels, 0);
      const failed = () => {
        total.inc({ controller, result: 'error' });
        errors.inc(labels);
      };
      const count: Record<ReconcileResult, () => void> = {
        done: () => total.inc({ controller, result: 'success' }),
        requeueAfter: () => total.inc({ controller, result: 'requeue_after' }),
        error: failed,
        terminalError: () => {
          failed();
          terminalErrors.inc(labels);
        },
        panic: () => {
          failed();
          panics.inc(labels);
        },
        cutOff: () => undefined,
      };
      return {
        started: () => active.inc(labels),
        finished: (result, ms) => {
          active.dec(labels);
          time.observe(labels, ms / 1000);
          count[result]();
        },
        timedOut: () => timeouts.inc(labels),
        dropped: () => dropped.inc(labels),
      };
    },
    postponed: (controller) => {
      const labels = { controller };
      for (const series of [staleRequeues, hotLoops, dampedRuns]) series.inc(labels, 0);
      return {
        stale: () => staleRequeues.inc(labels),
        hotLoop: () => hotLoops.inc(labels),
        damped: () => dampedRuns.inc(labels),
      };
    },
  };
}

/** Records which controllers run. */
export interface ManagerMetrics {
  /** The controller was started or stopped. */
  running(controller: string, runs: boolean): void;
}

/** The value of the label `manager`, which component-base defines. */
const MANAGER = 'crd-controller';

/** Registers the metric of running controllers, which is 0 on a standby. Called once per registry. */
export function managerMetrics(registry: Registry): ManagerMetrics {
  const running = new Gauge({
    name: 'running_managed_controllers',
    help: '1 if the controller runs in this process, otherwise 0',
    labelNames: ['name', 'manager'],
    registers: [registry],
  });
  return {
    running: (name, runs) => running.set({ name, manager: MANAGER }, runs ? 1 : 0),
  };
}
