/** Formats a table: the first column is left-aligned, the others right-aligned. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [columns, ...rows];
  const widths = columns.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const text = (line: readonly string[]) =>
    line
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [
    text(columns),
    widths.map((width) => '-'.repeat(width)).join('  '),
    ...rows.map(text),
  ].join('\n');
}
