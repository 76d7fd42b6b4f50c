import type { FlagEnvironment, FileSettings, ParsedFlags } from '../flags/flag-parser.ts';
import { configPath, parseFlags } from '../flags/flag-parser.ts';
import type { Completion, Options } from '../flags/option.ts';
import type { CommandContext } from './program.ts';
import type { COMMON_OPTIONS } from '../flags/options.ts';

export interface CommandDefinition<O extends Options> {
  readonly name: string;
  /** Line in the list of commands. */
  readonly summary: string;
  /** First paragraph of the command's help. */
  readonly description: string;
  readonly options: O;
  /**
   * Positional arguments as the help shows them: `KIND`.
   * @default none, positional arguments are rejected
   */
  readonly operands?: string;
  /**
   * Shell completion of the positional arguments.
   * @default none
   */
  readonly operandCompletion?: Completion;
  readonly examples: readonly (readonly [commandLine: string, meaning: string])[];
  /** Runs the command and resolves to the exit code. */
  readonly run: (
    flags: ParsedFlags<O>,
    context: CommandContext,
    operands: readonly string[],
  ) => Promise<number>;
}

/** Command whose flags were parsed and validated. */
export interface ReadyCommand {
  readonly common: ParsedFlags<typeof COMMON_OPTIONS>['values'];
  readonly changed: Readonly<Record<string, string>>;
  run(context: CommandContext): Promise<number>;
}

/** Command with any options. */
export interface Command extends Omit<CommandDefinition<Options>, 'run'> {
  /**
   * Parses and validates the flags. Rejects with `UsageError` on an unknown flag, an invalid value and an
   * invalid configuration file.
   */
  prepare(
    flags: readonly string[],
    operands: readonly string[],
    environment: FlagEnvironment,
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

/** Imported on demand: few command lines have a configuration file, and the YAML parser loads slowly. */
async function configFile(path: string, options: Options): Promise<FileSettings> {
  const { readConfigFile } = await import('../flags/config-file.ts');
  return readConfigFile(path, options);
}
