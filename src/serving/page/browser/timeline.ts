import type { SyncView } from '../../queue-pages.ts';
import { h } from './dom.ts';
import type { Content, Element_ } from './dom.ts';
import { duration, timeOfDay } from './format.ts';
import { isFailedResult } from './table.ts';

/** Width of the timelines in their own units. */
const WIDTH = 1000;

/** Part of a timeline: kind, which is its class, and times in milliseconds. */
interface Segment {
  readonly kind: string;
  readonly fromMs: number;
  readonly ms: number;
  readonly label: string;
}

function rectangle(
  { kind, fromMs, ms, label }: Segment,
  scale: number,
  y: number,
  height: number,
): Element_ {
  return h(
    'rect',
    {
      class: kind,
      x: round(fromMs * scale),
      y,
      width: Math.max(2, round(ms * scale)),
      height,
    },
    h('title', {}, label),
  );
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
 * Returns the bar of one sync: its delay, its wait for a worker, and its run with the API calls below. All
 * bars of a key have the same scale.
 */
export function syncBar(sync: SyncView, nowMs: number, scaleMs: number): Element_ {
  const { delayedMs, queuedMs, calls, end } = sync;
  const ranMs = end ? end.tookMs : Math.max(0, nowMs - Date.parse(sync.startedAt));
  const scale = WIDTH / Math.max(1, scaleMs);
  const startMs = delayedMs + queuedMs;
  const isFailed = isFailedResult(end?.result);
  const segments: Segment[] = [
    { kind: 'delayed', fromMs: 0, ms: delayedMs, label: `delayed for ${duration(delayedMs)}` },
    {
      kind: 'queued',
      fromMs: delayedMs,
      ms: queuedMs,
      label: `waited for a worker for ${duration(queuedMs)}`,
    },
    {
      kind: isFailed ? 'run bad' : 'run',
      fromMs: startMs,
      ms: ranMs,
      label: end ? `ran for ${duration(ranMs)}: ${end.result}` : `runs for ${duration(ranMs)}`,
    },
  ];
  const shown = segments.filter(({ ms, kind }) => ms > 0 || kind.startsWith('run'));
  return h(
    'svg',
    {
      class: 'timeline',
      viewBox: `0 0 ${WIDTH} 34`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': shown.map(({ label }) => label).join(', '),
    },
    h('rect', { class: 'lane', width: WIDTH, height: 18 }),
    shown.map((segment) => rectangle(segment, scale, 0, 18)),
    calls.map(({ verb, resource, at, error, afterMs, ms }) =>
      rectangle(
        {
          kind: error === undefined ? 'call' : 'call bad',
          fromMs: startMs + afterMs,
          ms,
          label: `${verb} ${`${resource} ${at}`.trim()}: ${error ?? 'ok'}, ${duration(ms)}`,
        },
        scale,
        23,
        8,
      ),
    ),
  );
}

/** Returns the legend of the bars. */
export function barLegend(): Content {
  return h(
    'p',
    { class: 'legend' },
    [
      ['delayed', 'delayed'],
      ['queued', 'waiting for a worker'],
      ['run', 'running'],
      ['run bad', 'failed'],
      ['call', 'API call'],
    ].map(([kind = '', text = '']) => [h('span', { class: `swatch ${kind}` }), ` ${text} `]),
  );
}

/**
 * Returns the remembered syncs on one axis of time, with the next planned one. A sync is a disc, a failed one
 * a cross, and the next one a ring.
 */
export function historyLine(
  syncs: readonly SyncView[],
  nowMs: number,
  nextMs: number | undefined,
): Element_ {
  const times = syncs.map(({ startedAt }) => Date.parse(startedAt));
  const from = Math.min(nowMs - 1000, ...times.slice(0, 1));
  const to = Math.max(nowMs, nextMs ?? nowMs);
  const x = (atMs: number) => `${round(1 + ((atMs - from) / Math.max(1, to - from)) * 98)}%`;
  const mark = (sync: SyncView, at: number) => {
    const isFailed = isFailedResult(sync.end?.result);
    const title = h('title', {}, `${timeOfDay(sync.startedAt)}: ${sync.end?.result ?? 'running'}`);
    const where = x(times[at] ?? nowMs);
    return isFailed
      ? h(
          'svg',
          { x: where, y: 16, overflow: 'visible' },
          h('path', { class: 'failure', d: 'M-5-5l10 10m0-10l-10 10' }, title),
        )
      : h('circle', { class: 'sync', cx: where, cy: 16, r: 6 }, title);
  };
  const ago = `${duration(nowMs - from)} ago`;
  const next =
    nextMs === undefined ? 'now' : `next sync in ${duration(Math.max(0, nextMs - nowMs))}`;
  return h(
    'figure',
    { class: 'history' },
    h(
      'svg',
      { role: 'img', 'aria-label': `${syncs.length} syncs, the first one ${ago}; ${next}` },
      h('line', { class: 'axis', x1: '1%', x2: '99%', y1: 16, y2: 16 }),
      h('line', { class: 'now', x1: x(nowMs), x2: x(nowMs), y1: 4, y2: 28 }),
      syncs.map(mark),
      nextMs !== undefined && h('circle', { class: 'next', cx: x(nextMs), cy: 16, r: 6 }),
    ),
    h('figcaption', { 'aria-hidden': 'true' }, h('span', {}, ago), h('span', {}, next)),
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
