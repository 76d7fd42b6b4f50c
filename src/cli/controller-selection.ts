import { UsageError } from './exit-codes.ts';
import { goQuote } from '../util/go-quote.ts';

/**
 * The controllers that `--controllers` asks for: `*` is all that are on by default, `name` turns one
 * on, `-name` takes one away, wherever it stands. Nothing but `-name`s means `*` without those.
 *
 * @returns names in the order of `known`
 * @throws {UsageError} on a name that is not in `known`, and if none is left
 */
export function selectControllers(
  wishes: readonly string[],
  known: readonly string[],
  onByDefault: readonly string[] = known,
): readonly string[] {
  const unwanted = new Set(
    wishes.filter((wish) => wish.startsWith('-')).map((wish) => wish.slice(1)),
  );
  const wanted = new Set(wishes.filter((wish) => !wish.startsWith('-')));
  const unknown = [...wanted, ...unwanted].find((name) => name !== '*' && !known.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(
      `unknown controller ${goQuote(unknown)} in --controllers: must be *, or one of ${known.join(', ')}, with or without a leading "-"`,
    );
  }
  const all = wanted.has('*') || wanted.size === 0;
  const selected = known.filter(
    (name) => ((all && onByDefault.includes(name)) || wanted.has(name)) && !unwanted.has(name),
  );
  if (selected.length === 0) throw new UsageError('--controllers selects no controller');
  return selected;
}
