import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { hasErrorCode, messageOf } from '../../util/values.ts';

/** As shells: a command that cannot be executed, and one that does not exist. */
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_FOUND = 127;

/**
 * Runs a command as a client of the cluster in `kubeconfig`, and returns its exit code. It has the input and output of
 * this process, and the environment of a test suite for an existing cluster. When `signal` aborts, the command gets the
 * signal of this process, and is waited for.
 */
export async function runClientCommand(
  [file = '', ...args]: readonly string[],
  kubeconfig: string,
  {
    signal,
    environment,
    warn,
  }: {
    readonly signal: AbortSignal;
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly warn: (text: string) => void;
  },
): Promise<number> {
  const { KUBEBUILDER_ASSETS: _, ...inherited } = environment;
  const env = { ...inherited, KUBECONFIG: kubeconfig, USE_EXISTING_CLUSTER: 'true' };
  const child = spawn(file, args, { env, stdio: 'inherit' });
  const forward = () => {
    const isInterrupt = messageOf(signal.reason).includes('SIGINT');
    // A terminal sends the interrupt to the command, too.
    if (!isInterrupt || !process.stdin.isTTY) child.kill(isInterrupt ? 'SIGINT' : 'SIGTERM');
  };
  if (signal.aborted) forward();
  signal.addEventListener('abort', forward, { once: true });
  try {
    await once(child, 'exit');
  } catch (error) {
    warn(`Could not run ${file}: ${messageOf(error)}`);
    return hasErrorCode(error, 'ENOENT') ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
  } finally {
    signal.removeEventListener('abort', forward);
  }
  const { exitCode, signalCode } = child;
  return exitCode ?? 128 + (signalCode === null ? 0 : constants.signals[signalCode]);
}
