import type { TargetedMouseEvent } from 'preact';
import type { TimelineReport } from '../timeline-report.ts';
import { Chart } from './charts.tsx';
import { LANE_SIZE, lanePathsOf, nearestEntry, spanOf } from './recorded-entries.ts';
import type { LanePath, SelectedEntries } from './recorded-entries.ts';

/** What is drawn of the lanes of a selection: a page is drawn often, and its entries are many. */
const knownPaths = new WeakMap<SelectedEntries, Map<number, readonly LanePath[]>>();

/** The entries of a lane on the axis. A click selects the nearest one; the list of entries has all of them. */
export function Lane(props: {
  readonly report: TimelineReport;
  readonly selection: SelectedEntries;
  readonly lane: number;
  /** Index of the selected entry. */
  readonly at: number | undefined;
  readonly select: (at: number) => void;
}) {
  const { report, selection, lane, at, select } = props;
  const rows = selection.byLane.get(lane) ?? [];
  const paths = pathsOf(report, selection, lane);
  const countOf = (is: 'isFailed' | 'isDifferent') =>
    rows.filter((row) => report.entries[row]?.[is]).length;
  const label = [
    rows.length === 1 ? '1 entry' : `${rows.length} entries`,
    ...(paths.some((path) => path.class === 'failure') ? [`${countOf('isFailed')} failed`] : []),
    ...(paths.some((path) => path.class === 'difference')
      ? [`${countOf('isDifferent')} different`]
      : []),
  ].join(', ');
  const click = (event: TargetedMouseEvent<HTMLDivElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left) / Math.max(1, box.width);
    const nearest = nearestEntry(report, rows, selection, share);
    if (nearest !== undefined) select(nearest);
  };
  return (
    <div class="lane-chart" onClick={click}>
      <Chart class="lane-parts" size={LANE_SIZE} label={label}>
        <rect class="lane" y={6} width={LANE_SIZE[0]} height={11} />
        {paths.map(({ class: className, path }) => (
          <path class={className} d={path} />
        ))}
        {at !== undefined && <Cursor report={report} selection={selection} lane={lane} at={at} />}
      </Chart>
    </div>
  );
}

function pathsOf(
  report: TimelineReport,
  selection: SelectedEntries,
  lane: number,
): readonly LanePath[] {
  const known = knownPaths.get(selection) ?? new Map<number, readonly LanePath[]>();
  knownPaths.set(selection, known);
  const paths = known.get(lane) ?? lanePathsOf(report, selection.byLane.get(lane) ?? [], selection);
  known.set(lane, paths);
  return paths;
}

/** Place of the selected entry. */
function Cursor(props: {
  readonly report: TimelineReport;
  readonly selection: SelectedEntries;
  readonly lane: number;
  readonly at: number;
}) {
  const { report, selection, lane, at } = props;
  const entry = report.entries[at];
  if (!entry) return null;
  const { axis, range } = selection;
  const { from } = spanOf(entry, at, axis);
  const x = ((from - range.from) / Math.max(1e-9, range.to - range.from)) * LANE_SIZE[0];
  if (x < 0 || x > LANE_SIZE[0]) return null;
  return <rect class={entry.lane === lane ? 'cursor own' : 'cursor'} x={x} width={1} height={24} />;
}

/** Legend of the lanes. */
export function LaneLegend() {
  const kinds: readonly (readonly [kind: string, text: string])[] = [
    ['run', 'sync'],
    ['call', 'request'],
    ['delayed', 'timer'],
    ['tick', 'other'],
    ['failure', 'failed'],
    ['difference', 'the replay differs'],
  ];
  return (
    <p class="legend">
      {kinds.map(([kind, text]) => [<span class={`swatch ${kind}`} />, ` ${text} `])}
    </p>
  );
}
