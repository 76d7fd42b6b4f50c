import { goQuote } from '../../util/go-quote.ts';
import { UsageError, EXIT_OK } from '../common/errors.ts';
import { COMPLETION_SCRIPTS } from '../completion/scripts.ts';
import type { CommandContext, ProgramOptions } from '../program/program.ts';

/**
 * Prints a script that completes the commands of `program` and their flags.
 *
 * @throws {UsageError} if the shell is missing or unknown
 */
export async function completion(
  [shell, ...rest]: readonly string[],
  { name }: Pick<ProgramOptions, 'name'>,
  { print }: Pick<CommandContext, 'print'>,
): Promise<number> {
  const shells = [...COMPLETION_SCRIPTS.keys()].join(', ');
  if (shell === undefined)
    throw new UsageError(`completion requires the name of a shell: ${shells}`);
  if (rest.length > 0) throw new UsageError('completion takes one argument');
  const script = COMPLETION_SCRIPTS.get(shell);
  if (!script) {
    throw new UsageError(`unknown shell ${goQuote(shell)}: must be one of ${shells}`);
  }
  print(script(name));
  return EXIT_OK;
}
