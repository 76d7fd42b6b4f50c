import { Exposition, observedSince, quantile } from '../../../util/exposition.ts';
import type { ProcessStatus } from '../../debug-pages.ts';
import type { QueuesReport } from '../../queue-pages.ts';
import type { StatusSample } from '../../status-history.ts';

/** State of a program at one time. */
export interface Snapshot {
  /** Time on the clock of the browser, in milliseconds. */
  readonly atMs: number;
  readonly status: ProcessStatus;
  readonly queues: QueuesReport;
  /** Samples of the last minutes, oldest first. */
  readonly history: readonly StatusSample[];
  readonly metrics: Exposition;
}

/** State of a controller with rates and quantiles, which are undefined without metrics. */
export interface ControllerRow {
  readonly controller: string;
  readonly queue: QueuesReport['controllers'][number];
  readonly workers: number | undefined;
  readonly syncsPerSecond: number | undefined;
  readonly errorsPerSecond: number | undefined;
  readonly waitP99Ms: number | undefined;
  readonly syncP99Ms: number | undefined;
}

/** Requests of the program by verb. */
export interface CallRow {
  readonly verb: string;
  readonly perSecond: number;
  readonly failuresPerSecond: number;
  readonly codes: readonly { readonly code: string; readonly total: number }[];
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

/** What the overview shows. */
export interface Overview {
  readonly status: ProcessStatus;
  readonly queues: QueuesReport;
  readonly controllers: readonly ControllerRow[];
  readonly calls: readonly CallRow[];
  readonly hasMetrics: boolean;
  readonly loopLagMs: number | undefined;
  /** What happened between two samples, oldest first. */
  readonly steps: readonly HistoryStep[];
}

/** Time between two samples. */
export interface HistoryStep {
  readonly sample: StatusSample;
  readonly successes: number;
  readonly failures: number;
  /** Shares of the time in which the process used a CPU, and its event loop ran code. */
  readonly cpu: number;
  readonly loop: number;
}

/** Time range of rates and quantiles in milliseconds. */
const WINDOW_MS = 60_000;

/** Time between two kept expositions, which are large. */
const EXPOSITION_MS = 10_000;

/** Collects snapshots of one program and computes rates and quantiles. */
export class Monitor {
  /** Snapshots of the window, oldest first, and the latest one. */
  #kept: Snapshot[] = [];
  #latest: Snapshot | undefined;

  get latest(): Snapshot | undefined {
    return this.#latest;
  }

  /** Returns whether the snapshot is of another process than the one before. */
  record(snapshot: Snapshot): boolean {
    const isAnother = this.#latest !== undefined && snapshot.status.upMs < this.#latest.status.upMs;
    if (isAnother) this.#kept = [];
    this.#latest = snapshot;
    const { atMs } = snapshot;
    const last = this.#kept.at(-1);
    if (!last || atMs - last.atMs >= EXPOSITION_MS) this.#kept.push(snapshot);
    while (this.#kept.length > 2 && atMs - (this.#kept[1]?.atMs ?? 0) >= WINDOW_MS) {
      this.#kept.shift();
    }
    return isAnother;
  }

  overview(): Overview | undefined {
    const latest = this.#latest;
    return latest && overviewOf(latest, this.#kept[0] ?? latest);
  }
}

const REQUESTS = 'rest_client_requests_total';
const DURATIONS = 'rest_client_request_duration_seconds';

/** Returns whether a request with this code, or `<error>` without a response, failed. */
export function isFailure(code: string): boolean {
  return !/^[123]\d\d$/.test(code);
}

/** Returns what happened between the samples. */
export function stepsOf(history: readonly StatusSample[]): HistoryStep[] {
  return history.slice(1).map((sample, at) => {
    const before = history[at] ?? sample;
    const since = (total: (sample: StatusSample) => number) =>
      Math.max(0, total(sample) - total(before));
    const ms = Math.max(1, sample.atMs - before.atMs);
    const failures = since((one) => one.failures);
    return {
      sample,
      successes: since((one) => one.syncs) - failures,
      failures,
      cpu: since(({ cpuMs }) => cpuMs) / ms,
      loop: since(({ loopActiveMs }) => loopActiveMs) / ms,
    };
  });
}

function overviewOf(latest: Snapshot, first: Snapshot): Overview {
  const { status, queues, history, metrics } = latest;
  const isFirst = latest === first;
  const windowMs = isFirst ? status.upMs : latest.atMs - first.atMs;
  const perSecond = (name: string, labels: Labels) => {
    const now = metrics.value(name, labels);
    if (now === undefined || windowMs <= 0) return undefined;
    const before = isFirst ? 0 : (first.metrics.value(name, labels) ?? 0);
    return (Math.max(0, now - before) * 1000) / windowMs;
  };
  const quantileMs = (name: string, labels: Labels, share: number) => {
    const before = isFirst ? undefined : first.metrics.buckets(name, labels);
    const value = quantile(observedSince(before, metrics.buckets(name, labels)), share);
    return value === undefined ? undefined : value * 1000;
  };
  const lag = metrics.value('nodejs_eventloop_lag_p99_seconds');
  return {
    status,
    queues,
    controllers: queues.controllers.map((queue) => {
      const { controller } = queue;
      const labels = { controller };
      return {
        controller,
        queue,
        workers: metrics.value('controller_runtime_max_concurrent_reconciles', labels),
        syncsPerSecond: perSecond('controller_runtime_reconcile_total', labels),
        errorsPerSecond: perSecond('controller_runtime_reconcile_errors_total', labels),
        waitP99Ms: quantileMs('workqueue_queue_duration_seconds', labels, 0.99),
        syncP99Ms: quantileMs('controller_runtime_reconcile_time_seconds', labels, 0.99),
      };
    }),
    calls: callRows(metrics, perSecond, quantileMs),
    hasMetrics: metrics.valuesOf(REQUESTS, 'code').length > 0,
    loopLagMs: lag === undefined ? undefined : lag * 1000,
    steps: stepsOf(history),
  };
}

type Labels = Readonly<Record<string, string>>;

function callRows(
  metrics: Exposition,
  perSecond: (name: string, labels: Labels) => number | undefined,
  quantileMs: (name: string, labels: Labels, share: number) => number | undefined,
): CallRow[] {
  const codes = metrics.valuesOf(REQUESTS, 'code');
  return metrics.valuesOf(REQUESTS, 'method').map((method) => {
    const totals = codes.flatMap((code) => {
      const total = metrics.value(REQUESTS, { code, method });
      return total === undefined ? [] : [{ code, total }];
    });
    const rateOf = (wanted: readonly { readonly code: string }[]) =>
      wanted.reduce((sum, { code }) => sum + (perSecond(REQUESTS, { code, method }) ?? 0), 0);
    return {
      verb: method,
      perSecond: rateOf(totals),
      failuresPerSecond: rateOf(totals.filter(({ code }) => isFailure(code))),
      codes: totals,
      p50Ms: quantileMs(DURATIONS, { verb: method }, 0.5),
      p99Ms: quantileMs(DURATIONS, { verb: method }, 0.99),
    };
  });
}
