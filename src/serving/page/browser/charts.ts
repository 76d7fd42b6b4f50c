import { h } from './dom.ts';
import type { Element_ } from './dom.ts';

/** Size of a small chart in its own units; the style sets the shown size. */
const WIDTH = 120;
const HEIGHT = 28;

/** Returns a line chart of the values, which start at 0. `label` says in words what it shows. */
export function sparkline(values: readonly number[], label: string, atLeast: number = 1): Element_ {
  const most = Math.max(atLeast, ...values);
  const step = values.length > 1 ? WIDTH / (values.length - 1) : 0;
  const point = (value: number, at: number) =>
    `${round(at * step)},${round(HEIGHT - 2 - (value / most) * (HEIGHT - 4))}`;
  const line = values.map(point).join(' ');
  return h(
    'svg',
    {
      class: 'spark',
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: 'img',
      'aria-label': label,
      preserveAspectRatio: 'none',
    },
    values.length > 1 && h('polygon', { points: `0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}` }),
    values.length > 1 && h('polyline', { points: line }),
  );
}

/**
 * Returns stacked bars of two series: the second one, for failures, is hatched, so that it differs without
 * its colour.
 */
export function bars(
  successes: readonly number[],
  failures: readonly number[],
  label: string,
): Element_ {
  const width = 480;
  const height = 72;
  const count = Math.max(30, successes.length);
  const most = Math.max(1, ...successes.map((value, at) => value + (failures[at] ?? 0)));
  const step = width / count;
  const from = count - successes.length;
  const bar = (value: number, base: number, at: number, kind: string) =>
    value > 0 &&
    h('rect', {
      class: kind,
      x: round((from + at) * step),
      y: round(height - ((base + value) / most) * (height - 2)),
      width: round(step * 0.8),
      height: round((value / most) * (height - 2)),
    });
  return h(
    'svg',
    {
      class: 'bars',
      viewBox: `0 0 ${width} ${height}`,
      role: 'img',
      'aria-label': label,
      preserveAspectRatio: 'none',
    },
    h(
      'defs',
      {},
      h(
        'pattern',
        {
          id: 'hatch',
          width: 4,
          height: 4,
          patternUnits: 'userSpaceOnUse',
          patternTransform: 'rotate(45)',
        },
        h('rect', { class: 'hatch-ground', width: 4, height: 4 }),
        h('rect', { class: 'hatch-line', width: 2, height: 4 }),
      ),
    ),
    successes.map((value, at) => bar(value, 0, at, 'ok')),
    failures.map((value, at) => bar(value, successes[at] ?? 0, at, 'failed')),
    h('line', { class: 'axis', x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5 }),
  );
}

/** Returns a horizontal meter: the share of a limit that is in use. */
export function meter(used: number, limit: number | undefined, label: string): Element_ {
  const share = limit ? Math.min(1, used / limit) : 0;
  return h(
    'svg',
    {
      class: 'meter',
      viewBox: '0 0 40 8',
      role: 'img',
      'aria-label': label,
      preserveAspectRatio: 'none',
    },
    h('rect', { class: 'track', width: 40, height: 8, rx: 2 }),
    share > 0 &&
      h('rect', {
        class: share >= 1 ? 'exhausted' : 'fill',
        width: round(40 * share),
        height: 8,
        rx: 2,
      }),
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
