/** Words that the language keeps for itself. */
const RESERVED: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

const SEQUENCES: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
]);

/**
 * The name that expressions have for a property: `foo-bar` is `foo__dash__bar`, `namespace` is
 * `__namespace__`. Undefined if there is no way to name it.
 */
export function escapeName(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  if (!/^[a-zA-Z_./-][\w./-]*$/.test(name)) return undefined;
  return name.replace(/__|[-./]/g, (part) => SEQUENCES.get(part) ?? part);
}
