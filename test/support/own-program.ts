import { commandsOf } from '../../src/cli/command-line.ts';
import { crdController } from '../../src/cli/crd-controller.ts';
import type { FlagEnvironment } from '../../src/cli/flags/flag-parser.ts';
import { optionsOf } from '../../src/cli/program/command.ts';
import { checkFlags, runOptions } from '../../src/cli/program/run-options.ts';
import {
  defaultControllers,
  environmentPrefix,
  loadBuilders,
} from '../../src/cli/program/program.ts';

/** The program of this package, with its commands and flags. */
export const PROGRAM = crdController();
export const COMMANDS = commandsOf(PROGRAM);
export const COMMAND_OPTIONS = COMMANDS.map((command) =>
  Object.assign({ options: optionsOf(command) }, command),
);
export const RUN_OPTIONS = runOptions(PROGRAM);
export const CHECK_OPTIONS = checkFlags(PROGRAM);
export const CONTROLLERS = Object.keys(PROGRAM.controllers);
export const BUILDERS = await loadBuilders(PROGRAM, CONTROLLERS);
export const DEFAULT_CONTROLLERS = defaultControllers(PROGRAM);

/** Returns the environment of the program. */
export function environmentOf(
  variables: Readonly<Record<string, string | undefined>> = {},
): FlagEnvironment {
  return { variables, prefix: environmentPrefix(PROGRAM) };
}
