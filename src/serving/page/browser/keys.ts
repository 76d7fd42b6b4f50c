import type { KeysReport, ListedKey } from '../../queue-pages.ts';
import { h } from './dom.ts';
import type { Content, Element_ } from './dom.ts';
import { counted, duration, timeOfDay } from './format.ts';
import { linkTo, linkToKey } from './route.ts';
import type { Route } from './route.ts';
import { badge, classOf, resultBadge } from './table.ts';
import type { Column, Tone } from './table.ts';

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
    isWide: true,
    order: ({ key }) => key,
    cell: ({ controller, key }) => h('a', { href: linkToKey(controller, key), title: key }, key),
  },
  {
    name: 'controller',
    title: 'Controller',
    isSpare: true,
    order: ({ controller }) => controller,
    cell: ({ controller }) => controller,
  },
  {
    name: 'state',
    title: 'State',
    order: ({ state, stateMs = 0 }) => STATES.indexOf(state) * 1e9 - stateMs,
    cell: ({ state, stateMs }) =>
      badge(TONES[state], stateMs === undefined ? state : `${state} ${duration(stateMs)}`),
  },
  {
    name: 'syncs',
    title: 'Syncs',
    isNumber: true,
    order: ({ syncs }) => -syncs,
    cell: ({ syncs }) => syncs,
  },
  {
    name: 'failures',
    title: 'Failed',
    isNumber: true,
    order: ({ failures }) => -failures,
    cell: ({ failures }) => failures,
  },
  {
    name: 'busy',
    title: 'Total time',
    isNumber: true,
    isSpare: true,
    order: ({ busyMs }) => -busyMs,
    cell: ({ busyMs }) => duration(busyMs),
  },
  {
    name: 'last',
    title: 'Last sync',
    isNumber: true,
    isSpare: true,
    order: ({ startedAt }) => (startedAt === undefined ? 0 : -Date.parse(startedAt)),
    cell: ({ startedAt }) => (startedAt === undefined ? '–' : timeOfDay(startedAt)),
  },
  {
    name: 'result',
    title: 'Result',
    isSpare: true,
    order: ({ result = '' }) => result,
    cell: ({ result }) => (result === undefined ? '–' : resultBadge(result)),
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

/** Returns the list of all keys. Only the visible rows have elements. */
export function keysOf(
  report: KeysReport | undefined,
  route: Route,
  go: (link: string) => void,
  redraw: () => void,
): Element_[] {
  if (!report) return [h('p', { class: 'state', key: 'loading' }, 'Loading the keys…')];
  const rows = selectedKeys(report, route);
  const { query } = route;
  const set = (name: string) => (event: Event) => {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) {
      go(linkTo('keys', { ...query, [name]: event.target.value }));
    }
  };
  const controllers = [...new Set(report.keys.map(({ controller }) => controller))].toSorted();
  const all = counted(report.keys.length, 'key');
  const shown = rows.length === report.keys.length ? all : `${rows.length} of ${all}`;
  const omitted = report.count - report.keys.length;
  return [
    h(
      'form',
      {
        class: 'filters',
        key: 'filters',
        role: 'search',
        'aria-label': 'Filters',
        onsubmit: (event) => event.preventDefault(),
      },
      field(
        'Name contains',
        h('input', { type: 'search', value: query['text'] ?? '', oninput: set('text') }),
      ),
      field('Controller', select(controllers, query['controller'], set('controller'))),
      field('State', select(STATES, query['state'], set('state'))),
      h(
        'p',
        { class: 'count', role: 'status' },
        omitted > 0 ? `${shown}; ${omitted} more are not listed` : shown,
      ),
    ),
    rows.length === 0
      ? h(
          'p',
          { class: 'state', key: 'none' },
          report.keys.length === 0 ? 'No key was synced yet.' : 'No key matches the filters.',
        )
      : virtualTable(rows, route, redraw),
  ];
}

function field(label: string, input: Element_): Element_ {
  return h('label', {}, h('span', {}, label), input);
}

function select(
  values: readonly string[],
  value: string | undefined,
  onchange: (event: Event) => void,
): Element_ {
  return h(
    'select',
    { onchange },
    h('option', { value: '', selected: !value }, 'all'),
    values.map((one) => h('option', { value: one, selected: one === value }, one)),
  );
}

function virtualTable(rows: readonly ListedKey[], { query }: Route, redraw: () => void): Element_ {
  const box = document.querySelector('#keys');
  const top = box?.scrollTop ?? 0;
  const height = box?.clientHeight ?? 600;
  const from = Math.max(0, Math.min(rows.length, Math.floor(top / ROW_PX)) - SPARE_ROWS);
  const to = Math.min(rows.length, Math.ceil((top + height) / ROW_PX) + SPARE_ROWS);
  const spacer = (key: string, count: number) =>
    count > 0 &&
    h(
      'tr',
      { key, 'aria-hidden': 'true', class: 'spacer' },
      h('td', { colspan: COLUMNS.length, style: `height:${count * ROW_PX}px` }),
    );
  return h(
    'div',
    {
      class: 'scroll virtual',
      id: 'keys',
      key: 'keys',
      tabindex: 0,
      role: 'group',
      'aria-label': 'Keys',
      onscroll: redraw,
    },
    h(
      'table',
      { 'aria-rowcount': rows.length + 1 },
      h('caption', { class: 'hidden' }, 'Keys'),
      h(
        'thead',
        {},
        h(
          'tr',
          { 'aria-rowindex': 1 },
          COLUMNS.map((column) => heading(column, query)),
        ),
      ),
      h(
        'tbody',
        {},
        spacer('above', from),
        rows.slice(from, to).map((row, at) =>
          h(
            'tr',
            { key: `${row.controller} ${row.key}`, 'aria-rowindex': from + at + 2 },
            COLUMNS.map((column) => cell(column, row)),
          ),
        ),
        spacer('below', rows.length - to),
      ),
    ),
  );
}

function cell(column: SortedColumn, row: ListedKey): Content {
  return h(
    column.name === 'key' ? 'th' : 'td',
    {
      class: classOf(column),
      ...(column.name === 'key' && { scope: 'row' }),
    },
    column.cell(row),
  );
}

function heading(column: SortedColumn, query: Route['query']): Element_ {
  const { sort = 'last', down } = query;
  const isSorted = sort === column.name;
  const next = { ...query, sort: column.name, down: isSorted && !down ? 'true' : undefined };
  return h(
    'th',
    {
      scope: 'col',
      class: classOf(column),
      'aria-sort': isSorted ? (down ? 'descending' : 'ascending') : undefined,
    },
    h(
      'a',
      { href: linkTo('keys', next) },
      column.title,
      h('span', { 'aria-hidden': 'true' }, isSorted ? (down ? ' ▲' : ' ▼') : ''),
    ),
  );
}
