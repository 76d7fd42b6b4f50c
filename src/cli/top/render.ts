import { problemsOf, readinessText, stepAt, verdictLine } from '../../serving/words.ts';
import type { ProcessStatus } from '../../serving/debug-pages.ts';
import type { ProgramView, MonitorView } from './program-monitor.ts';
import { cutLine, grid, paint } from './grid.ts';
import type { Span } from './grid.ts';
import { helpLines, hintLine } from './help.ts';
import { keyPage } from './key-page.ts';
import type { KeyPageData } from './key-page.ts';
import { arrangeTables, currentPage, focusedTable, selectedAt, START } from './model.ts';
import type { PageState, Shown, TopState } from './model.ts';
import { tablesOf } from './tables.ts';
import type { PageId, TopTable } from './tables.ts';
import { durationCell, mebibytesCell, pad, printable, roughly, wrap } from './text.ts';

export interface ScreenSize {
  /** Columns. */
  readonly width: number;
  /** Lines; `Infinity` shows everything. */
  readonly height: number;
}

/** Returns the overview as lines that fit in `size`. */
export function renderView(
  view: MonitorView,
  { width, height }: ScreenSize,
  colour: boolean,
): string[] {
  const head = headOf(view, width);
  const tables = tablesOf(view.program, currentPage(START).id);
  const body = tableLines(tables, undefined, { width, height: height - head.length });
  return [...head, ...body].slice(0, height).map((line) => paint(cutLine(line, width), colour));
}

/** What is on the screen, and the data that the next key needs. */
export interface Drawn extends Shown {
  readonly text: readonly string[];
}

/**
 * Returns all lines of the screen: the head, the current page with the selected row, and one line with
 * the prompt or the keys.
 *
 * @param key data of the page, if it is the page of a key
 */
export function renderScreen(
  view: MonitorView,
  state: TopState,
  key: KeyPageData | undefined,
  { width, height }: ScreenSize,
  colour: boolean,
): Drawn {
  const page = currentPage(state);
  const head = [...headOf(view, width), ...titleOf(page.id)];
  const room = Math.max(0, height - head.length - 1);
  const tables = arrangeTables(tablesOf(view.program, page.id), page);
  const nowMs = Date.parse(view.program?.status.now ?? '');
  const lines = page.id.kind === 'key' ? keyPage(key, width, nowMs) : [];
  const from = Math.max(0, Math.min(page.scroll, lines.length - (room - 1)));
  const body = state.isHelp
    ? helpLines()
    : !view.program && view.notice
      ? [[], [faint("Set --address to the program's --debug-bind-address.")]]
      : page.id.kind === 'key'
        ? [[], ...lines.slice(from)]
        : tableLines(tables, page, { width, height: room });
  const filled = [...head, ...body, ...Array.from({ length: room }, () => [])].slice(0, height - 1);
  const last = hintLine(state, page);
  return {
    text: [...filled, last].map((line) => paint(cutLine(line, width), colour)).slice(-height),
    tables,
    lines: lines.length,
    height: Math.max(1, room - 1),
  };
}

function titleOf(id: PageId): Span[][] {
  if (id.kind === 'overview') return [];
  const text = id.kind === 'key' ? `Key ${id.key}` : `Queue ${id.controller}`;
  return [[], [{ text, style: 'heading' }]];
}

function headOf({ address, notice, program }: MonitorView, width: number): Span[][] {
  const title = [{ text: program?.status.name ?? 'program', style: 'heading' as const }];
  const lines: Span[][] = [
    [
      ...title,
      plain(
        program
          ? ` ${program.status.version} at ${address}, up ${roughly(program.status.upMs)}`
          : ` at ${address}`,
      ),
    ],
  ];
  if (notice) lines.push([{ text: notice.text, style: notice.isError ? 'alarm' : 'good' }]);
  if (program) lines.push(...verdictLines(program.status, width));
  if (program) lines.push(leaderLine(program.status), processLine(program));
  return lines;
}

function leaderLine({ election, now }: ProcessStatus): Span[] {
  if (!election) return [plain('no leader election')];
  const { identity, leases } = election;
  const held = leases.filter(({ holder }) => holder === identity);
  if (leases.length > 1) {
    const names = held.map(({ lease }) => lease.slice(lease.lastIndexOf('-') + 1)).join(',');
    return [
      {
        text: `owner of ${held.length} of ${leases.length} shards${names ? `: ${names}` : ''}`,
        style: held.length > 0 ? 'good' : 'warning',
      },
      plain(`; identity ${identity}`),
    ];
  }
  const [lease] = leases;
  if (!lease) return [{ text: `leader not known yet; identity ${identity}`, style: 'warning' }];
  if (lease.holder === '') return [{ text: `no leader; identity ${identity}`, style: 'warning' }];
  const sinceMs = Date.parse(now) - Date.parse(lease.acquireTime ?? '');
  const since = Number.isNaN(sinceMs) ? '' : ` for ${roughly(Math.max(0, sinceMs))}`;
  return held.length > 0
    ? [{ text: `leader${since}`, style: 'good' }, plain(`; identity ${identity}`)]
    : [
        { text: `standby; leader ${lease.holder}${since}`, style: 'warning' },
        plain(`; identity ${identity}`),
      ];
}

/** Number of problems that the head shows. */
const MAX_PROBLEMS = 4;

const PROBLEM_STYLES = { bad: 'alarm', warning: 'warning', neutral: 'good' } as const;

/**
 * What is wrong, as on the debug page, and whether /readyz passes. The worst problem takes as many lines as it needs, each
 * other one a line.
 */
function verdictLines({ verdict, now }: ProcessStatus, width: number): Span[][] {
  if (!verdict) return [];
  const nowMs = Date.parse(now);
  const problems = problemsOf(verdict);
  const lines = problems.slice(0, MAX_PROBLEMS).flatMap((problem, at): Span[][] => {
    const style = PROBLEM_STYLES[problem.tone];
    const linesOf = (text: string, indent = '') =>
      (at === 0 ? wrap(printable(text), width - indent.length) : [text]).map(
        (line) => indent + line,
      );
    const actions = [stepAt(problems, at), problem.command].filter((text) => text !== undefined);
    const actionLines = actions.flatMap((text) => linesOf(text, '  ')).map((text) => [plain(text)]);
    const line = (text: string): Span[] => [{ text, style }];
    return linesOf(verdictLine(problem, nowMs)).map(line).concat(actionLines);
  });
  const more = problems.length > MAX_PROBLEMS ? `and ${problems.length - MAX_PROBLEMS} more; ` : '';
  return [...lines, [faint(`${more}${readinessText(verdict)}`)]];
}

function processLine({ cpu, residentBytes, heapBytes, loopLagMs, windowMs }: ProgramView): Span[] {
  const isLate = loopLagMs !== undefined && loopLagMs > 200;
  const window = windowMs === undefined ? 'since the start' : `over the last ${roughly(windowMs)}`;
  return [
    plain(
      `cpu ${cpu === undefined ? '-' : `${Math.round(100 * cpu)}%`}, memory ${mebibytesCell(residentBytes)}, heap ${mebibytesCell(heapBytes)}, `,
    ),
    { text: `event loop lag p99 ${durationCell(loopLagMs)}`, style: isLate ? 'alarm' : 'plain' },
    { text: `; rates ${window}`, style: 'faint' },
  ];
}

/**
 * Distributes lines: a heading and one row for each table, first for the one with the selected row; half
 * of the height for that table; then the fair number of rows, then the rest from the top.
 */
function roomFor(
  tables: readonly TopTable[],
  focus: TopTable | undefined,
  height: number,
): number[] {
  let left = height;
  const half = Math.floor(height / 2);
  const rows = tables.map(({ rows: { length } }) => Math.max(1, length));
  const room = tables.map(() => 0);
  const grow = (limit: (at: number) => number) => {
    for (const at of tables.keys()) {
      const has = room[at] ?? 0;
      // The blank line and the heading are added with the first row.
      const overhead = has === 0 ? 2 : 0;
      const more = Math.min(limit(at) - has, left - overhead);
      if (more <= 0) continue;
      room[at] = has + more;
      left -= more + overhead;
    }
  };
  const growFocus = (most: number) =>
    grow((at) => (tables[at] === focus ? Math.min(rows[at] ?? 0, most) : 0));
  growFocus(1);
  grow(() => 1);
  growFocus(half);
  grow((at) => Math.min(rows[at] ?? 0, tables[at]?.fair ?? 0));
  grow((at) => rows[at] ?? 0);
  return room;
}

/** @param page absent: no row is selected */
function tableLines(
  tables: readonly TopTable[],
  page: PageState | undefined,
  { width, height }: ScreenSize,
): Span[][] {
  const focus = page && focusedTable(tables, page);
  const room = roomFor(tables, focus, height);
  return tables.flatMap((table, at) => {
    const rows = room[at] ?? 0;
    if (rows === 0) return [];
    if (!page) return [[], ...tableRows(table, -1, rows, width).lines];
    const selected = selectedAt(table, page);
    const { lines, marked } = tableRows(table, selected, rows, width - MARGIN);
    const isFocused = table === focus;
    return [
      [],
      ...lines.map((line, position) => {
        const isMarked = isFocused && position === (selected === -1 ? 0 : marked);
        const shown = isMarked && position > 0 ? [selectedLine(line, width - MARGIN)] : line;
        return [plain(isMarked ? '> ' : '  ')].concat(shown);
      }),
    ];
  });
}

/** Columns before a table for the mark of the selected row. */
const MARGIN = 2;

function selectedLine(line: readonly Span[], width: number): Span {
  const text = line.map((span) => span.text).join('');
  return { text: pad(text, width, 'left'), style: 'selected' };
}

/** Returns the heading and the rows around the selected one, with its position among the lines. */
function tableRows(
  { columns, rows, nothing }: TopTable,
  selected: number,
  room: number,
  width: number,
): { readonly lines: Span[][]; readonly marked: number } {
  if (rows.length === 0) {
    return { lines: [...grid(columns.slice(0, 1), [], width), [faint(nothing)]], marked: 0 };
  }
  const hasAll = rows.length <= room;
  // The last line is the number of other rows, if there is room for it.
  const count = hasAll ? rows.length : Math.max(1, room - 1);
  const from = Math.max(0, Math.min(selected - Math.floor(count / 2), rows.length - count));
  // All rows count for the widths, so that columns do not move while the user scrolls.
  const [heading = [], ...body] = grid(
    columns,
    rows.map(({ cells }) => cells),
    width,
  );
  const lines = [heading, ...body.slice(from, from + count)];
  if (!hasAll && room > 1) lines.push([faint(othersOf(from, rows.length - from - count))]);
  return { lines, marked: selected - from + 1 };
}

function othersOf(above: number, below: number): string {
  if (above === 0) return `... and ${below} more`;
  return below === 0 ? `... and ${above} above` : `... and ${above} above, ${below} below`;
}

function plain(text: string): Span {
  return { text, style: 'plain' };
}

function faint(text: string): Span {
  return { text, style: 'faint' };
}
