/** Flags of a Go program. */
export interface GoFlags {
  /** Names without dashes; others are an error. */
  readonly names: ReadonlySet<string>;
  /** The flags of these names need no value: `--name` is `--name=true`. */
  readonly booleans: ReadonlySet<string>;
}

export type ParsedGoFlags =
  | { readonly kind: 'parsed'; readonly values: ReadonlyMap<string, string> }
  | { readonly kind: 'wrong'; readonly problem: string };

/**
 * Parses arguments as Go's pflag does: `--name=value`, `--name value` and `--name`, with one dash for one letter. A
 * repeated flag has its values separated by commas.
 */
export function parseGoFlags(args: readonly string[], { names, booleans }: GoFlags): ParsedGoFlags {
  const values = new Map<string, string>();
  const rest = args.values();
  for (const argument of rest) {
    const [, name = '', given] = /^--?([^=]*)(?:=(.*))?$/s.exec(argument) ?? [];
    if (!names.has(name)) return { kind: 'wrong', problem: `unknown flag: ${argument}` };
    const value = given ?? (booleans.has(name) ? 'true' : rest.next().value);
    if (value === undefined) {
      return { kind: 'wrong', problem: `flag needs an argument: --${name}` };
    }
    const before = values.get(name);
    values.set(name, before === undefined ? value : `${before},${value}`);
  }
  return { kind: 'parsed', values };
}

/** Returns the names in a text, separated by spaces. */
export function flagNames(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}
