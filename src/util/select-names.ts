/**
 * Selects names: `*` selects all that are on by default, `name` adds one, and `-name` removes one in any
 * position. If there are only `-name`s, `*` is implied.
 *
 * @returns the selected names in the order of `known`, and a selector's name that is not known
 */
export function selectNames(
  selectors: readonly string[],
  known: readonly string[],
  onByDefault: readonly string[] = known,
): { readonly selected: readonly string[]; readonly unknown: string | undefined } {
  const disabled = new Set(
    selectors.filter((selector) => selector.startsWith('-')).map((selector) => selector.slice(1)),
  );
  const enabled = new Set(selectors.filter((selector) => !selector.startsWith('-')));
  const unknown = [...enabled, ...disabled].find((name) => name !== '*' && !known.includes(name));
  const all = enabled.has('*') || enabled.size === 0;
  const selected = known.filter(
    (name) => ((all && onByDefault.includes(name)) || enabled.has(name)) && !disabled.has(name),
  );
  return { selected, unknown };
}
