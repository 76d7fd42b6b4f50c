import { styleText } from 'node:util';
import { cut, pad, printable, widthOf } from './text.ts';

/** Style of a text. */
export type Style = 'plain' | 'heading' | 'faint' | 'good' | 'warning' | 'alarm' | 'selected';

/** Part of a line. */
export interface Span {
  readonly text: string;
  readonly style: Style;
}

export interface GridColumn {
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
export type Cell = string | (Span & { readonly value?: number | undefined });

const GAP = 2;

/** Texts are cut to this width before columns are omitted. */
const TEXT_WIDTH = 32;
const LAST_TEXT_WIDTH = 20;

/**
 * Returns the lines of a table that fits in `width`. Long texts are cut first, then columns that can be
 * omitted are omitted, then all texts are cut.
 */
export function grid(
  columns: readonly GridColumn[],
  rows: readonly (readonly Cell[])[],
  width: number,
): Span[][] {
  const cells = rows.map((row) => columns.map((_, column) => spanOf(row[column] ?? '')));
  const natural = columns.map(({ title }, column) =>
    cells.reduce((most, row) => Math.max(most, widthOf(row[column]?.text ?? '')), widthOf(title)),
  );
  const least = columns.map(({ isNumber }, column) => {
    const most = natural[column] ?? 0;
    const isLast = column === columns.length - 1;
    return isNumber ? most : Math.min(most, isLast ? LAST_TEXT_WIDTH : TEXT_WIDTH);
  });
  const kept = columnsThatFit(columns, least, width);
  const widths = widthsThatFit(kept, natural, least, width);
  const line = (row: readonly Span[]): Span[] =>
    kept.flatMap((column, position) => {
      const { text, style } = row[column] ?? { text: '', style: 'plain' };
      const room = widths[position] ?? 0;
      const shown = pad(cut(text, room), room, columns[column]?.isNumber ? 'right' : 'left');
      const span: Span = { text: shown, style };
      return position > 0 ? [{ text: ' '.repeat(GAP), style: 'plain' as const }, span] : [span];
    });
  const titles = columns.map(({ title }): Span => ({ text: title, style: 'heading' }));
  return [titles, ...cells].map((row) => line(row));
}

function columnsThatFit(
  columns: readonly GridColumn[],
  least: readonly number[],
  width: number,
): number[] {
  let kept = [...columns.keys()];
  const spareOf = (column: number) => columns[column]?.spare ?? 0;
  for (;;) {
    const sparest = Math.max(...kept.map(spareOf));
    if (total(kept.map((column) => least[column] ?? 0)) <= width || sparest <= 0) return kept;
    const gone = kept.findLastIndex((column) => spareOf(column) === sparest);
    kept = kept.toSpliced(gone, 1);
  }
}

/** Cuts the widest column again and again: first to the least widths, then to one. */
function widthsThatFit(
  kept: readonly number[],
  natural: readonly number[],
  least: readonly number[],
  width: number,
): number[] {
  const widths = kept.map((column) => natural[column] ?? 0);
  for (const to of [kept.map((column) => least[column] ?? 0), kept.map(() => 1)]) {
    while (total(widths) > width) {
      const most = Math.max(0, ...widths.filter((has, position) => has > (to[position] ?? 1)));
      const widest = widths.findLastIndex((has, at) => has === most && has > (to[at] ?? 1));
      if (widest === -1) break;
      widths[widest] = most - 1;
    }
  }
  return widths;
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each + GAP, -GAP);
}

function spanOf(cell: Cell): Span {
  const { text, style } = typeof cell === 'string' ? { text: cell, style: 'plain' as const } : cell;
  return { text: printable(text), style };
}

/** Cuts spans to a line of at most `width` columns. */
export function cutLine(spans: readonly Span[], width: number): Span[] {
  let room = width;
  const line: Span[] = [];
  for (const { text, style } of spans) {
    if (room <= 0) break;
    const shown = cut(printable(text), room);
    line.push({ text: shown, style });
    room -= widthOf(shown);
  }
  return line;
}

const FORMATS: Readonly<Record<Exclude<Style, 'plain'>, Parameters<typeof styleText>[0]>> = {
  heading: 'bold',
  faint: 'dim',
  good: 'green',
  warning: 'yellow',
  alarm: ['bold', 'red'],
  selected: 'inverse',
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
