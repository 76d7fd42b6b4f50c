import type { TimelineEntry, TimelineReport } from '../timeline-report.ts';
import type { Route } from './route.ts';

/** Axis of the lanes: the time, or the order in which entries were recorded. */
export type Axis = 'time' | 'order';

/** Part of the axis that is shown. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Entries that the filters and the range of the route select. */
export interface SelectedEntries {
  readonly axis: Axis;
  readonly range: Range;
  /** Range of the whole recording. */
  readonly all: Range;
  /** Indices of the entries, in their order. */
  readonly rows: readonly number[];
  /** The same by lane, in the order of the lanes. */
  readonly byLane: ReadonlyMap<number, readonly number[]>;
}

/** Returns the axis of a route. Much of virtual time happens at once, so the order tells more. */
export function axisOf(report: TimelineReport, { query }: Route): Axis {
  const { axis = report.startMs === undefined ? 'order' : 'time' } = query;
  return axis === 'order' ? 'order' : 'time';
}

/** Returns where an entry starts and ends on the axis. */
export function spanOf(entry: TimelineEntry, at: number, axis: Axis): Range {
  if (axis === 'order') return { from: at, to: entry.until ?? at + 1 };
  return { from: entry.ms, to: entry.ms + (entry.tookMs ?? 0) };
}

/** Returns the entries that a route selects. */
export function selectEntries(report: TimelineReport, route: Route): SelectedEntries {
  const { entries, lanes } = report;
  const { text = '', kind, state, lane, from, to } = route.query;
  const axis = axisOf(report, route);
  const all = wholeRange(entries, axis);
  const range = { from: numberOr(from, all.from), to: numberOr(to, all.to) };
  const wanted = text.toLowerCase();
  const texts = wanted === '' ? [] : textsOf(report);
  const rows: number[] = [];
  const unordered = new Map<number, number[]>();
  for (const [at, entry] of entries.entries()) {
    if (kind && entry.kind !== kind) continue;
    if (state === 'failed' && !entry.isFailed) continue;
    if (state === 'different' && !entry.isDifferent) continue;
    if (lane && lanes[entry.lane] !== lane) continue;
    const span = spanOf(entry, at, axis);
    if (span.from > range.to || span.to < range.from) continue;
    if (wanted && !texts[at]?.includes(wanted)) continue;
    rows.push(at);
    const inLane = unordered.get(entry.lane);
    if (inLane) inLane.push(at);
    else unordered.set(entry.lane, [at]);
  }
  const byLane = new Map([...unordered].toSorted(([a], [b]) => a - b));
  return { axis, range, all, rows, byLane };
}

/** Searched texts of the entries. A filter is typed letter by letter, and the entries are many. */
const knownTexts = new WeakMap<TimelineReport, readonly string[]>();

function textsOf(report: TimelineReport): readonly string[] {
  const { entries, lanes } = report;
  const texts =
    knownTexts.get(report) ??
    entries.map(({ lane, text, result = '' }) =>
      `${lanes[lane] ?? ''} ${text} ${result}`.toLowerCase(),
    );
  knownTexts.set(report, texts);
  return texts;
}

function wholeRange(entries: readonly TimelineEntry[], axis: Axis): Range {
  if (axis === 'order') return { from: 0, to: Math.max(1, entries.length) };
  const from = entries[0]?.ms ?? 0;
  return { from, to: Math.max(from + 1, entries.at(-1)?.ms ?? 0) };
}

function numberOr(text: string | undefined, other: number): number {
  const number = Number(text);
  return text === undefined || !Number.isFinite(number) ? other : number;
}

/** Returns the shown range after a change: half or twice as long around `center`, or moved by half of its length. */
export function changedRange(
  { range, all }: Pick<SelectedEntries, 'range' | 'all'>,
  change: 'in' | 'out' | 'earlier' | 'later',
  center: number = (range.from + range.to) / 2,
): Range {
  const length = range.to - range.from;
  const next =
    change === 'in'
      ? length / 2
      : change === 'out'
        ? Math.min(length * 2, all.to - all.from)
        : length;
  const moved = change === 'earlier' ? -length / 2 : change === 'later' ? length / 2 : 0;
  const isMove = moved !== 0;
  const wanted = isMove ? range.from + moved : center - next / 2;
  const from = Math.max(all.from, Math.min(wanted, all.to - next));
  return { from, to: from + next };
}

/** Number of columns of a lane. */
const COLUMNS = 250;

/** Width and height of a lane in its own units. */
export const LANE_SIZE: readonly [width: number, height: number] = [COLUMNS, 24];

/** All entries of a lane with one class, as the path of an SVG. */
export interface LanePath {
  readonly class: string;
  readonly path: string;
}

/** Places of the parts of each class: syncs with their requests below, and marks of what failed or differs above. */
const PLACES: Readonly<Record<string, readonly [y: number, height: number]>> = {
  run: [6, 11],
  tick: [6, 11],
  call: [18, 5],
  delayed: [10, 3],
  failure: [0, 4],
  difference: [0, 4],
};

/** Classes of the parts by kind of entry. Others are ticks. */
const CLASSES: Readonly<Partial<Record<TimelineEntry['kind'], string>>> = {
  sync: 'run',
  request: 'call',
  timer: 'delayed',
};

/**
 * Returns what is drawn of a lane. Neighbours of the same class are one part, so that its size does not depend on the number of
 * entries.
 */
export function lanePathsOf(
  report: TimelineReport,
  rows: readonly number[],
  { axis, range }: Pick<SelectedEntries, 'axis' | 'range'>,
): LanePath[] {
  const columnsByClass = new Map<string, Uint8Array>();
  const scale = COLUMNS / Math.max(1e-9, range.to - range.from);
  const columnOf = (value: number) =>
    Math.max(0, Math.min(COLUMNS - 1, Math.floor((value - range.from) * scale)));
  for (const at of rows) {
    const entry = report.entries[at];
    if (!entry) continue;
    const span = spanOf(entry, at, axis);
    const first = columnOf(span.from);
    // In the order, the end is the place of the next entry.
    const last = axis === 'order' ? Math.max(first, columnOf(span.to - 0.5)) : columnOf(span.to);
    fill(columnsByClass, CLASSES[entry.kind] ?? 'tick', first, last);
    if (entry.isFailed) fill(columnsByClass, 'failure', first, last);
    if (entry.isDifferent) fill(columnsByClass, 'difference', first, last);
  }
  return [...columnsByClass].map(([name, columns]) => ({
    class: name,
    path: pathOf(name, columns),
  }));
}

function fill(all: Map<string, Uint8Array>, name: string, first: number, last: number): void {
  const columns = all.get(name) ?? new Uint8Array(COLUMNS);
  all.set(name, columns.fill(1, first, last + 1));
}

function pathOf(name: string, columns: Uint8Array): string {
  const [y, height] = PLACES[name] ?? [0, 0];
  let path = '';
  for (let at = 0; at < COLUMNS; at++) {
    if (columns[at] === 0) continue;
    const from = at;
    while (at + 1 < COLUMNS && columns[at + 1] === 1) at++;
    const width = at + 1 - from;
    path += `M${from} ${y}h${width}v${height}h${-width}z`;
  }
  return path;
}

/** Returns the entry of a lane that is the nearest one to a share of the shown range. */
export function nearestEntry(
  report: TimelineReport,
  rows: readonly number[],
  { axis, range }: Pick<SelectedEntries, 'axis' | 'range'>,
  share: number,
): number | undefined {
  const wanted = range.from + share * (range.to - range.from);
  const distanceOf = (at: number) => {
    const entry = report.entries[at];
    if (!entry) return Infinity;
    const { from, to } = spanOf(entry, at, axis);
    // A short entry within a long one is the wanted one.
    const outside = Math.max(0, from - wanted, wanted - to);
    return outside + (to - from) * 1e-3;
  };
  let nearest: number | undefined;
  let least = Infinity;
  for (const at of rows) {
    const distance = distanceOf(at);
    if (distance < least) [nearest, least] = [at, distance];
  }
  return nearest;
}
