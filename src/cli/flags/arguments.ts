import { goQuote } from '../../util/go-quote.ts';
import { UsageError } from '../common/errors.ts';
import { parseGoBoolean } from './option.ts';

/** Syntax of a flag. */
export interface FlagForm {
  /** Name with dashes: `leader-elect`. */
  readonly name: string;
  /** Other names, such as `h` for `help`. */
  readonly aliases?: readonly string[];
  /** A boolean flag takes a value after `=` only, and is true without a value. */
  readonly isBoolean: boolean;
  /** A repeated flag appends to its comma-separated list. For other flags, the last occurrence wins. */
  readonly isList: boolean;
}

export interface Arguments {
  /** Arguments that are not flags, in order. */
  readonly positionals: readonly string[];
  /** Each flag once, as `--name=value`. Unknown flags are unchanged, with two dashes. */
  readonly flags: readonly string[];
}

/**
 * Normalises a command line in the style of Go and Kubernetes: `-name`, `--name` and `--na_me` are the same
 * flag. A value follows after `=` or as the next argument. `-v4` is `-v=4`. `--` ends the flags. Flags and
 * positional arguments can be mixed.
 *
 * @param own the forms of the command, of which errors suggest one
 * @throws {UsageError} on a missing value, an invalid boolean and invalid syntax
 */
export function normaliseArguments(
  argv: readonly string[],
  forms: readonly FlagForm[],
  own: readonly FlagForm[] = [],
): Arguments {
  const known = new Map(
    forms.flatMap((form) => [form.name, ...(form.aliases ?? [])].map((name) => [name, form])),
  );
  const positionals: string[] = [];
  const values = new Map<string, string>();
  const rest = argv.values();
  for (const argument of rest) {
    if (argument === '--') {
      positionals.push(...rest);
    } else if (!argument.startsWith('-') || argument === '-') {
      positionals.push(argument);
    } else {
      const { name, text } = split(argument, known);
      const form = known.get(name);
      if (!form) {
        values.set(name, text ?? '');
        continue;
      }
      const value = form.isBoolean ? booleanText(name, text, own) : (text ?? rest.next().value);
      if (value === undefined) throw new UsageError(`flag needs a value: ${argument}`);
      const earlier = form.isList ? values.get(form.name) : undefined;
      values.set(form.name, earlier === undefined ? value : `${earlier},${value}`);
    }
  }
  return { positionals, flags: Array.from(values, ([name, value]) => `--${name}=${value}`) };
}

/** Splits `--name=text`, and `-v4` if `v` is a flag and `v4` is not. */
function split(
  argument: string,
  known: ReadonlyMap<string, FlagForm>,
): { name: string; text: string | undefined } {
  const [, body = ''] = /^--?([\s\S]*)$/.exec(argument) ?? [];
  const equals = body.indexOf('=');
  const name = (equals === -1 ? body : body.slice(0, equals)).replaceAll('_', '-');
  if (name === '' || name.startsWith('-')) throw new UsageError(`bad flag syntax: ${argument}`);
  const [, letter, number] = /^([a-z])(\d+)$/.exec(name) ?? [];
  if (letter !== undefined && equals === -1 && known.has(letter) && !known.has(name)) {
    return { name: letter, text: number };
  }
  return { name, text: equals === -1 ? undefined : body.slice(equals + 1) };
}

function booleanText(name: string, text: string = 'true', own: readonly FlagForm[]): string {
  const value = parseGoBoolean(text);
  if (value === undefined) {
    const longer = own.find((form) => !form.isBoolean && form.name.endsWith(`-${name}`));
    const hint = longer ? `; did you mean --${longer.name}?` : '';
    throw new UsageError(
      `invalid value ${goQuote(text)} for --${name}: must be true or false${hint}`,
    );
  }
  return String(value);
}
