import { observedSince, quantile } from '../../util/exposition.ts';
import type { ProcessStatus } from '../../serving/debug-pages.ts';
import type { ProgramSnapshot, QueuesPage, ShownHotLoop } from './snapshot.ts';
import type { Cause } from '../../workqueue/queue-item.ts';

/** Time range of rates and quantiles, in milliseconds. */
const WINDOW_MS = 60_000;

/** Data of the view. */
export interface MonitorView {
  readonly address: string;
  /** Why the data is not current, or that it is current again. */
  readonly notice?: { readonly text: string; readonly isError: boolean };
  /** Absent: there was no response yet. */
  readonly program?: ProgramView;
}

export interface ProgramView {
  readonly status: ProcessStatus;
  /** Time range of rates and quantiles in milliseconds; absent: since the start. */
  readonly windowMs?: number;
  readonly cpu: number | undefined;
  readonly residentBytes: number | undefined;
  readonly heapBytes: number | undefined;
  readonly loopLagMs: number | undefined;
  /** What needs attention, the worst first. */
  readonly attention: NonNullable<QueuesPage['attention']>;
  readonly queues: readonly QueueView[];
  /** The first keys of each state and queue. */
  readonly keys: readonly KeyView[];
  readonly hotLoops: readonly (ShownHotLoop & { readonly controller: string })[];
  readonly slowest: QueuesPage['slowest'];
  readonly hottest: QueuesPage['hottest'];
}

export interface QueueView {
  readonly controller: string;
  /** Objects by their condition. */
  readonly objects: QueuesPage['controllers'][number]['objects'];
  /** Start of the last sync that failed, RFC 3339. */
  readonly lastFailureAt: string | undefined;
  readonly ready: number;
  readonly delayed: number;
  readonly running: number;
  readonly limit: number | undefined;
  readonly hotLoops: number;
  readonly addsPerSecond: number | undefined;
  readonly retriesPerSecond: number | undefined;
  readonly errorsPerSecond: number | undefined;
  /** Absent: no key was dequeued. */
  readonly waitP50Ms: number | undefined;
  readonly waitP99Ms: number | undefined;
  readonly runP99Ms: number | undefined;
}

/** Key that is queued or running. */
export interface KeyView {
  readonly controller: string;
  readonly key: string;
  readonly state: 'running' | 'ready' | 'delayed';
  /** Duration of the state in milliseconds; absent for delayed keys. */
  readonly forMs?: number;
  /** Milliseconds until the key is ready; absent for other keys. */
  readonly dueInMs?: number;
  readonly causes: readonly Cause[];
}

/** Collects snapshots of one program and computes the view. */
export class ProgramMonitor {
  readonly #address: string;
  /** Snapshots of the current process, oldest first. */
  #snapshots: ProgramSnapshot[] = [];
  #lost: { readonly sinceMs: number; readonly reason: string } | undefined;
  #back: { readonly atMs: number; readonly text: string } | undefined;

  constructor(address: string) {
    this.#address = address;
  }

  record(fetchSnapshot: ProgramSnapshot): void {
    const last = this.#snapshots.at(-1);
    const isAnother = last !== undefined && fetchSnapshot.status.upMs < last.status.upMs;
    if (this.#lost || isAnother) {
      const gone = this.#lost ? ` after ${seconds(fetchSnapshot.atMs - this.#lost.sinceMs)}` : '';
      const text = isAnother ? `The program restarted${gone}` : `The program responds again${gone}`;
      this.#back = last && { atMs: fetchSnapshot.atMs, text };
    }
    this.#lost = undefined;
    if (isAnother) this.#snapshots = [];
    this.#snapshots.push(fetchSnapshot);
    while (
      this.#snapshots.length > 2 &&
      fetchSnapshot.atMs - (this.#snapshots[1]?.atMs ?? 0) >= WINDOW_MS
    ) {
      this.#snapshots.shift();
    }
  }

  /** Records a failed request. */
  recordFailure(reason: string, atMs: number): void {
    this.#lost = { sinceMs: this.#lost?.sinceMs ?? atMs, reason };
  }

  view(nowMs: number): MonitorView {
    const notice = this.#notice(nowMs);
    const fetchSnapshot = this.#snapshots.at(-1);
    return {
      address: this.#address,
      ...(notice && { notice }),
      ...(fetchSnapshot && {
        program: programView(fetchSnapshot, this.#snapshots[0] ?? fetchSnapshot),
      }),
    };
  }

  #notice(nowMs: number): MonitorView['notice'] {
    if (this.#lost) {
      const { sinceMs, reason } = this.#lost;
      const old = this.#snapshots.length > 0 ? `; showing the last values` : '';
      const text = `No response for ${seconds(nowMs - sinceMs)}: ${reason}${old}`;
      return { text, isError: true };
    }
    const back = this.#back;
    return back && nowMs - back.atMs < 10_000 ? { text: back.text, isError: false } : undefined;
  }
}

function programView(fetchSnapshot: ProgramSnapshot, first: ProgramSnapshot): ProgramView {
  const { status, queues, metrics } = fetchSnapshot;
  const isFirst = fetchSnapshot === first;
  const windowMs = isFirst ? status.upMs : fetchSnapshot.atMs - first.atMs;
  const perSecond: PerSecond = (name, labels = {}) => {
    const now = metrics.value(name, labels);
    if (now === undefined || windowMs <= 0) return undefined;
    const before = isFirst ? 0 : (first.metrics.value(name, labels) ?? 0);
    return (Math.max(0, now - before) * 1000) / windowMs;
  };
  const quantileMs: QuantileMs = (name, controller, share) => {
    const labels = { controller };
    const before = isFirst ? undefined : first.metrics.buckets(name, labels);
    const value = quantile(observedSince(before, metrics.buckets(name, labels)), share);
    return value === undefined ? undefined : value * 1000;
  };
  const lag = metrics.value('nodejs_eventloop_lag_p99_seconds');
  return {
    status,
    ...(!isFirst && { windowMs }),
    cpu: perSecond('process_cpu_seconds_total'),
    residentBytes: metrics.value('process_resident_memory_bytes'),
    heapBytes: metrics.value('nodejs_heap_size_used_bytes'),
    loopLagMs: lag === undefined ? undefined : lag * 1000,
    attention: queues.attention ?? [],
    queues: queues.controllers.map((queue) => queueView(queue, metrics, perSecond, quantileMs)),
    keys: queues.controllers.flatMap(keysOf),
    hotLoops: queues.controllers.flatMap(({ controller, hotLoops }) =>
      hotLoops.map((loop) => ({ controller, ...loop })),
    ),
    slowest: queues.slowest,
    hottest: queues.hottest,
  };
}

type PerSecond = (name: string, labels?: Readonly<Record<string, string>>) => number | undefined;

type QuantileMs = (name: string, controller: string, share: number) => number | undefined;

function queueView(
  queue: QueuesPage['controllers'][number],
  metrics: ProgramSnapshot['metrics'],
  perSecond: PerSecond,
  quantileMs: QuantileMs,
): QueueView {
  const { controller, objects, lastFailure, ready, delayed, processing, hotLoops } = queue;
  return {
    controller,
    objects,
    lastFailureAt: lastFailure?.at,
    ready: ready.count,
    delayed: delayed.count,
    running: processing.count,
    limit: metrics.value('controller_runtime_max_concurrent_reconciles', { controller }),
    hotLoops: hotLoops.length,
    addsPerSecond: perSecond('workqueue_adds_total', { controller }),
    retriesPerSecond: perSecond('workqueue_retries_total', { controller }),
    errorsPerSecond: perSecond('controller_runtime_reconcile_errors_total', { controller }),
    waitP50Ms: quantileMs('workqueue_queue_duration_seconds', controller, 0.5),
    waitP99Ms: quantileMs('workqueue_queue_duration_seconds', controller, 0.99),
    runP99Ms: quantileMs('controller_runtime_reconcile_time_seconds', controller, 0.99),
  };
}

function keysOf({
  controller,
  ready,
  delayed,
  processing,
}: QueuesPage['controllers'][number]): KeyView[] {
  return [
    ...processing.keys.map(({ key, forMs, causes }) => {
      return { controller, key, state: 'running' as const, forMs, causes };
    }),
    ...ready.keys.map(({ key, queuedMs, causes }) => {
      return { controller, key, state: 'ready' as const, forMs: queuedMs, causes };
    }),
    ...delayed.keys.map(({ key, dueInMs, causes }) => {
      return { controller, key, state: 'delayed' as const, dueInMs, causes };
    }),
  ];
}

function seconds(ms: number): string {
  return `${Math.max(0, Math.round(ms / 1000))}s`;
}
