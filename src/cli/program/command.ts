import { didYouMean } from '../../util/did-you-mean.ts';
import { goQuote } from '../../util/go-quote.ts';
import { UsageError } from '../common/errors.ts';
import type { Arguments } from '../flags/arguments.ts';
import { normaliseArguments } from '../flags/arguments.ts';
import { configPath, flagForms, parseFlags } from '../flags/flag-parser.ts';
import type { FileSettings, FlagEnvironment, ParsedFlags } from '../flags/flag-parser.ts';
import { optionGroup } from '../flags/option.ts';
import type { Options } from '../flags/option.ts';
import { COMMON_OPTIONS, KLOG_FLAGS } from '../flags/options.ts';
import type { ProgramCommand } from './program.ts';

/** The commands of a program, in the order of the help. The first one is the default command. */
export type Commands = readonly [ProgramCommand, ...ProgramCommand[]];

/** Returns the flags of a command, with those of every command. */
export function optionsOf({ flags = {} }: ProgramCommand): Options & typeof COMMON_OPTIONS {
  return { ...optionGroup('Other', flags, { flagOnly: true }), ...COMMON_OPTIONS };
}

/**
 * Parses and validates the flags of a command.
 *
 * @throws {UsageError} on an unknown flag, an invalid value and an invalid configuration file
 */
export async function parseCommandFlags(
  command: ProgramCommand,
  flags: readonly string[],
  environment: FlagEnvironment,
): Promise<ParsedFlags<ReturnType<typeof optionsOf>>> {
  const options = optionsOf(command);
  const path = configPath(options, flags, environment);
  const file = path === '' ? undefined : await configFile(path, options);
  return parseFlags(options, flags, environment, file);
}

/** Imported on demand: few command lines have a configuration file, and the YAML parser loads slowly. */
async function configFile(path: string, options: Options): Promise<FileSettings> {
  const { readConfigFile } = await import('../flags/config-file.ts');
  return readConfigFile(path, options);
}

/** A command with the flags and arguments of a command line. */
export interface CommandRequest {
  readonly command: ProgramCommand;
  readonly flags: readonly string[];
  readonly operands: readonly string[];
  /** Normalised legacy flags of klog. */
  readonly klogFlags: readonly string[];
}

/** Finds the command of a command line, and its flags. */
export function readCommand(
  commands: Commands,
  argv: readonly string[],
  named: ProgramCommand | undefined,
): CommandRequest {
  const command = named ?? commands[0];
  const { positionals, flags } = argumentsOf(commands, argv, command);
  const [name] = positionals;
  if (!named && name !== undefined) {
    const hint = didYouMean(
      name,
      commands.map((each) => each.name),
    );
    throw new UsageError(`unknown command: ${goQuote(name)}${hint}`);
  }
  const operands = positionals.slice(1);
  const [stray] = command.operands === undefined ? operands : [];
  if (stray !== undefined) throw new UsageError(`unexpected argument: ${goQuote(stray)}`);
  const isKlogs = (flag: string) => KLOG_FLAGS.some(({ name }) => flag.startsWith(`--${name}=`));
  return {
    command,
    flags: flags.filter((flag) => !isKlogs(flag)),
    operands,
    klogFlags: flags.filter(isKlogs),
  };
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
