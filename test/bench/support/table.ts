/** Formats a Markdown table. Rows may lack cells at the end. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [columns, ...rows];
  const widths = columns.map((_, column) =>
    Math.max(3, ...lines.map((line) => line[column]?.length ?? 0)),
  );
  const text = (line: readonly string[]) =>
    `| ${widths.map((width, column) => (line[column] ?? '').padEnd(width)).join(' | ')} |`;
  return [text(columns), text(widths.map((width) => '-'.repeat(width))), ...rows.map(text)].join(
    '\n',
  );
}
