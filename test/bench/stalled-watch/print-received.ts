/** Prints the label of a received object, by which the benchmark recognizes it. */
export function printReceived(object: {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
}): void {
  process.stdout.write(`${object.metadata?.labels?.['value'] ?? 'none'}\n`);
}
