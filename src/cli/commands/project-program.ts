import { existsSync } from 'node:fs';
import { PROGRAM } from '../../codegen/template.ts';
import { isRecord, messageOf } from '../../util/values.ts';
import { UsageError } from '../common/errors.ts';
import { checkProgram } from '../program/program.ts';
import type { CommandContext, ProgramOptions } from '../program/program.ts';
import { importModule, MODULE } from './generate.ts';

/**
 * Returns the program that a command generates files for: that of the module among the operands, without operands that of
 * the project in this folder, or this program if `name` is its name. Undefined if the operands are something else.
 *
 * @throws {UsageError} if a module cannot be imported, or its program is invalid
 */
export async function programIn(
  operands: readonly string[],
  name: string,
  { program: own }: Pick<CommandContext, 'program'>,
): Promise<ProgramOptions | undefined> {
  if (operands.length === 0 && name === own.name) return own;
  const paths = operands.length === 0 && existsSync(PROGRAM) ? [PROGRAM] : operands;
  const [path, ...others] = paths;
  if (path === undefined || others.length > 0 || !MODULE.test(path)) return undefined;
  const program = Object.values(await importModule(path)).find(isProgram);
  if (!program) {
    if (operands.length > 0) return undefined;
    throw new UsageError(`${path} exports no program, an object of the type ProgramOptions`);
  }
  if (name) throw new UsageError(`--name cannot be combined with ${path}: the program has a name`);
  try {
    checkProgram(program);
  } catch (error) {
    throw new UsageError(`${path}: ${messageOf(error)}`);
  }
  return program;
}

/** Whether an export of a module is meant to be a program. */
function isProgram(value: unknown): value is ProgramOptions {
  return isRecord(value) && typeof value['name'] === 'string' && isRecord(value['controllers']);
}
