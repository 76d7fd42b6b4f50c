import { KubeConfigError } from '../../client/kube-config/kube-config-error.ts';
import { errorText, EXIT_FAILURE, EXIT_USAGE, UsageError } from '../common/errors.ts';

/** Maximum time in which `node --watch` forwards a signal, in milliseconds. */
const MAX_SIGNAL_MS = 10_000;

/** Whether `node --watch` runs this process, and starts it again when a file is saved. */
export function isWatched(): boolean {
  return process.env['WATCH_REPORT_DEPENDENCIES'] !== undefined;
}

/**
 * Exits with the code of `run`, or prints one line with its error. `node --watch` waits for a file to be saved when a
 * process ends, but a saved file corrects no flag and frees no folder: after such an error, `node --watch` ends, too.
 */
export async function exitWith(run: () => Promise<number>): Promise<void> {
  const code = await run().catch((error: unknown) => {
    process.stderr.write(`Error: ${errorText(error)}\n`);
    const isOfTheUser = error instanceof UsageError || error instanceof KubeConfigError;
    return isOfTheUser ? EXIT_USAGE : EXIT_FAILURE;
  });
  process.exitCode = code;
  if (code !== EXIT_USAGE || !isWatched()) return;
  // It forwards the signal, and exits with the code of this process, if that still runs.
  process.once('SIGTERM', () => process.exit(code));
  setTimeout(() => process.exit(code), MAX_SIGNAL_MS);
  process.kill(process.ppid, 'SIGTERM');
}
