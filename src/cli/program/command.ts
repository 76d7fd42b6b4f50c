import type { Arguments } from '../flags/arguments.ts';
import { normaliseArguments } from '../flags/arguments.ts';
import {
  configPath,
  environmentSettings,
  flagForms,
  parseCommandLine,
} from '../flags/flag-parser.ts';
import type {
  FlagEnvironment,
  HelpOptions,
  ParsedFlags,
  FlagSettings,
} from '../flags/flag-parser.ts';
import { optionGroup } from '../flags/option.ts';
import type { Options } from '../flags/option.ts';
import { COMMON_OPTIONS, KLOG_FLAGS } from '../flags/options.ts';
import { commandSyntax } from './help.ts';
import type { ProgramCommand, ProgramOptions } from './program.ts';

/** The commands of a program, in the order of the help. The first one is the default command. */
export type Commands = readonly [ProgramCommand, ...ProgramCommand[]];

/** Returns the flags of a command, with those of every command. */
export function optionsOf({ flags = {} }: ProgramCommand): Options & typeof COMMON_OPTIONS {
  return { ...optionGroup('Other', flags, { flagOnly: true }), ...COMMON_OPTIONS };
}

/** A command with its flags and arguments. */
export interface CommandRequest extends ParsedFlags<ReturnType<typeof optionsOf>> {
  readonly command: ProgramCommand;
  readonly operands: readonly string[];
  /** Normalised legacy flags of klog. */
  readonly klogFlags: readonly string[];
}

/**
 * Parses a command line.
 *
 * @param named the command that it names
 * @returns the request, or the text that `--help` or `--version` asks for
 * @throws {UsageError} on an unknown command or flag, an invalid value and an invalid configuration file
 */
export async function readCommand(
  program: ProgramOptions,
  commands: Commands,
  argv: readonly string[],
  named: ProgramCommand | undefined,
  environment: FlagEnvironment,
  help: HelpOptions,
): Promise<CommandRequest | string> {
  const command = named ?? commands[0];
  const options = optionsOf(command);
  const { positionals, flags: all } = argumentsOf(commands, argv, command);
  const isKlogs = (flag: string) => KLOG_FLAGS.some(({ name }) => flag.startsWith(`--${name}=`));
  const flags = all.filter((flag) => !isKlogs(flag));
  const operands = positionals.slice(1);
  const syntaxes = commands.map((each, index) =>
    commandSyntax(program, each, index === 0, help.columns),
  );
  const path = configPath(options, flags, environment);
  const parsed = parseCommandLine(
    syntaxes,
    commands.indexOf(command),
    options,
    {
      flags,
      operands,
      isClosed: command.operands === undefined,
      unknown: named ? undefined : positionals[0],
    },
    [environmentSettings(options, environment), path === '' ? {} : await configFile(path, options)],
    help,
  );
  if (typeof parsed === 'string') return parsed;
  return { ...parsed, command, operands, klogFlags: all.filter(isKlogs) };
}

/** Imported on demand: few command lines have a configuration file, and the YAML parser loads slowly. */
async function configFile(path: string, options: Options): Promise<FlagSettings> {
  const { readConfigFile } = await import('../flags/config-file.ts');
  return readConfigFile(path, options);
}

/** Returns the named command. Its name can stand between flags. */
export function findCommand(
  commands: readonly ProgramCommand[],
  argv: readonly string[],
): ProgramCommand | undefined {
  // A name in the first position, the usual case, is found even if the flags are invalid.
  const first = commands.find(({ name }) => name === argv[0]);
  if (first) return first;
  for (const word of argv) {
    const command = commands.find(({ name }) => name === word);
    if (command && argumentsOf(commands, argv, command).positionals[0] === word) return command;
  }
  return undefined;
}

/** A flag name can have different meanings for different commands. The command's own flags decide. */
function argumentsOf(
  commands: readonly ProgramCommand[],
  argv: readonly string[],
  command: ProgramCommand,
): Arguments {
  const all = commands.flatMap((each) => flagForms(optionsOf(each)));
  const own = flagForms(optionsOf(command));
  return normaliseArguments(argv, [...all, ...KLOG_FLAGS, ...own], own);
}
