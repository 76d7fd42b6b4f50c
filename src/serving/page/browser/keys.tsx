import type { TargetedEvent } from 'preact';
import type { KeysReport, ListedKey } from '../../queue-pages.ts';
import { counted, duration, timeOfDay } from './format.ts';
import type { Tone } from './results.ts';
import { linkTo, linkToKey } from './route.ts';
import type { Route } from './route.ts';
import { Badge, cellsOf, ResultBadge } from './table.tsx';
import type { Column } from './table.tsx';

/** Height of a row in pixels, as in the style, and number of rows beyond the visible ones. */
const ROW_PX = 34;
const SPARE_ROWS = 12;

const STATES: readonly ListedKey['state'][] = ['running', 'ready', 'delayed', 'idle'];

const TONES: Readonly<Record<ListedKey['state'], Tone>> = {
  running: 'good',
  ready: 'warning',
  delayed: 'neutral',
  idle: 'neutral',
};

interface SortedColumn extends Column<ListedKey> {
  readonly name: string;
  readonly order: (key: ListedKey) => string | number;
}

const COLUMNS: readonly SortedColumn[] = [
  {
    name: 'key',
    title: 'Key',
    class: 'wide',
    order: ({ key }) => key,
    cell: ({ controller, key }) => (
      <a href={linkToKey(controller, key)} title={key}>
        {key}
      </a>
    ),
  },
  {
    name: 'controller',
    title: 'Controller',
    class: 'spare',
    order: ({ controller }) => controller,
    cell: ({ controller }) => controller,
  },
  {
    name: 'state',
    title: 'State',
    order: ({ state, stateMs = 0 }) => STATES.indexOf(state) * 1e9 - stateMs,
    cell: ({ state, stateMs }) => (
      <Badge
        tone={TONES[state]}
        text={stateMs === undefined ? state : `${state} ${duration(stateMs)}`}
      />
    ),
  },
  {
    name: 'syncs',
    title: 'Syncs',
    class: 'number',
    order: ({ syncs }) => -syncs,
    cell: ({ syncs }) => syncs,
  },
  {
    name: 'failures',
    title: 'Failed',
    class: 'number',
    order: ({ failures }) => -failures,
    cell: ({ failures }) => failures,
  },
  {
    name: 'busy',
    title: 'Total time',
    class: 'number spare',
    order: ({ busyMs }) => -busyMs,
    cell: ({ busyMs }) => duration(busyMs),
  },
  {
    name: 'last',
    title: 'Last sync',
    class: 'number spare',
    order: ({ startedAt }) => (startedAt === undefined ? 0 : -Date.parse(startedAt)),
    cell: ({ startedAt }) => (startedAt === undefined ? '–' : timeOfDay(startedAt)),
  },
  {
    name: 'result',
    title: 'Result',
    class: 'spare',
    order: ({ result = '' }) => result,
    cell: ({ result }) => (result === undefined ? '–' : <ResultBadge result={result} />),
  },
];

/** Returns the keys that the filters of the route select, in its order. */
export function selectedKeys(report: KeysReport, { query }: Route): ListedKey[] {
  const { controller, state, text = '', sort = 'last', down } = query;
  const wanted = text.toLowerCase();
  const selected = report.keys.filter(
    (row) =>
      (!controller || row.controller === controller) &&
      (!state || row.state === state) &&
      (wanted === '' || row.key.toLowerCase().includes(wanted)),
  );
  const column = COLUMNS.find(({ name }) => name === sort) ?? COLUMNS[0];
  const sign = down ? -1 : 1;
  return selected
    .map((row) => ({ row, by: column?.order(row) ?? '' }))
    .toSorted((a, b) => (a.by < b.by ? -sign : a.by > b.by ? sign : 0))
    .map(({ row }) => row);
}

/** List of all keys. Only the visible rows have elements. */
export function KeysView(props: {
  readonly report: KeysReport | undefined;
  readonly route: Route;
  readonly go: (link: string) => void;
  readonly redraw: () => void;
}) {
  const { report, route, go, redraw } = props;
  if (!report) return <p class="state">Loading the keys…</p>;
  const rows = selectedKeys(report, route);
  const { query } = route;
  const set = (name: string) => (event: TargetedEvent<HTMLInputElement | HTMLSelectElement>) =>
    go(linkTo('keys', { ...query, [name]: event.currentTarget.value }));
  const controllers = [...new Set(report.keys.map(({ controller }) => controller))].toSorted();
  const all = counted(report.keys.length, 'key');
  const shown = rows.length === report.keys.length ? all : `${rows.length} of ${all}`;
  const omitted = report.count - report.keys.length;
  return (
    <>
      <form
        class="filters"
        role="search"
        aria-label="Filters"
        onSubmit={(event) => event.preventDefault()}
      >
        <label>
          <span>Name contains</span>
          <input type="search" value={query['text'] ?? ''} onInput={set('text')} />
        </label>
        <label>
          <span>Controller</span>
          <Select values={controllers} value={query['controller']} onChange={set('controller')} />
        </label>
        <label>
          <span>State</span>
          <Select values={STATES} value={query['state']} onChange={set('state')} />
        </label>
        <p class="count" role="status">
          {omitted > 0 ? `${shown}; ${omitted} more are not listed` : shown}
        </p>
      </form>
      {rows.length === 0 ? (
        <p class="state">
          {report.keys.length === 0 ? 'No key was synced yet.' : 'No key matches the filters.'}
        </p>
      ) : (
        <VisibleRows rows={rows} query={query} redraw={redraw} />
      )}
    </>
  );
}

function Select(props: {
  readonly values: readonly string[];
  readonly value: string | undefined;
  readonly onChange: (event: TargetedEvent<HTMLSelectElement>) => void;
}) {
  return (
    <select value={props.value ?? ''} onChange={props.onChange}>
      <option value="">all</option>
      {props.values.map((one) => (
        <option value={one}>{one}</option>
      ))}
    </select>
  );
}

function VisibleRows(props: {
  readonly rows: readonly ListedKey[];
  readonly query: Route['query'];
  readonly redraw: () => void;
}) {
  const { rows, query, redraw } = props;
  const box = document.querySelector('#keys');
  const top = box?.scrollTop ?? 0;
  const height = box?.clientHeight ?? 600;
  const from = Math.max(0, Math.min(rows.length, Math.floor(top / ROW_PX)) - SPARE_ROWS);
  const to = Math.min(rows.length, Math.ceil((top + height) / ROW_PX) + SPARE_ROWS);
  return (
    <div
      class="scroll virtual"
      id="keys"
      tabIndex={0}
      role="group"
      aria-label="Keys"
      onScroll={redraw}
    >
      <table aria-rowcount={rows.length + 1}>
        <caption class="hidden">Keys</caption>
        <thead>
          <tr aria-rowindex={1}>
            {COLUMNS.map((column) => (
              <Heading column={column} query={query} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer key="above" rows={from} />
          {rows.slice(from, to).map((row, at) => (
            <tr key={`${row.controller} ${row.key}`} aria-rowindex={from + at + 2}>
              {cellsOf(COLUMNS, row)}
            </tr>
          ))}
          <Spacer key="below" rows={rows.length - to} />
        </tbody>
      </table>
    </div>
  );
}

/** Takes the place of rows that are not visible. */
function Spacer({ rows }: { readonly rows: number }) {
  if (rows === 0) return null;
  return (
    <tr aria-hidden="true" class="spacer">
      <td colSpan={COLUMNS.length} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  );
}

function Heading({
  column,
  query,
}: {
  readonly column: SortedColumn;
  readonly query: Route['query'];
}) {
  const { sort = 'last', down } = query;
  const isSorted = sort === column.name;
  const next = { ...query, sort: column.name, down: isSorted && !down ? 'true' : undefined };
  const order = down ? 'descending' : 'ascending';
  return (
    <th scope="col" class={column.class} aria-sort={isSorted ? order : undefined}>
      <a href={linkTo('keys', next)}>
        {column.title}
        <span aria-hidden="true">{isSorted ? (down ? ' ▲' : ' ▼') : ''}</span>
      </a>
    </th>
  );
}
