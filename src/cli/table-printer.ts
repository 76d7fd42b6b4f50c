/** `meta.k8s.io/v1` Table: what a server answers when asked for a kind as people see it. */
export interface Table {
  readonly columnDefinitions: readonly {
    readonly name: string;
    /** 0: always shown. Above: wide output only. */
    readonly priority?: number;
  }[];
  readonly rows: readonly { readonly cells: readonly unknown[] }[];
}

/** Options of `TablePrinter`. */
export interface TablePrinterOptions {
  /**
   * Show the columns that are left out by default, as `-o wide` does.
   * @default false
   */
  readonly wide?: boolean;
  /**
   * Put before every name, as kubectl does when it prints several kinds: `pod/`.
   * @default ''
   */
  readonly namePrefix?: string;
}

/** The proportions of kubectl's columns. */
const NARROWEST = 6;
const GAP = 3;

/** The media type that asks a server for a Table. */
export const TABLE_TYPE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/** The lines that kubectl prints for `table`: headings in capitals, then a line for each row. */
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

/** Pads each column to its longest cell; the last one ends where its text does. */
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

/** What a row has no value for is empty; a text ends with its first line and drives no terminal. */
function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  const text = typeof cell === 'string' ? cell : JSON.stringify(cell);
  const [line = '', ...rest] = text.split(/[\f\n\r]/);
  const visible = line.replaceAll('\u001b', '^[').replaceAll(/[^\P{Cc}\t]/gu, '');
  return rest.length === 0 ? visible : `${visible}...`;
}

function width(text: string): number {
  return Array.from(text).length;
}
