import type { SyncView } from '../../controller-view.ts';
import { Chart, round } from './charts.tsx';
import { duration, timeOfDay } from '../../words.ts';
import { isFailedResult } from '../../words.ts';

/** Width of the timelines in their own units. */
const WIDTH = 1000;

/** Part of a timeline: kind, which is its class, and times in milliseconds. */
interface Segment {
  readonly kind: string;
  readonly fromMs: number;
  readonly ms: number;
  readonly label: string;
}

/** Returns the time that a sync took from its first cause to its end. */
export function totalMs(
  { delayedMs, queuedMs, end }: SyncView,
  nowMs: number,
  startedMs: number,
): number {
  return delayedMs + queuedMs + (end ? end.tookMs : Math.max(0, nowMs - startedMs));
}

/**
 * Bar of one sync: its delay, its wait for a worker, and its run with the API calls below. All bars of a key have
 * the same scale.
 */
export function SyncBar(props: {
  readonly sync: SyncView;
  readonly nowMs: number;
  readonly scaleMs: number;
}) {
  const { sync, nowMs, scaleMs } = props;
  const { delayedMs, queuedMs, calls, end } = sync;
  const ranMs = end ? end.tookMs : Math.max(0, nowMs - Date.parse(sync.startedAt));
  const scale = WIDTH / Math.max(1, scaleMs);
  const startMs = delayedMs + queuedMs;
  const all: readonly Segment[] = [
    { kind: 'delayed', fromMs: 0, ms: delayedMs, label: `delayed for ${duration(delayedMs)}` },
    {
      kind: 'queued',
      fromMs: delayedMs,
      ms: queuedMs,
      label: `waited for a worker for ${duration(queuedMs)}`,
    },
    {
      kind: isFailedResult(end?.result) ? 'run bad' : 'run',
      fromMs: startMs,
      ms: ranMs,
      label: end ? `ran for ${duration(ranMs)}: ${end.result}` : `runs for ${duration(ranMs)}`,
    },
  ];
  const shown = all.filter(({ ms, kind }) => ms > 0 || kind.startsWith('run'));
  const rectangle = ({ kind, fromMs, ms, label }: Segment, y: number, height: number) => {
    const width = Math.max(2, round(ms * scale));
    return (
      <rect class={kind} x={round(fromMs * scale)} y={y} width={width} height={height}>
        <title>{label}</title>
      </rect>
    );
  };
  return (
    <Chart class="timeline" size={[WIDTH, 34]} label={shown.map(({ label }) => label).join(', ')}>
      <rect class="lane" width={WIDTH} height={18} />
      {shown.map((segment) => rectangle(segment, 0, 18))}
      {calls.map(({ verb, resource, at, error, afterMs, ms }) => {
        const kind = error === undefined ? 'call' : 'call bad';
        const label = `${verb} ${`${resource} ${at}`.trim()}: ${error ?? 'ok'}, ${duration(ms)}`;
        return rectangle({ kind, fromMs: startMs + afterMs, ms, label }, 23, 8);
      })}
    </Chart>
  );
}

/** Legend of the bars. */
export function BarLegend() {
  const kinds: readonly (readonly [kind: string, text: string])[] = [
    ['delayed', 'delayed'],
    ['queued', 'waiting for a worker'],
    ['run', 'running'],
    ['run bad', 'failed'],
    ['call', 'API call'],
  ];
  return (
    <p class="legend">
      {kinds.map(([kind, text]) => [<span class={`swatch ${kind}`} />, ` ${text} `])}
    </p>
  );
}

/**
 * The remembered syncs on one axis of time, with the next planned one. A sync is a disc, a failed one a cross, and
 * the next one a ring.
 */
export function HistoryLine(props: {
  readonly syncs: readonly SyncView[];
  readonly nowMs: number;
  readonly nextMs: number | undefined;
}) {
  const { syncs, nowMs, nextMs } = props;
  const times = syncs.map(({ startedAt }) => Date.parse(startedAt));
  const from = Math.min(nowMs - 1000, ...times.slice(0, 1));
  const to = Math.max(nowMs, nextMs ?? nowMs);
  const x = (atMs: number) => `${round(1 + ((atMs - from) / Math.max(1, to - from)) * 98)}%`;
  const ago = `${duration(nowMs - from)} ago`;
  const next =
    nextMs === undefined ? 'now' : `next sync in ${duration(Math.max(0, nextMs - nowMs))}`;
  return (
    <figure class="history">
      <svg role="img" aria-label={`${syncs.length} syncs, the first one ${ago}; ${next}`}>
        <line class="axis" x1="1%" x2="99%" y1={16} y2={16} />
        <line class="now" x1={x(nowMs)} x2={x(nowMs)} y1={4} y2={28} />
        {syncs.map(({ startedAt, end }, at) => {
          const title = <title>{`${timeOfDay(startedAt)}: ${end?.result ?? 'running'}`}</title>;
          const where = x(times[at] ?? nowMs);
          return isFailedResult(end?.result) ? (
            <svg x={where} y={16} overflow="visible">
              <path class="failure" d="M-5-5l10 10m0-10l-10 10">
                {title}
              </path>
            </svg>
          ) : (
            <circle class="sync" cx={where} cy={16} r={6}>
              {title}
            </circle>
          );
        })}
        {nextMs !== undefined && <circle class="next" cx={x(nextMs)} cy={16} r={6} />}
      </svg>
      <figcaption aria-hidden="true">
        <span>{ago}</span>
        <span>{next}</span>
      </figcaption>
    </figure>
  );
}
