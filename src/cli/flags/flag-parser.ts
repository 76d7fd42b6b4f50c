import yargs from 'yargs';
import type { FlagForm } from './arguments.ts';
import { didYouMean } from '../../util/did-you-mean.ts';
import { UsageError } from '../common/errors.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { Option, Options, OptionValues } from './option.ts';
import { GROUPS } from './option.ts';
import { MASK, isSecretName, redactText } from '../../util/redact.ts';

export interface ParsedFlags<O extends Options> {
  readonly values: OptionValues<O>;
  /** Options that differ from their defaults, as text, with secrets masked, for the log. */
  readonly changed: Readonly<Record<string, string>>;
}

/** Returns the syntax of the flags of `options`. */
export function flagForms(options: Options): FlagForm[] {
  return Object.entries(options).map(([name, { aliases = [], type }]) => ({
    name,
    aliases: [...aliases, ...otherSpellings(name)],
    isBoolean: type === 'boolean',
    isList: type === 'list' || type === 'switches',
  }));
}

/**
 * kube-controller-manager uses `--leader-elect-lease-duration`; cert-manager and Flux use
 * `--leader-election-…`.
 */
function otherSpellings(name: string): readonly string[] {
  const [, which] = /^leader-elect-(.*)$/.exec(name) ?? [];
  return which === undefined ? [] : [`leader-election-${which}`];
}

/** Environment of a process, in which a prefix marks the variables of flags. */
export interface FlagEnvironment {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** `CRD_CONTROLLER_` */
  readonly prefix: string;
}

/** Value that a user gave to an option. */
export interface FlagSetting {
  /** Flag, variable or field, for messages. */
  readonly source: string;
  readonly text: string;
}

/** Settings of a configuration file, by flag. */
export type FileSettings = ReadonlyMap<string, FlagSetting>;

/** Name of the flag for the configuration file. */
export const CONFIG_FLAG = 'config';

/** Returns the path of the configuration file; empty if there is none. */
export function configPath(
  options: Options,
  flags: readonly string[],
  environment: FlagEnvironment,
): string {
  const option = options[CONFIG_FLAG];
  if (!option) return '';
  const { values } = parseFlags(
    { [CONFIG_FLAG]: option },
    flags.filter((flag) => nameOf(flag) === CONFIG_FLAG),
    environment,
  );
  return String(values[CONFIG_FLAG]);
}

/**
 * Parses normalised flags. Precedence: flag, environment variable, configuration file, default.
 *
 * @throws {UsageError} on an unknown flag and on an invalid value
 */
export function parseFlags<O extends Options>(
  options: O,
  flags: readonly string[],
  environment: FlagEnvironment,
  file: FileSettings = new Map(),
): ParsedFlags<O> {
  const unknown = flags.map(nameOf).find((name) => !Object.hasOwn(options, name));
  if (unknown !== undefined) {
    const hint = didYouMean(unknown, Object.keys(options), flagNamed);
    throw new UsageError(`unknown flag: ${flagNamed(unknown)}${hint}`);
  }
  const given = flagParser(options).parseSync(flags);
  const changed: [string, string][] = [];
  const values = Object.entries(options).map(([name, option]) => {
    const ofFile = file.get(name);
    const setting = effectiveSetting(name, option, [
      ...(ofFile ? [ofFile] : []),
      ...environmentSettings(name, option, environment),
      ...flagSettings(name, given),
    ]);
    if (setting.text !== option.default) {
      changed.push([name, isSecretName(name) ? MASK : redactText(setting.text)]);
    }
    return [name, parse(option, setting)] as const;
  });
  return {
    // Each entry of `options` was parsed by its own parser.
    values: Object.fromEntries(values) as OptionValues<O>,
    changed: Object.fromEntries(changed),
  };
}

/** What we use of a parser of yargs. Its types are no dependency of the package, whose declarations refer to this. */
export interface YargsParser {
  parseSync(flags: readonly string[]): Readonly<Record<string, unknown>>;
  scriptName(name: string): YargsParser;
  wrap(columns: number): YargsParser;
  usage(text: string): YargsParser;
  command(name: string, summary: string): YargsParser;
  epilogue(text: string): YargsParser;
  getHelp(): Promise<string>;
}

/** Returns a yargs parser for `options` that rejects other flags and never prints or exits. */
export function flagParser(options: Options): YargsParser {
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
      // Values stay text until the parser of the option reads them.
      ...(option.type === 'boolean' ? { type: 'boolean' } : {}),
    });
  }
  return parser;
}

/** Returns the flag with dashes: `--port`, `-v`. */
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

function flagSettings(name: string, given: Readonly<Record<string, unknown>>): FlagSetting[] {
  const value = given[name];
  return typeof value === 'string' || typeof value === 'boolean'
    ? [{ source: flagNamed(name), text: String(value) }]
    : [];
}

/** Returns settings in ascending precedence. An empty variable sets nothing. */
function environmentSettings(
  name: string,
  option: Option<unknown>,
  { variables, prefix }: FlagEnvironment,
): FlagSetting[] {
  if (option.flagOnly) return [];
  return [...(option.environment ?? []).toReversed(), environmentVariable(name, prefix)].flatMap(
    (source) => {
      const { variable, read } =
        typeof source === 'string' ? { variable: source, read: (text: string) => text } : source;
      const text = variables[variable];
      return text ? [{ source: variable, text: read(text) }] : [];
    },
  );
}

/** @param settings in ascending precedence */
function effectiveSetting(
  name: string,
  option: Option<unknown>,
  settings: readonly FlagSetting[],
): FlagSetting {
  if (option.type === 'switches') {
    for (const setting of settings) parse(option, setting);
    const text = settings.map(({ text }) => text).join(',');
    return { source: flagNamed(name), text: text || option.default };
  }
  return settings.at(-1) ?? { source: flagNamed(name), text: option.default };
}

/** Returns the environment variable of a flag: `CRD_CONTROLLER_KUBE_API_QPS`. */
export function environmentVariable(flag: string, prefix: string): string {
  return `${prefix}${flag.replaceAll('-', '_').toUpperCase()}`;
}

function parse<T>(option: Option<T>, { source, text }: FlagSetting): T {
  try {
    return option.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`invalid value ${goQuote(text)} for ${source}: ${error.message}`);
  }
}

/** Returns the options sorted by group, and by name within a group. */
export function sortedOptions(options: Options): [string, Option<unknown>][] {
  return Object.entries(options).sort(
    ([a, { group: groupOfA }], [b, { group: groupOfB }]) =>
      GROUPS.indexOf(groupOfA) - GROUPS.indexOf(groupOfB) || (a < b ? -1 : 1),
  );
}
