import yargs from 'yargs';
import type { Argv } from 'yargs';
import type { FlagForm } from './arguments.ts';
import { UsageError } from './exit-codes.ts';
import { goQuote } from '../util/go-quote.ts';
import type { Option, Options, OptionValues } from './option.ts';
import { GROUPS } from './option.ts';
import { MASK, isSecretName, redactText } from './redact.ts';

export interface ParsedFlags<O extends Options> {
  readonly values: OptionValues<O>;
  /** What was set to something else than its default, as text, secrets masked: for the log. */
  readonly changed: Readonly<Record<string, string>>;
}

/** What the normaliser must know of `options`. */
export function flagForms(options: Options): FlagForm[] {
  return Object.entries(options).map(
    ([name, { aliases = [], isBoolean = false, isList = false }]) => ({
      name,
      aliases,
      isBoolean,
      isList,
    }),
  );
}

/**
 * Reads normalised flags. A flag on the command line comes first, then its environment variable,
 * then its default.
 *
 * @throws {UsageError} on a flag that is not in `options` and on a value it does not take
 */
export function parseFlags<O extends Options>(
  options: O,
  flags: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ParsedFlags<O> {
  const unknown = flags.map(nameOf).find((name) => !Object.hasOwn(options, name));
  if (unknown !== undefined) throw new UsageError(`unknown flag: ${flagNamed(unknown)}`);
  const given: Readonly<Record<string, unknown>> = flagParser(options).parseSync(flags);
  const changed: [string, string][] = [];
  const values = Object.entries(options).map(([name, option]) => {
    const source = sourceOf(name, option, given, environment);
    if (source.text !== option.default) {
      changed.push([name, isSecretName(name) ? MASK : redactText(source.text)]);
    }
    return [name, parse(option, source)] as const;
  });
  return {
    // Built from every entry of `options`, each parsed by its own parser.
    values: Object.fromEntries(values) as OptionValues<O>,
    changed: Object.fromEntries(changed),
  };
}

/** A yargs that knows `options`, takes no other, and never prints or exits by itself. */
export function flagParser(options: Options): Argv {
  const parser = yargs([])
    .parserConfiguration({
      'boolean-negation': false,
      'camel-case-expansion': false,
      'dot-notation': false,
      'duplicate-arguments-array': false,
      'parse-numbers': false,
      'short-option-groups': false,
    })
    .help(false)
    .version(false)
    .exitProcess(false)
    .strict()
    .fail((message: string, error: Error | undefined) => {
      throw error ?? new UsageError(message);
    });
  for (const [name, option] of sortedOptions(options)) {
    parser.option(name, {
      group: `${option.group}:`,
      describe: describe(option),
      alias: [...(option.aliases ?? [])],
      hidden: option.hidden ?? false,
      // Text stays text until the option's own parser reads it.
      ...(option.isBoolean ? { type: 'boolean' } : {}),
    });
  }
  return parser;
}

/** `--port`, `-v` */
export function flagNamed(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`;
}

function nameOf(flag: string): string {
  const [, name = ''] = /^--([^=]*)/.exec(flag) ?? [];
  return name;
}

function describe({ help, default: initial }: Option<unknown>): string {
  return initial === '' || initial === 'false' ? help : `${help} (default ${initial})`;
}

interface Source {
  /** Flag or variable, as the user knows it. */
  readonly called: string;
  readonly text: string;
}

function sourceOf(
  name: string,
  option: Option<unknown>,
  given: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
): Source {
  const called = flagNamed(name);
  const value = given[name];
  if (typeof value === 'string' || typeof value === 'boolean') {
    return { called, text: String(value) };
  }
  if (!option.flagOnly) {
    const variables = [environmentVariable(name), ...(option.environment ?? [])];
    for (const variable of variables) {
      const text = environment[variable];
      if (text) return { called: variable, text };
    }
  }
  return { called, text: option.default };
}

/** `CRD_CONTROLLER_KUBE_API_QPS` */
export function environmentVariable(flag: string): string {
  return `CRD_CONTROLLER_${flag.replaceAll('-', '_').toUpperCase()}`;
}

function parse<T>(option: Option<T>, { called, text }: Source): T {
  try {
    return option.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`invalid value ${goQuote(text)} for ${called}: ${error.message}`);
  }
}

/** As they are shown: by group, and by name within a group. */
export function sortedOptions(options: Options): [string, Option<unknown>][] {
  return Object.entries(options).sort(
    ([a, { group: groupOfA }], [b, { group: groupOfB }]) =>
      GROUPS.indexOf(groupOfA) - GROUPS.indexOf(groupOfB) || (a < b ? -1 : 1),
  );
}
