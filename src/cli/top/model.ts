import type { Cell } from './grid.ts';
import type { Key } from './keyboard.ts';
import type { PageId, Row, TopTable } from './tables.ts';

/** State of the user interface: what the user has opened, selected, sorted and filtered. */
export interface TopState {
  /** Opened pages; the last one is shown. */
  readonly pages: readonly PageState[];
  /** Line of text that the user types. */
  readonly prompt?: { readonly kind: 'filter' | 'key'; readonly text: string };
  readonly isHelp: boolean;
  /** The data is not refreshed. */
  readonly isPaused: boolean;
}

export interface PageState {
  readonly id: PageId;
  /** Table with the selected row; the first one if it is absent. */
  readonly focus?: string;
  readonly tables: Readonly<Record<string, TableState>>;
  /** Only rows with this text are shown. */
  readonly filter: string;
  /** First shown line of a page of text. */
  readonly scroll: number;
}

export interface TableState {
  /** Selected row. If it disappears, the row at the same position is selected. */
  readonly row?: { readonly id: string; readonly at: number };
  /** Absent: the order of the program. */
  readonly sort?: { readonly column: number; readonly isReverse: boolean };
}

/** Data that the meaning of a key depends on. */
export interface Shown {
  /** Tables of the page, as `arranged` returns them. */
  readonly tables: readonly TopTable[];
  /** Number of lines of a page of text. */
  readonly lines: number;
  /** Number of lines that fit on the screen. */
  readonly height: number;
}

export const START: TopState = {
  pages: [pageState({ kind: 'overview' })],
  isHelp: false,
  isPaused: false,
};

function pageState(id: PageId): PageState {
  return { id, tables: {}, filter: '', scroll: 0 };
}

/** Returns the shown page. */
export function currentPage({ pages }: TopState): PageState {
  return pages.at(-1) ?? pageState({ kind: 'overview' });
}

/** Returns the tables with the filter and the order that the user chose. */
export function arrangeTables(tables: readonly TopTable[], page: PageState): TopTable[] {
  const wanted = page.filter.toLowerCase();
  return tables.map((table) => {
    const rows = table.rows.filter(({ cells }) =>
      cells.some((cell) => textOf(cell).toLowerCase().includes(wanted)),
    );
    const sort = page.tables[table.id]?.sort;
    const nothing = table.rows.length > 0 ? 'no match' : table.nothing;
    if (!sort) return { ...table, rows, nothing };
    const direction = isDescending(table, sort) ? -1 : 1;
    const sorted = rows.toSorted(
      (a, b) => direction * compareCells(a.cells[sort.column] ?? '', b.cells[sort.column] ?? ''),
    );
    const mark = direction === 1 ? '▲' : '▼';
    const columns = table.columns.map((column, at) =>
      at === sort.column ? { ...column, title: `${column.title}${mark}` } : column,
    );
    return { ...table, rows: sorted, columns, nothing };
  });
}

/** Numbers start with the highest one, texts with the first one of the alphabet. */
function isDescending(
  { columns }: TopTable,
  { column, isReverse }: NonNullable<TableState['sort']>,
): boolean {
  return (columns[column]?.isNumber ?? false) !== isReverse;
}

function compareCells(a: Cell, b: Cell): number {
  const [one, other] = [valueOf(a), valueOf(b)];
  // Equal infinities have no difference.
  if (one !== undefined && other !== undefined) return one === other ? 0 : one - other;
  return textOf(a).localeCompare(textOf(b), 'en', { numeric: true });
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text;
}

function valueOf(cell: Cell): number | undefined {
  return typeof cell === 'string' ? undefined : cell.value;
}

/** Returns the table with the selected row: the one that the user chose, or the first one that has a row. */
export function focusedTable(
  tables: readonly TopTable[],
  { focus }: PageState,
): TopTable | undefined {
  return (
    tables.find(({ id }) => id === focus) ?? tables.find(({ rows }) => rows.length > 0) ?? tables[0]
  );
}

/** Returns the position of the selected row; -1 if the table is empty. */
export function selectedAt({ id, rows }: TopTable, { tables }: PageState): number {
  const { row } = tables[id] ?? {};
  const at = rows.findIndex((each) => each.id === row?.id);
  return at === -1 ? Math.min(row?.at ?? 0, rows.length - 1) : at;
}

/** Returns the state after a key was pressed; undefined if the user quits. */
export function press(state: TopState, key: Key, shown: Shown): TopState | undefined {
  if (key === 'interrupt') return undefined;
  if (state.prompt) return typeKey(state, state.prompt, key);
  if (state.isHelp) return { ...state, isHelp: false };
  const page = currentPage(state);
  const isBack = ['escape', 'q', 'Q', 'backspace'].includes(key);
  if (isBack && page.filter !== '' && key === 'escape') return withPage(state, { filter: '' });
  if (isBack && state.pages.length > 1) return { ...state, pages: state.pages.slice(0, -1) };
  switch (key) {
    case 'q':
    case 'Q':
      return undefined;
    case '?':
      return { ...state, isHelp: true };
    case ' ':
      return { ...state, isPaused: !state.isPaused };
    case '/':
      return { ...state, prompt: { kind: 'filter', text: page.filter } };
    case 'w':
      return { ...state, prompt: { kind: 'key', text: '' } };
    default:
      return page.id.kind === 'key'
        ? withPage(state, { scroll: scroll(page.scroll, key, shown) })
        : moveSelection(state, key, shown);
  }
}

/** Edits the prompt. A filter has an effect while it is typed. */
function typeKey(
  state: TopState,
  { kind, text }: NonNullable<TopState['prompt']>,
  key: Key,
): TopState {
  const { prompt: _, ...closed } = state;
  const edited = (next: string): TopState => {
    const filtered = kind === 'filter' ? withPage(state, { filter: next }) : state;
    return { ...filtered, prompt: { kind, text: next } };
  };
  switch (key) {
    case 'escape':
      return kind === 'filter' ? withPage(closed, { filter: '' }) : closed;
    case 'enter': {
      const wanted = text.trim();
      return kind === 'filter' || wanted === ''
        ? closed
        : opened(closed, { kind: 'key', key: wanted });
    }
    case 'backspace':
      return text === '' ? closed : edited(Array.from(text).slice(0, -1).join(''));
    case 'clear':
      return edited('');
    default:
      // Names of keys are longer than characters.
      return Array.from(key).length === 1 && text.length < 400 ? edited(text + key) : state;
  }
}

/** Returns the distance for a key that moves by rows or lines. */
function distance(key: Key, page: number): number {
  switch (key) {
    case 'up':
    case 'k':
      return -1;
    case 'down':
    case 'j':
      return 1;
    case 'pageUp':
      return -page;
    case 'pageDown':
      return page;
    case 'home':
    case 'g':
      return -Infinity;
    case 'end':
    case 'G':
      return Infinity;
    default:
      return 0;
  }
}

function scroll(from: number, key: Key, { lines, height }: Shown): number {
  const to = Math.min(from, lines - height) + distance(key, Math.max(1, height - 1));
  return Math.max(0, Math.min(to, lines - height));
}

/** Moves in the tables, sorts them, and opens a row. */
function moveSelection(state: TopState, key: Key, { tables, height }: Shown): TopState {
  const page = currentPage(state);
  const table = focusedTable(tables, page);
  if (!table) return state;
  const at = selectedAt(table, page);
  const sort = page.tables[table.id]?.sort;
  const withSort = (next: TableState['sort']) => {
    const { sort: _, ...rest } = page.tables[table.id] ?? {};
    return withTable(state, table, next ? { ...rest, sort: next } : rest);
  };
  switch (key) {
    case 'enter': {
      const opens = table.rows[at]?.opens;
      return opens ? opened(state, opens) : state;
    }
    case 'tab':
    case 'backTab':
      return focusTable(state, tables, table, key === 'tab' ? 1 : -1);
    case 'right':
    case '>':
    case 'left':
    case '<': {
      // One position more than there are columns: the order of the program.
      const positions = table.columns.length + 1;
      const step = key === 'right' || key === '>' ? 1 : -1;
      const next = ((sort?.column ?? -1) + 1 + step + positions) % positions;
      return withSort(next === 0 ? undefined : { column: next - 1, isReverse: false });
    }
    case 'r':
      return sort ? withSort({ ...sort, isReverse: !sort.isReverse }) : state;
    default: {
      const by = distance(key, Math.max(1, Math.floor(height / 2)));
      if (by === 0) return state;
      if (at + by < 0 && by === -1) return crossTables(state, tables, table, -1);
      if (at + by >= table.rows.length && by === 1) return crossTables(state, tables, table, 1);
      return select(state, table, Math.max(0, Math.min(at + by, table.rows.length - 1)));
    }
  }
}

/** Moves over the first or last row of a table to the next table with rows, if there is one. */
function crossTables(
  state: TopState,
  tables: readonly TopTable[],
  table: TopTable,
  step: 1 | -1,
): TopState {
  const at = tables.indexOf(table);
  const rest = step === 1 ? tables.slice(at + 1) : tables.slice(0, at).reverse();
  const next = rest.find(({ rows }) => rows.length > 0);
  if (!next) return state;
  return select(withPage(state, { focus: next.id }), next, step === 1 ? 0 : next.rows.length - 1);
}

function focusTable(
  state: TopState,
  tables: readonly TopTable[],
  table: TopTable,
  step: 1 | -1,
): TopState {
  const at = tables.indexOf(table) + step + tables.length;
  const next = tables[at % tables.length] ?? table;
  return withPage(state, { focus: next.id });
}

function select(state: TopState, table: TopTable, at: number): TopState {
  const row: Row | undefined = table.rows[at];
  if (!row) return state;
  const known = currentPage(state).tables[table.id];
  const next = withTable(state, table, { ...known, row: { id: row.id, at } });
  return withPage(next, { focus: table.id });
}

function withTable(state: TopState, { id }: TopTable, table: TableState): TopState {
  return withPage(state, { tables: { ...currentPage(state).tables, [id]: table } });
}

function withPage(state: TopState, change: Partial<PageState>): TopState {
  const page = { ...currentPage(state), ...change };
  return { ...state, pages: [...state.pages.slice(0, -1), page] };
}

function opened(state: TopState, id: PageId): TopState {
  return { ...state, pages: [...state.pages, pageState(id)] };
}
