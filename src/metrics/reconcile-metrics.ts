import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from './registry.ts';

/** How one run of a handler ended. */
export type ReconcileResult =
  | 'done'
  | 'requeueAfter'
  /** It threw, and is retried. */
  | 'error'
  /** It threw a `TerminalError`, and is not. */
  | 'terminalError'
  /** It did not keep to its contract: what a panic is in Go. Retried as an error is. */
  | 'panic'
  /** The daemon stopped before it ended. */
  | 'cutOff';

export interface ControllerMetrics {
  started(): void;
  finished(result: ReconcileResult, ms: number): void;
  /** A run took longer than runs may. */
  timedOut(): void;
  /** A key was given up: it failed more often than it may be retried. */
  dropped(): void;
}

/** What keeps keys from running at once. */
export interface HoldMetrics {
  /** A run was postponed because a cache lags behind the key's own writes. */
  stale(): void;
  /** A hot loop was found. */
  hotLoop(): void;
  /** A run was postponed because its key is in a hot loop. */
  damped(): void;
}

export interface ReconcileMetrics {
  /** The series of the controller `name`, which has `concurrency` slots, from zero on. */
  controller(name: string, concurrency: number): ControllerMetrics;
  /** The series of the controller `name` about runs that were held back, from zero on. */
  holds(name: string): HoldMetrics;
}

/** Counts nothing. */
export const noReconcileMetrics: ReconcileMetrics = {
  controller: () => ({
    started: () => undefined,
    finished: () => undefined,
    timedOut: () => undefined,
    dropped: () => undefined,
  }),
  holds: () => ({ stale: () => undefined, hotLoop: () => undefined, damped: () => undefined }),
};

/** Seconds; controller-runtime's. */
const DURATION_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];

/**
 * controller-runtime's reconcile metrics, by its names, and our own about runs that were held back.
 * Call it once for a registry.
 */
export function reconcileMetrics(registry: Registry): ReconcileMetrics {
  const labelNames = ['controller'] as const;
  const registers = [registry];
  const counter = (name: string, help: string) =>
    new Counter({ name: `controller_runtime_${name}`, help, labelNames, registers });
  const gauge = (name: string, help: string) =>
    new Gauge({ name: `controller_runtime_${name}`, help, labelNames, registers });

  const total = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Runs of the handler, by how they ended',
    labelNames: ['controller', 'result'],
    registers,
  });
  const errors = counter('reconcile_errors_total', 'Runs that ended in an error of any kind');
  const terminalErrors = counter(
    'terminal_reconcile_errors_total',
    'Runs that ended in an error which is not retried',
  );
  const panics = counter('reconcile_panics_total', 'Runs in which the handler broke its contract');
  const timeouts = counter('reconcile_timeouts_total', 'Runs that took longer than runs may');
  const time = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Duration of a run',
    labelNames,
    registers,
    buckets: DURATION_BUCKETS,
  });
  const slots = gauge('max_concurrent_reconciles', 'Runs that may be under way at once');
  const active = gauge('active_workers', 'Runs under way');

  const ours = (name: string, help: string) =>
    new Counter({ name: `crd_controller_${name}`, help, labelNames, registers });
  const staleRequeues = ours(
    'stale_requeues_total',
    "Runs postponed because a cache lagged behind the key's own writes",
  );
  const hotLoops = ours('hot_loops_total', 'Hot loops found: keys that kept waking themselves');
  const dampedRuns = ours(
    'hot_loop_damped_runs_total',
    'Runs postponed because their key was in a hot loop',
  );
  const dropped = ours(
    'dropped_keys_total',
    'Keys given up because they failed more often than they may be retried',
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
    holds: (controller) => {
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

/** What a manager tells of those that it runs. */
export interface ManagerMetrics {
  /** The controller runs, or no longer does. */
  running(controller: string, runs: boolean): void;
}

/** The name that component-base has for the programs of a control plane. */
const MANAGER = 'crd-controller';

/** Which controllers run in this process: on a standby none do. Call it once for a registry. */
export function managerMetrics(registry: Registry): ManagerMetrics {
  const running = new Gauge({
    name: 'running_managed_controllers',
    help: 'Whether a controller runs in this process: 1 does, 0 does not',
    labelNames: ['name', 'manager'],
    registers: [registry],
  });
  return {
    running: (name, runs) => running.set({ name, manager: MANAGER }, runs ? 1 : 0),
  };
}
