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
export class FlagSetting {
  /** Flag, variable or field, for messages. */
  readonly source: string;
  readonly text: string;

  constructor(source: string, text: string) {
    this.source = source;
    this.text = text;
  }
}

/** FlagSettings of the environment or of a configuration file, by flag, in descending precedence. */
export type FlagSettings = Readonly<Record<string, readonly FlagSetting[]>>;

/** Name of the flag for the configuration file. */
export const CONFIG_FLAG = 'config';

/** Returns the path of the configuration file; empty if there is none. */
export function configPath(
  options: Options,
  flags: readonly string[],
  { variables, prefix }: FlagEnvironment,
): string {
  if (!options[CONFIG_FLAG]) return '';
  const start = `--${CONFIG_FLAG}=`;
  const flag = flags.find((each) => each.startsWith(start));
  return flag?.slice(start.length) ?? variables[environmentVariable(CONFIG_FLAG, prefix)] ?? '';
}

/** A command as yargs parses it and shows it in its help. */
export interface CommandSyntax {
  readonly name: string;
  readonly summary: string;
  /** About the command, and how it is used. */
  readonly usage: string;
  readonly examples: readonly string[];
  /** Text at the end of the help. */
  readonly end: string;
}

/** Command line of a command, with normalised flags. */
export interface CommandWords {
  readonly flags: readonly string[];
  readonly operands: readonly string[];
  /** Whether the command rejects operands. */
  readonly isClosed: boolean;
  /** Word in the place of a command, which is none. */
  readonly unknown?: string | undefined;
}

/** Output of `--help` and `--version`. */
export interface HelpOptions {
  readonly columns: number;
  readonly version: string;
}

/**
 * Parses the flags of a command line. Precedence: flag, environment variable, configuration file, default.
 *
 * @param commands all commands; the first one is the default
 * @param command index of the command
 * @returns the flags, or the text that `--help` or `--version` asks for
 * @throws {UsageError} on an unknown command, flag or argument, and on an invalid value
 */
export function parseCommandLine<O extends Options>(
  commands: readonly CommandSyntax[],
  command: number,
  options: O,
  { flags, operands, isClosed, unknown }: CommandWords,
  settings: readonly FlagSettings[],
  { columns, version }: HelpOptions,
): ParsedFlags<O> | string {
  let given: Readonly<Record<string, unknown>> | undefined;
  let text = '';
  const parser = strictParser(Object.keys(options), commands, unknown);
  // The list of commands shows their names without the name of the program.
  parser.scriptName('').wrap(columns);
  for (const [index, { name, summary, usage, examples, end }] of commands.entries()) {
    parser.command(
      index === 0 ? [name, '$0'] : name,
      summary,
      (inner) => {
        const [stray] = isClosed ? operands : [];
        if (stray !== undefined) {
          inner.demandCommand(0, 0, undefined, `unexpected argument: ${goQuote(stray)}`);
        }
        inner.usage(usage).epilogue(end);
        for (const example of examples) inner.example(example, '');
        addOptions(inner, options, settings);
        inner
          .help('help', options['help']?.help)
          .version('version', options['version']?.help ?? '', version);
      },
      (values) => {
        given = values;
      },
    );
  }
  const name = command === 0 ? unknown : commands[command]?.name;
  const words = [...(name === undefined ? [] : [name]), ...flags, '--', ...operands];
  parser.parseSync(words, {}, (_: unknown, __: unknown, output: string) => {
    text = output;
  });
  return given ? parsedFlags(options, given) : text;
}

/**
 * Parses normalised flags alone, without a command.
 *
 * @throws {UsageError} on an unknown flag and on an invalid value
 */
export function parseFlags<O extends Options>(
  options: O,
  flags: readonly string[],
  environment: FlagEnvironment,
  file: FlagSettings = {},
): ParsedFlags<O> {
  const parser = strictParser(Object.keys(options));
  addOptions(parser, options, [environmentSettings(options, environment), file]);
  return parsedFlags(options, parser.parseSync([...flags]));
}

/** Flag with which a completion script asks for the words to offer. The words of the line follow. */
export const COMPLETION_FLAG = '--get-yargs-completions';

/** Returns the answer to a completion script. */
export function completionAnswer(
  argv: readonly string[],
  lines: (words: readonly string[]) => string[],
): string {
  let text = '';
  yargs()
    .exitProcess(false)
    .completion('completion', false, () => lines(argv.slice(argv.indexOf(COMPLETION_FLAG) + 1)))
    .parseSync([...argv], {}, (_: unknown, __: unknown, output: string) => {
      text = output;
    });
  return text;
}

/** Returns a parser that rejects unknown words, and never prints or exits. */
function strictParser(
  known: readonly string[],
  commands: readonly CommandSyntax[] = [],
  unknownCommand?: string,
) {
  return yargs([])
    .parserConfiguration({
      'boolean-negation': false,
      'camel-case-expansion': false,
      'combine-arrays': true,
      'dot-notation': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'populate--': true,
      'short-option-groups': false,
    })
    .detectLocale(false)
    .help(false)
    .version(false)
    .exitProcess(false)
    .strict()
    .fail((message: string | null, error: Error | undefined) => {
      const [, word] = /^Unknown arguments?: ([^,]+)/.exec(message ?? '') ?? [];
      if (word === undefined) throw error ?? new UsageError(message ?? '');
      if (word === unknownCommand) {
        const names = commands.map(({ name }) => name);
        throw new UsageError(`unknown command: ${goQuote(word)}${didYouMean(word, names)}`);
      }
      const hint = didYouMean(word, known, flagNamed);
      throw new UsageError(`unknown flag: ${flagNamed(word)}${hint}`);
    });
}

/** @param settings of the environment and of a file, in descending precedence */
function addOptions(
  parser: ReturnType<typeof yargs>,
  options: Options,
  settings: readonly FlagSettings[],
): void {
  for (const [name, option] of sortedOptions(options)) {
    const { group, help, type, aliases = [], hidden = false, default: initial } = option;
    parser.option(name, {
      group: `${group}:`,
      describe: help,
      defaultDescription: initial === 'false' ? '' : initial,
      alias: [...aliases],
      hidden,
      // Values stay text until the parser of the option reads them.
      boolean: type === 'boolean',
      // The settings of all sources are combined.
      array: type === 'switches',
    });
  }
  for (const each of settings) parser.config(each);
}

/** Parses what yargs found: texts of flags, and settings of other sources. */
function parsedFlags<O extends Options>(
  options: O,
  given: Readonly<Record<string, unknown>>,
): ParsedFlags<O> {
  const changed: [string, string][] = [];
  const values = Object.entries(options).map(([name, option]) => {
    const setting = effectiveSetting(name, option, settingsIn(name, given[name]));
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

function settingsIn(name: string, found: unknown): FlagSetting[] {
  if (Array.isArray(found)) return found.flatMap((each) => settingsIn(name, each)).toReversed();
  if (found instanceof FlagSetting) return [found];
  return typeof found === 'string' || typeof found === 'boolean'
    ? [new FlagSetting(flagNamed(name), String(found))]
    : [];
}

/** Returns the flag with dashes: `--port`, `-v`. */
export function flagNamed(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`;
}

/** Returns what the environment sets. An empty variable sets nothing. */
export function environmentSettings(
  options: Options,
  { variables, prefix }: FlagEnvironment,
): FlagSettings {
  const settings: Record<string, FlagSetting[]> = {};
  for (const [name, option] of Object.entries(options)) {
    if (option.flagOnly) continue;
    for (const source of [environmentVariable(name, prefix), ...(option.environment ?? [])]) {
      const { variable, read } =
        typeof source === 'string' ? { variable: source, read: (text: string) => text } : source;
      const text = variables[variable];
      if (text) (settings[name] ??= []).push(new FlagSetting(variable, read(text)));
    }
  }
  return settings;
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
    return new FlagSetting(flagNamed(name), text || option.default);
  }
  return settings.at(-1) ?? new FlagSetting(flagNamed(name), option.default);
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
