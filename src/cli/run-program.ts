import { exitProcess } from '../util/process-exit.ts';
import { commandLine } from './command-line.ts';

/** Runs the command line of this process, and exits with its code. */
export async function runProgram(): Promise<void> {
  const code = await commandLine(process.argv.slice(2), process.env);
  process.exitCode = code;
  // All work has ended. An open handle must not delay the exit.
  setTimeout(() => exitProcess(process, code), 1000).unref();
}
