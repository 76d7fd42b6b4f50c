import { goQuote } from '../../util/go-quote.ts';
import type { Commands } from '../program/command.ts';
import type { CommandContext, ProgramOptions } from '../program/program.ts';
import { bashCompletion } from '../completion/bash.ts';
import { fishCompletion } from '../completion/fish.ts';
import { completionModel } from '../completion/model.ts';
import type { CompletionModel } from '../completion/model.ts';
import { zshCompletion } from '../completion/zsh.ts';
import { EXIT_OK, UsageError } from '../common/errors.ts';

const SHELLS: ReadonlyMap<string, (model: CompletionModel) => string> = new Map([
  ['bash', bashCompletion],
  ['zsh', zshCompletion],
  ['fish', fishCompletion],
]);

/**
 * Prints a script that completes `commands` and their flags. The script contains all data, so that the shell
 * does not start the program at each key press.
 *
 * @throws {UsageError} if the shell is missing or unknown
 */
export async function completion(
  [shell, ...rest]: readonly string[],
  program: ProgramOptions,
  commands: Commands,
  { print }: Pick<CommandContext, 'print'>,
): Promise<number> {
  const shells = [...SHELLS.keys()].join(', ');
  if (shell === undefined)
    throw new UsageError(`completion requires the name of a shell: ${shells}`);
  if (rest.length > 0) throw new UsageError('completion takes one argument');
  const script = SHELLS.get(shell);
  if (!script) {
    throw new UsageError(`unknown shell ${goQuote(shell)}: must be one of ${shells}`);
  }
  print(script(completionModel(program.name, commands, Object.keys(program.controllers))));
  return EXIT_OK;
}
