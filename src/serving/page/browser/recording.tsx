import type { TargetedEvent } from 'preact';
import { duration, timeOfDay } from '../../words.ts';
import { ENTRY_KINDS } from '../timeline-report.ts';
import type { TimelineDetails, TimelineEntry, TimelineReport } from '../timeline-report.ts';
import { Lane, LaneLegend } from './lanes.tsx';
import { changedRange, spanOf } from './recorded-entries.ts';
import type { SelectedEntries } from './recorded-entries.ts';
import { linkTo } from './route.ts';
import type { Route } from './route.ts';
import { Badge, Card, Cut } from './table.tsx';
import type { Column } from './table.tsx';
import { VirtualTable } from './virtual-table.tsx';
import { yaml } from './yaml.ts';

/** ID of the list of entries. */
export const ENTRIES_ID = 'entries';

/** Changes parameters of the route; undefined removes one. */
type Go = (changed: Readonly<Record<string, string>> | Readonly<Record<string, undefined>>) => void;

interface RecordingProps {
  readonly report: TimelineReport;
  readonly route: Route;
  readonly selection: SelectedEntries;
  /** Index of the selected entry. */
  readonly at: number | undefined;
  readonly details: TimelineDetails | undefined;
  readonly go: Go;
  readonly redraw: () => void;
}

/** A recording: its lanes on one axis, the list of its entries, and the selected one. */
export function RecordingView(props: RecordingProps) {
  const { report, selection, at } = props;
  return (
    <>
      {report.notes.map(({ tone, text }) => (
        <p class={`banner ${tone}`} dir="auto">
          {text}
        </p>
      ))}
      <Filters {...props} />
      {selection.rows.length === 0 ? (
        <p class="state">
          {report.entries.length === 0
            ? 'The recording has no entries.'
            : 'No entry matches the filters.'}
        </p>
      ) : (
        <Lanes {...props} />
      )}
      <div class={at === undefined ? 'entries' : 'entries with-details'}>
        {selection.rows.length > 0 && <Entries {...props} />}
        {at !== undefined && <Details {...props} at={at} />}
      </div>
    </>
  );
}

function Filters({ report, route, selection, go }: RecordingProps) {
  const { query } = route;
  const set = (name: string) => (event: TargetedEvent<HTMLInputElement | HTMLSelectElement>) =>
    go({ [name]: event.currentTarget.value });
  const select = (
    name: string,
    title: string,
    value: string,
    choices: readonly (readonly [value: string, title: string])[],
  ) => (
    <label>
      <span>{title}</span>
      <select value={value} onChange={set(name)}>
        {choices.map(([choice, text]) => (
          <option value={choice}>{text}</option>
        ))}
      </select>
    </label>
  );
  const { rows } = selection;
  const total = `${report.entries.length} entries`;
  return (
    <form
      class="filters"
      role="search"
      aria-label="Filters"
      onSubmit={(event) => event.preventDefault()}
    >
      <label>
        <span>Object or text</span>
        <input type="search" value={query['text'] ?? ''} onInput={set('text')} />
      </label>
      {select('kind', 'Kind', query['kind'] ?? '', [['', 'all'], ...Object.entries(ENTRY_KINDS)])}
      {select('state', 'Result', query['state'] ?? '', [
        ['', 'all'],
        ['failed', 'failed'],
        ['different', 'the replay differs'],
      ])}
      {select('axis', 'Axis', selection.axis, [
        ['order', 'order'],
        ['time', 'time'],
      ])}
      {query['lane'] !== undefined && (
        <button type="button" class="pressed" onClick={() => go({ lane: undefined })}>
          All lanes
        </button>
      )}
      <p class="count" role="status">
        {rows.length === report.entries.length ? total : `${rows.length} of ${total}`}
      </p>
    </form>
  );
}

function Lanes({ report, route, selection, at, go, redraw }: RecordingProps) {
  const { range, axis } = selection;
  const entry = at === undefined ? undefined : report.entries[at];
  const span = entry && at !== undefined ? spanOf(entry, at, axis) : undefined;
  const isShown = span !== undefined && span.from >= range.from && span.from <= range.to;
  const change = (how: Parameters<typeof changedRange>[1]) => () => {
    const { from, to } = changedRange(selection, how, isShown ? span.from : undefined);
    go({ from: String(from), to: String(to) });
  };
  const isWhole = route.query['from'] === undefined;
  const columns: readonly Column<number>[] = [
    {
      title: 'Lane',
      class: 'lane-name',
      cell: (lane) => (
        <a href={linkTo('', { ...route.query, lane: report.lanes[lane] })} dir="auto">
          <Cut text={report.lanes[lane] ?? ''} />
        </a>
      ),
    },
    {
      title: 'Timeline',
      class: 'wide',
      cell: (lane) => (
        <Lane
          report={report}
          selection={selection}
          lane={lane}
          at={at}
          select={(nearest) => go({ at: String(nearest) })}
        />
      ),
    },
  ];
  return (
    <section class="lanes" aria-label="Lanes">
      <div class="lane-tools">
        <LaneLegend />
        <p class="note">{edgesOf(report, selection)}</p>
        <div class="choices" role="group" aria-label="Shown part">
          <button type="button" onClick={change('in')}>
            Zoom in
          </button>
          <button type="button" onClick={change('out')} disabled={isWhole}>
            Zoom out
          </button>
          <button type="button" onClick={change('earlier')} disabled={isWhole}>
            Earlier
          </button>
          <button type="button" onClick={change('later')} disabled={isWhole}>
            Later
          </button>
          <button
            type="button"
            onClick={() => go({ from: undefined, to: undefined })}
            disabled={isWhole}
          >
            All
          </button>
        </div>
      </div>
      <VirtualTable
        id="lanes"
        caption="Lanes"
        columns={columns}
        rows={[...selection.byLane.keys()]}
        keyOf={(lane) => lane}
        isSelected={(lane) => lane === entry?.lane}
        redraw={redraw}
      />
    </section>
  );
}

/** Returns the first and the last time, or place, of the shown part. */
function edgesOf(report: TimelineReport, { axis, range }: SelectedEntries): string {
  const edge = (value: number) =>
    axis === 'order' ? `entry ${Math.round(value)}` : timeText(report, value);
  return `${edge(range.from)} to ${edge(range.to)}`;
}

function timeText({ startMs }: TimelineReport, ms: number): string {
  if (startMs === undefined) return `${(ms / 1000).toFixed(3)} s`;
  return timeOfDay(new Date(startMs + ms).toISOString());
}

function Entries({ report, route, selection, at, redraw }: RecordingProps) {
  const columns: readonly Column<number>[] = [
    { title: 'Time', class: 'number', cell: (row) => timeText(report, entryOf(report, row).ms) },
    {
      title: 'What',
      class: 'wide',
      cell: (row) => {
        const { text } = entryOf(report, row);
        const isSelected = row === at ? 'true' : undefined;
        return (
          <a
            href={linkTo('', { ...route.query, at: String(row) })}
            aria-current={isSelected}
            title={text}
            dir="auto"
          >
            {text}
          </a>
        );
      },
    },
    {
      title: 'Result',
      class: 'result spare',
      cell: (row) => <Result entry={entryOf(report, row)} />,
    },
    {
      title: 'Lane',
      class: 'lane-name spare beside',
      cell: (row) => <Cut text={report.lanes[entryOf(report, row).lane] ?? ''} dir="auto" />,
    },
    { title: 'Kind', class: 'spare beside', cell: (row) => ENTRY_KINDS[entryOf(report, row).kind] },
    {
      title: 'Took',
      class: 'number spare',
      cell: (row) => {
        const { tookMs } = entryOf(report, row);
        return tookMs === undefined ? '' : duration(tookMs);
      },
    },
  ];
  return (
    <div>
      <VirtualTable
        id={ENTRIES_ID}
        caption="Entries"
        columns={columns}
        rows={selection.rows}
        keyOf={(row) => row}
        isSelected={(row) => row === at}
        redraw={redraw}
      />
    </div>
  );
}

const NO_ENTRY: TimelineEntry = { kind: 'gap', ms: 0, lane: 0, text: '' };

function entryOf({ entries }: TimelineReport, at: number): TimelineEntry {
  return entries[at] ?? NO_ENTRY;
}

function Result({ entry }: { readonly entry: TimelineEntry }) {
  const { result = '', isFailed, isDifferent } = entry;
  return (
    <span title={result} dir="auto">
      {isDifferent && [<Badge tone="warning" text="differs" />, ' ']}
      {isFailed ? <Badge tone="bad" text={result || 'failed'} /> : result}
    </span>
  );
}

/** The selected entry. */
function Details(props: RecordingProps & { readonly at: number }) {
  const { report, selection, at, details, go } = props;
  const entry = entryOf(report, at);
  const { rows } = selection;
  const place = rows.indexOf(at);
  const goTo = (row: number | undefined) => () => row !== undefined && go({ at: String(row) });
  const before = place > 0 ? rows[place - 1] : undefined;
  const after = place >= 0 ? rows[place + 1] : undefined;
  return (
    <Card title="Entry" class="details">
      <div class="choices" role="group" aria-label="Other entries">
        <button type="button" onClick={goTo(before)} disabled={before === undefined}>
          Previous
        </button>
        <button type="button" onClick={goTo(after)} disabled={after === undefined}>
          Next
        </button>
        <button type="button" onClick={() => go({ at: undefined })}>
          Close
        </button>
      </div>
      <h3 dir="auto">{entry.text}</h3>
      <p class="note" dir="auto">
        {timeText(report, entry.ms)}, {report.lanes[entry.lane]}, {ENTRY_KINDS[entry.kind]}
        {entry.tookMs !== undefined && `, ${duration(entry.tookMs)}`}
      </p>
      {entry.result !== undefined && (
        <p dir="auto">
          <Result entry={entry} />
        </p>
      )}
      {details && details.differences.length > 0 && (
        <>
          <h4>The replay differs</h4>
          <pre class="yaml" tabIndex={0} role="group" aria-label="Differences">
            {details.differences.join('\n')}
          </pre>
        </>
      )}
      <h4>Recorded</h4>
      {details ? (
        <pre class="yaml" tabIndex={0} role="group" aria-label="YAML of the entry">
          {yaml(details.recorded)}
        </pre>
      ) : (
        <p class="state">Loading the entry…</p>
      )}
    </Card>
  );
}
