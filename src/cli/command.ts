import type { Logger } from '../util/logger.ts';
import type { FileSettings, ParsedFlags } from './flags/flag-parser.ts';
import { configPath, parseFlags } from './flags/flag-parser.ts';
import type { LogLevel } from './logs/log-level.ts';
import type { LoggingOptions } from './logs/logging.ts';
import type { Completion, Options } from './flags/option.ts';
import type { COMMON_OPTIONS } from './flags/common-options.ts';

/** What a command gets from the process it runs in. */
export interface CommandContext {
  readonly log: Logger;
  /** What `log` was made with, for who needs another that says less. */
  readonly logging: LoggingOptions;
  /** How much `log` says; it may be changed while the process runs. */
  readonly logLevel: LogLevel;
  /** Aborts when the process is asked to stop. */
  readonly signal: AbortSignal;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Standard output: what the user asked for, as opposed to the log. */
  readonly print: (text: string) => void;
  /** Standard error: what the user must know besides, said in words of its own and not as a log line. */
  readonly warn: (text: string) => void;
  /** Whether what is printed goes to a terminal that shows colours. */
  readonly colour: boolean;
}

export interface CommandDefinition<O extends Options> {
  readonly name: string;
  /** One line of the list of commands. */
  readonly summary: string;
  /** What its own help says first. */
  readonly description: string;
  readonly options: O;
  /**
   * What it is about, besides its flags, as the help shows it: `KIND`.
   * @default nothing: further arguments are refused
   */
  readonly operands?: string;
  /**
   * What a shell offers for operands.
   * @default nothing
   */
  readonly operandCompletion?: Completion;
  readonly examples: readonly (readonly [commandLine: string, meaning: string])[];
  /** Resolves to the exit code. */
  readonly run: (
    flags: ParsedFlags<O>,
    context: CommandContext,
    operands: readonly string[],
  ) => Promise<number>;
}

/** A command whose flags have been read and checked. */
export interface ReadyCommand {
  readonly common: ParsedFlags<typeof COMMON_OPTIONS>['values'];
  readonly changed: Readonly<Record<string, string>>;
  run(context: CommandContext): Promise<number>;
}

/** A command of any kind of flags. */
export interface Command extends Omit<CommandDefinition<Options>, 'run'> {
  /**
   * Rejects with `UsageError` on flags that the command does not have or that have bad values, and on
   * a configuration file that is no good.
   */
  prepare(
    flags: readonly string[],
    operands: readonly string[],
    environment: Readonly<Record<string, string | undefined>>,
  ): Promise<ReadyCommand>;
}

export function command<O extends typeof COMMON_OPTIONS>(
  definition: CommandDefinition<O>,
): Command {
  const { run, ...about } = definition;
  const { options } = definition;
  return {
    ...about,
    prepare: async (flags, operands, environment) => {
      const path = configPath(options, flags, environment);
      const file = path === '' ? undefined : await configFile(path, options);
      const parsed = parseFlags(options, flags, environment, file);
      return {
        common: parsed.values,
        changed: parsed.changed,
        run: (context) => run(parsed, context, operands),
      };
    },
  };
}

/** Few have one, and what reads it takes its time to load. */
async function configFile(path: string, options: Options): Promise<FileSettings> {
  const { readConfigFile } = await import('./flags/config-file.ts');
  return readConfigFile(path, options);
}
