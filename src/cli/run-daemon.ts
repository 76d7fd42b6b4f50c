import { exitProcess } from '../util/process-exit.ts';
import { commandLine } from './command-line.ts';
import type { Flags, ProgramOptions } from './program/program.ts';

/**
 * Runs a program with the command line of this process, and exits with its code. The program has the flags
 * and commands of `crd-controller`: `run`, which is the default, `check`, `top`, `manifests`, `completion`
 * and `version`.
 *
 * @param argv flags and arguments; by default those of the process
 * @throws {TypeError} on an unknown option
 * @throws {RangeError} if a name is malformed or used twice
 */
export async function runDaemon<F extends Flags>(
  program: ProgramOptions<F>,
  argv: readonly string[] = process.argv.slice(2),
): Promise<void> {
  const code = await commandLine(program, argv, process.env);
  process.exitCode = code;
  // All work has ended. An open handle must not delay the exit.
  setTimeout(() => exitProcess(process, code), 1000).unref();
}
