import type { Logger } from '../util/logger.ts';
import type { ParsedFlags } from './flag-parser.ts';
import { parseFlags } from './flag-parser.ts';
import type { LogLevel } from './log-level.ts';
import type { LoggingOptions } from './logging.ts';
import type { Options } from './option.ts';
import type { COMMON_OPTIONS } from './options.ts';

/** What a command gets from the process it runs in. */
export interface World {
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
  readonly examples: readonly (readonly [commandLine: string, meaning: string])[];
  /** Resolves to the exit code. */
  readonly run: (
    flags: ParsedFlags<O>,
    world: World,
    operands: readonly string[],
  ) => Promise<number>;
}

/** A command whose flags have been read and checked. */
export interface ReadyCommand {
  readonly common: ParsedFlags<typeof COMMON_OPTIONS>['values'];
  readonly changed: Readonly<Record<string, string>>;
  run(world: World): Promise<number>;
}

/** A command of any kind of flags. */
export interface Command extends Omit<CommandDefinition<Options>, 'run'> {
  /** @throws {UsageError} on flags that the command does not have or that have bad values */
  prepare(
    flags: readonly string[],
    operands: readonly string[],
    environment: Readonly<Record<string, string | undefined>>,
  ): ReadyCommand;
}

export function command<O extends typeof COMMON_OPTIONS>(
  definition: CommandDefinition<O>,
): Command {
  const { run, ...about } = definition;
  return {
    ...about,
    prepare: (flags, operands, environment) => {
      const parsed = parseFlags(definition.options, flags, environment);
      return {
        common: parsed.values,
        changed: parsed.changed,
        run: (world) => run(parsed, world, operands),
      };
    },
  };
}
