import { printableText } from '../../util/printable.ts';

/** `meta.k8s.io/v1` Table: the printed form of a list. */
export interface Table {
  readonly columnDefinitions: readonly {
    readonly name: string;
    /** 0: always shown. Above 0: in wide output only. */
    readonly priority?: number;
  }[];
  readonly rows: readonly { readonly cells: readonly unknown[] }[];
}

/** Options of `tableLines`. */
export interface TablePrinterOptions {
  /**
   * Whether to show all columns, as `-o wide` does.
   * @default false
   */
  readonly wide?: boolean | undefined;
  /**
   * Prefix of every name, as kubectl prints it for several kinds: `pod/`.
   * @default ''
   */
  readonly namePrefix?: string | undefined;
}

/** Column widths of kubectl. */
const NARROWEST = 6;
const GAP = 3;

/** Media type that requests a Table. */
export const TABLE_TYPE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/** Returns the lines that kubectl prints for `table`: a heading in capitals, then one line for each row. */
export function tableLines(table: Table, options: TablePrinterOptions = {}): string[] {
  const { wide = false, namePrefix = '' } = options;
  const shown = [...table.columnDefinitions.entries()].filter(
    ([, { priority = 0 }]) => wide || priority === 0,
  );
  const names = shown.map(([, { name }]) => name.toUpperCase());
  const rows = table.rows.map(({ cells }) =>
    shown.map(([index], column) => (column === 0 ? namePrefix : '') + cellText(cells[index])),
  );
  return columnLines([names, ...rows]);
}

/** Pads each column to its longest cell. The last column is not padded. */
export function columnLines(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? NARROWEST, width(cell) + GAP);
    }
  }
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === row.length - 1 ? cell : cell + ' '.repeat((widths[column] ?? 0) - width(cell)),
      )
      .join(''),
  );
}

/** Returns the first line of a cell without control characters; empty if there is no value. */
function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  const text = typeof cell === 'string' ? cell : JSON.stringify(cell);
  const [line = '', ...rest] = text.split(/[\f\n\r]/);
  const visible = printableText(line.replaceAll('\u001b', '^[').replaceAll(/[^\P{Cc}\t]/gu, ''));
  return rest.length === 0 ? visible : `${visible}...`;
}

function width(text: string): number {
  return Array.from(text).length;
}
