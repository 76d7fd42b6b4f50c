import type { TargetedEvent } from 'preact';
import type { KeysReport, ListedKey } from '../../key-list.ts';
import {
  CONDITIONS,
  countText,
  duration,
  isFailedResult,
  PROBLEMS,
  stateOf,
  STATES,
  timeOfDay,
} from '../../words.ts';
import { TONES } from './results.ts';
import type { Tone } from './results.ts';
import { linkTo, linkToKey } from './route.ts';
import type { Route } from './route.ts';
import { Badge, Cut, ResultBadge } from './table.tsx';
import type { Column } from './table.tsx';
import { VirtualTable } from './virtual-table.tsx';

const TONES_OF_STATES: Readonly<Record<string, Tone>> = {
  running: 'good',
  ready: 'warning',
  retry: 'bad',
};

function waitOf({ state, problem }: ListedKey): keyof typeof STATES {
  return stateOf(state, problem === 'failing');
}

interface SortedColumn extends Column<ListedKey> {
  readonly name: string;
  readonly order: (key: ListedKey) => string | number;
}

const STATE_ORDER = Object.keys(STATES);
const PROBLEM_ORDER = [...Object.keys(PROBLEMS), undefined];

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
    name: 'result',
    title: 'Result',
    order: ({ result = '' }) => result,
    cell: ({ result }) => (result === undefined ? '–' : <ResultBadge result={result} />),
  },
  {
    name: 'object',
    title: 'Object',
    order: ({ problem }) => PROBLEM_ORDER.indexOf(problem),
    cell: ({ condition }) =>
      condition === undefined || condition === 'unknown' ? (
        '–'
      ) : (
        <Badge tone={TONES[condition] ?? 'neutral'} text={CONDITIONS[condition]} />
      ),
  },
  {
    name: 'message',
    title: 'Message',
    class: 'wide spare',
    order: ({ message = '' }) => message,
    cell: ({ message = '' }) => <Cut text={message} dir="auto" />,
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
    class: 'spare',
    order: (row) => STATE_ORDER.indexOf(waitOf(row)) * 1e9 - (row.stateMs ?? 0),
    cell: (row) => {
      const state = waitOf(row);
      const time = row.stateMs === undefined ? '' : ` ${duration(row.stateMs)}`;
      return <Badge tone={TONES_OF_STATES[state] ?? 'neutral'} text={`${STATES[state]}${time}`} />;
    },
  },
  {
    name: 'syncs',
    title: 'Syncs',
    class: 'number spare',
    order: ({ syncs }) => -syncs,
    cell: ({ syncs }) => syncs,
  },
  {
    name: 'failures',
    title: 'Failed',
    class: 'number spare',
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
];

/** Choices of a filter: value, title, and whether a key has it. */
interface Filter {
  readonly name: string;
  readonly title: string;
  readonly choices: readonly (readonly [value: string, title: string])[];
  readonly has: (row: ListedKey, value: string) => boolean;
}

function namespaceOf({ key }: ListedKey): string {
  return key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
}

/** Filters of the latest report: a list is drawn often, and its keys are many. */
let known: { readonly keys: readonly ListedKey[]; readonly filters: readonly Filter[] } | undefined;

function filtersOf(keys: readonly ListedKey[]): readonly Filter[] {
  if (known?.keys !== keys) known = { keys, filters: newFilters(keys) };
  return known.filters;
}

function newFilters(keys: readonly ListedKey[]): readonly Filter[] {
  const valuesOf = (value: (row: ListedKey) => string) => {
    const values = [...new Set(keys.map(value))].toSorted((a, b) => (a < b ? -1 : 1));
    return values.filter((one) => one !== '').map((one) => [one, one] as const);
  };
  return [
    {
      name: 'controller',
      title: 'Controller',
      choices: valuesOf(({ controller }) => controller),
      has: ({ controller }, value) => controller === value,
    },
    {
      name: 'namespace',
      title: 'Namespace',
      choices: valuesOf(namespaceOf),
      has: (row, value) => namespaceOf(row) === value,
    },
    {
      name: 'condition',
      title: 'Object',
      choices: Object.entries(CONDITIONS),
      has: ({ condition }, value) => condition === value,
    },
    {
      name: 'result',
      title: 'Result',
      choices: [['failed', 'any failure'], ...valuesOf(({ result = '' }) => result)],
      has: ({ result }, value) => (value === 'failed' ? isFailedResult(result) : result === value),
    },
    {
      name: 'state',
      title: 'State',
      choices: Object.entries(STATES),
      // A key that waits after an error waits for a time, too.
      has: (row, value) => waitOf(row) === value || row.state === value,
    },
  ];
}

/** Keys with problems come first. */
const DEFAULT_SORT = 'object';

/** Returns the keys that the filters of the route select, in its order. */
export function selectedKeys(report: KeysReport, { query }: Route): ListedKey[] {
  const { text = '', sort = DEFAULT_SORT, down } = query;
  const wanted = text.toLowerCase();
  const given = filtersOf(report.keys).filter(({ name }) => query[name]);
  const selected = report.keys.filter(
    (row) =>
      given.every(({ name, has }) => has(row, query[name] ?? '')) &&
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
  const all = countText(report.keys.length, 'key');
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
        {filtersOf(report.keys).map(({ name, title, choices }) => (
          <label>
            <span>{title}</span>
            <select value={query[name] ?? ''} onChange={set(name)}>
              <option value="">all</option>
              {choices.map(([value, text]) => (
                <option value={value}>{text}</option>
              ))}
            </select>
          </label>
        ))}
        <p class="count" role="status">
          {omitted > 0 ? `${shown}; ${omitted} more are not listed` : shown}
        </p>
      </form>
      {rows.length === 0 ? (
        <p class="state">
          {report.keys.length === 0 ? 'No key was synced yet.' : 'No key matches the filters.'}
        </p>
      ) : (
        <VirtualTable
          id="keys"
          caption="Keys"
          columns={COLUMNS}
          rows={rows}
          keyOf={(row) => `${row.controller} ${row.key}`}
          heading={(column) => <Heading column={column} query={query} />}
          redraw={redraw}
        />
      )}
    </>
  );
}

function Heading({
  column,
  query,
}: {
  readonly column: SortedColumn;
  readonly query: Route['query'];
}) {
  const { sort = DEFAULT_SORT, down } = query;
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
