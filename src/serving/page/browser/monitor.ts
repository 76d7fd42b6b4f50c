import { Exposition, observedSince, quantile } from '../../../util/exposition.ts';
import type { ProcessStatus, ProcessUsage } from '../../debug-pages.ts';
import type { QueuesReport } from '../../queue-pages.ts';

/** State of a program at one time. */
export interface Snapshot {
  /** Time on the clock of the browser, in milliseconds. */
  readonly atMs: number;
  readonly status: ProcessStatus;
  readonly queues: QueuesReport;
  readonly metrics: Exposition;
}

/** State of a controller with rates and quantiles. */
export interface ControllerRow {
  readonly controller: string;
  readonly ready: number;
  readonly delayed: number;
  readonly running: number;
  /** Undefined without metrics. */
  readonly workers: number | undefined;
  readonly oldestMs: number;
  readonly hotLoops: number;
  readonly syncsPerSecond: number | undefined;
  readonly errorsPerSecond: number | undefined;
  readonly waitP99Ms: number | undefined;
  readonly syncP99Ms: number | undefined;
  /** Ready keys at the times of `Overview.times`. */
  readonly depths: readonly number[];
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
  readonly cpu: number | undefined;
  /** Share of the time in which the event loop runs code. */
  readonly loop: number | undefined;
  readonly loopLagMs: number | undefined;
  /** Ages of the points of all series in milliseconds, oldest first. */
  readonly ages: readonly number[];
  readonly residentBytes: readonly number[];
  readonly cpus: readonly number[];
  readonly loops: readonly number[];
  readonly successes: readonly number[];
  readonly failures: readonly number[];
}

/** Time range of rates and quantiles, and of series, in milliseconds. */
const WINDOW_MS = 60_000;
const SERIES_MS = 180_000;

/** Time between two kept expositions, which are large. */
const EXPOSITION_MS = 10_000;

/** Figures of one time that series need. */
interface Point {
  readonly atMs: number;
  readonly depths: ReadonlyMap<string, number>;
  readonly usage: ProcessUsage;
  readonly calls: number;
  readonly failures: number;
}

/** Collects snapshots of one program and computes rates, quantiles and series. */
export class Monitor {
  #points: Point[] = [];
  /** Snapshots of the window, oldest first, and the latest one. */
  #kept: Snapshot[] = [];
  #latest: Snapshot | undefined;

  get latest(): Snapshot | undefined {
    return this.#latest;
  }

  /** Returns whether the snapshot is of another process than the one before. */
  record(snapshot: Snapshot): boolean {
    const isAnother = this.#latest !== undefined && snapshot.status.upMs < this.#latest.status.upMs;
    if (isAnother) {
      this.#points = [];
      this.#kept = [];
    }
    this.#latest = snapshot;
    const { atMs } = snapshot;
    const last = this.#kept.at(-1);
    if (!last || atMs - last.atMs >= EXPOSITION_MS) this.#kept.push(snapshot);
    while (this.#kept.length > 1 && atMs - (this.#kept[1]?.atMs ?? atMs) >= WINDOW_MS) {
      this.#kept.shift();
    }
    this.#points.push(pointOf(snapshot));
    while (atMs - (this.#points[0]?.atMs ?? atMs) > SERIES_MS) this.#points.shift();
    return isAnother;
  }

  /** Returns what the overview shows, or undefined before the first snapshot. */
  overview(): Overview | undefined {
    const latest = this.#latest;
    const first = this.#kept[0];
    return latest && first && overviewOf(latest, first, this.#points);
  }
}

function pointOf({ atMs, status, queues, metrics }: Snapshot): Point {
  const codes = metrics.valuesOf(REQUESTS, 'code');
  const total = (wanted: readonly string[]) =>
    wanted.reduce((sum, code) => sum + (metrics.value(REQUESTS, { code }) ?? 0), 0);
  return {
    atMs,
    depths: new Map(queues.controllers.map(({ controller, ready }) => [controller, ready.count])),
    usage: status.process,
    calls: total(codes),
    failures: total(codes.filter(isFailure)),
  };
}

const REQUESTS = 'rest_client_requests_total';
const DURATIONS = 'rest_client_request_duration_seconds';

/** Returns whether a request with this code, or `<error>` without a response, failed. */
export function isFailure(code: string): boolean {
  return !/^[123]\d\d$/.test(code);
}

function overviewOf(latest: Snapshot, first: Snapshot, points: readonly Point[]): Overview {
  const { status, queues, metrics } = latest;
  const isFirst = latest === first;
  const windowMs = isFirst ? status.upMs : latest.atMs - first.atMs;
  const perSecond = (name: string, labels: Readonly<Record<string, string>>) => {
    const now = metrics.value(name, labels);
    if (now === undefined || windowMs <= 0) return undefined;
    const before = isFirst ? 0 : (first.metrics.value(name, labels) ?? 0);
    return (Math.max(0, now - before) * 1000) / windowMs;
  };
  const quantileMs = (name: string, labels: Readonly<Record<string, string>>, share: number) => {
    const before = isFirst ? undefined : first.metrics.buckets(name, labels);
    const value = quantile(observedSince(before, metrics.buckets(name, labels)), share);
    return value === undefined ? undefined : value * 1000;
  };
  const lag = metrics.value('nodejs_eventloop_lag_p99_seconds');
  const steps = points.slice(1).map((point, at) => [points[at] ?? point, point] as const);
  const shares = (spent: (usage: ProcessUsage) => number) =>
    steps.map(([before, now]) => {
      const ms = now.atMs - before.atMs;
      return ms > 0 ? Math.max(0, (spent(now.usage) - spent(before.usage)) / ms) : 0;
    });
  const cpus = shares(({ cpuMs }) => cpuMs);
  const loops = shares(({ loopActiveMs }) => loopActiveMs);
  const rates = (count: (point: Point) => number) =>
    steps.map(([before, now]) => {
      const ms = now.atMs - before.atMs;
      return ms > 0 ? Math.max(0, (count(now) - count(before)) * 1000) / ms : 0;
    });
  return {
    status,
    queues,
    controllers: queues.controllers.map(({ controller, ready, delayed, processing, hotLoops }) => ({
      controller,
      ready: ready.count,
      delayed: delayed.count,
      running: processing.count,
      workers: metrics.value('controller_runtime_max_concurrent_reconciles', { controller }),
      oldestMs: ready.oldestMs,
      hotLoops: hotLoops.length,
      syncsPerSecond: perSecond('controller_runtime_reconcile_total', { controller }),
      errorsPerSecond: perSecond('controller_runtime_reconcile_errors_total', { controller }),
      waitP99Ms: quantileMs('workqueue_queue_duration_seconds', { controller }, 0.99),
      syncP99Ms: quantileMs('controller_runtime_reconcile_time_seconds', { controller }, 0.99),
      depths: points.map(({ depths }) => depths.get(controller) ?? 0),
    })),
    calls: callRows(metrics, perSecond, quantileMs),
    hasMetrics: metrics.valuesOf(REQUESTS, 'code').length > 0,
    cpu: cpus.at(-1),
    loop: loops.at(-1),
    loopLagMs: lag === undefined ? undefined : lag * 1000,
    ages: points.map(({ atMs }) => latest.atMs - atMs),
    residentBytes: points.map(({ usage }) => usage.residentBytes),
    cpus,
    loops,
    successes: rates(({ calls, failures }) => calls - failures),
    failures: rates(({ failures }) => failures),
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
