import { goQuote } from '../../util/go-quote.ts';
import { UsageError } from '../exit-codes.ts';
import { parseGoBoolean } from './go-values.ts';

/** What the normaliser must know of a flag. */
export interface FlagForm {
  /** With dashes: `leader-elect`. */
  readonly name: string;
  /** Other spellings, such as `h` for `help`. */
  readonly aliases?: readonly string[];
  /** A boolean flag takes its value after `=` only, and means true without one. */
  readonly isBoolean: boolean;
  /** Repeating the flag adds to its comma-separated list; else the last occurrence wins. */
  readonly isList: boolean;
}

export interface Arguments {
  /** Everything that is no flag, in order. */
  readonly positionals: readonly string[];
  /** Each flag once, as `--name=value`; unknown flags as they were, but with two dashes. */
  readonly flags: readonly string[];
}

/**
 * Brings a command line in the style of Go and Kubernetes into the one form that is parsed
 * further: `-name`, `--name` and `--na_me` are the same flag; a value follows after `=` or as the
 * next argument, whatever that looks like; `-v4` is `-v=4`; `--` ends the flags; flags and other
 * arguments may be mixed.
 *
 * @throws {UsageError} on a missing value, a value that is no boolean, and bad syntax
 */
export function normaliseArguments(argv: readonly string[], forms: readonly FlagForm[]): Arguments {
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
      const value = form.isBoolean ? booleanText(name, text) : (text ?? rest.next().value);
      if (value === undefined) throw new UsageError(`flag needs a value: ${argument}`);
      const earlier = form.isList ? values.get(form.name) : undefined;
      values.set(form.name, earlier === undefined ? value : `${earlier},${value}`);
    }
  }
  return { positionals, flags: Array.from(values, ([name, value]) => `--${name}=${value}`) };
}

/** Splits `--name=text`, and `-v4` where `v` is a flag and `v4` is none. */
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

function booleanText(name: string, text: string = 'true'): string {
  const value = parseGoBoolean(text);
  if (value === undefined) {
    throw new UsageError(`invalid value ${goQuote(text)} for --${name}: must be true or false`);
  }
  return String(value);
}
