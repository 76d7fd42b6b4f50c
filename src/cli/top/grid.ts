import { styleText } from 'node:util';

/** Style of a text. */
export type Style = 'plain' | 'heading' | 'faint' | 'good' | 'warning' | 'alarm';

/** Part of a line. */
export interface Span {
  readonly text: string;
  readonly style: Style;
}

export interface Column {
  readonly title: string;
  /**
   * Numbers are aligned right.
   * @default false
   */
  readonly isNumber?: boolean;
  /**
   * Columns with a higher value are omitted first if there is no room; 0 is never omitted.
   * @default 0
   */
  readonly spare?: number;
}

/** Text of a cell, with an optional style. */
export type Cell = string | Span;

const GAP = 2;

/**
 * Returns the lines of a table that fits in `width`. Columns that can be omitted are omitted first. Then
 * texts are cut, the last column first and then from the left.
 */
export function grid(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  width: number,
): Span[][] {
  const kept = columnsThatFit(columns, rows, width);
  const widths = widthsOf(columns, rows, kept, width);
  const line = (cells: readonly Cell[], style?: Style): Span[] => {
    const spans: Span[] = [];
    for (const [position, column] of kept.entries()) {
      const cell = spanOf(cells[column] ?? '');
      const room = widths[position] ?? 0;
      const isLast = position === kept.length - 1;
      if (position > 0) spans.push({ text: ' '.repeat(GAP), style: 'plain' });
      const text = aligned(cut(cell.text, room), room, columns[column], isLast);
      spans.push({ text, style: style ?? cell.style });
    }
    return spans;
  };
  const titles = columns.map(({ title }) => title);
  return [line(titles, 'heading'), ...rows.map((row) => line(row))];
}

function columnsThatFit(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  width: number,
): number[] {
  let kept = [...columns.keys()];
  const spareOf = (column: number) => columns[column]?.spare ?? 0;
  // The last column can be cut to this width before other columns are omitted.
  const least = (column: number) =>
    column === columns.length - 1
      ? Math.min(20, natural(columns, rows, column))
      : natural(columns, rows, column);
  for (;;) {
    const total = kept.reduce((sum, column) => sum + least(column) + GAP, -GAP);
    const sparest = Math.max(...kept.map(spareOf));
    if (total <= width || sparest <= 0) return kept;
    const gone = kept.findLastIndex((column) => spareOf(column) === sparest);
    kept = kept.toSpliced(gone, 1);
  }
}

function widthsOf(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  kept: readonly number[],
  width: number,
): number[] {
  const widths = kept.map((column) => natural(columns, rows, column));
  const over = () => widths.reduce((sum, each) => sum + each + GAP, -GAP) - width;
  for (const position of [widths.length - 1, ...widths.keys()]) {
    const cutBy = Math.min(Math.max(0, over()), Math.max(0, (widths[position] ?? 0) - 1));
    widths[position] = (widths[position] ?? 0) - cutBy;
  }
  return widths;
}

function natural(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  column: number,
): number {
  return rows.reduce(
    (widest, row) => Math.max(widest, spanOf(row[column] ?? '').text.length),
    columns[column]?.title.length ?? 0,
  );
}

function aligned(text: string, room: number, column: Column | undefined, isLast: boolean): string {
  if (column?.isNumber) return text.padStart(room);
  return isLast ? text : text.padEnd(room);
}

function spanOf(cell: Cell): Span {
  const { text, style } = typeof cell === 'string' ? { text: cell, style: 'plain' as const } : cell;
  return { text: printable(text), style };
}

/** Cuts spans to a line of at most `width` characters. */
export function cutLine(spans: readonly Span[], width: number): Span[] {
  let room = width;
  const line: Span[] = [];
  for (const { text, style } of spans) {
    if (room <= 0) break;
    const shown = cut(printable(text), room);
    line.push({ text: shown, style });
    room -= shown.length;
  }
  return line;
}

function cut(text: string, room: number): string {
  return text.length <= room ? text : `${text.slice(0, Math.max(0, room - 1))}…`.slice(0, room);
}

/** Replaces characters of names and messages that control a terminal or have another width. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e\u2026\u00b5]/g, '?');
}

const FORMATS: Readonly<Record<Exclude<Style, 'plain'>, Parameters<typeof styleText>[0]>> = {
  heading: 'bold',
  faint: 'dim',
  good: 'green',
  warning: 'yellow',
  alarm: ['bold', 'red'],
};

/** Returns a line with the escape sequences of its styles. */
export function paint(spans: readonly Span[], colour: boolean): string {
  return spans
    .map(({ text, style }) =>
      colour && style !== 'plain' && text.trim() !== ''
        ? styleText(FORMATS[style], text, { validateStream: false })
        : text,
    )
    .join('')
    .trimEnd();
}
