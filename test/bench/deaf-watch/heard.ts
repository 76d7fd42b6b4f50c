/** Says on stdout what a client's handler was told: the label that the benchmark counts by. */
export function heard(object: {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
}): void {
  process.stdout.write(`${object.metadata?.labels?.['value'] ?? 'none'}\n`);
}
