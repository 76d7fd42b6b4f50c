import type { Logger } from '../util/logger.ts';
import { exitProcess } from '../util/process-exit.ts';
import type { ExitableProcess } from '../util/process-exit.ts';

/** As much of `process` as it takes to be told to stop. */
export interface SignalSource extends ExitableProcess {
  on(signal: 'SIGINT' | 'SIGTERM', listener: (signal: 'SIGINT' | 'SIGTERM') => void): unknown;
  off(signal: 'SIGINT' | 'SIGTERM', listener: (signal: 'SIGINT' | 'SIGTERM') => void): unknown;
}

/**
 * One `AbortSignal` for SIGINT and SIGTERM. The first asks for a graceful stop; the second ends
 * the process at once with exit code 1, as every Kubernetes component does, also while a thread is
 * blocked by a system call. `dispose` gives the signals back.
 */
export function terminationSignal(
  source: SignalSource,
  log: Logger,
): { readonly signal: AbortSignal; dispose(): void } {
  const controller = new AbortController();
  const listener = (name: 'SIGINT' | 'SIGTERM') => {
    if (controller.signal.aborted) {
      log.info('Stopping at once', { signal: name });
      exitProcess(source, 1);
      return;
    }
    log.info('Shutting down; a second signal ends the process at once', { signal: name });
    controller.abort(new Error(`Received ${name}`));
  };
  source.on('SIGINT', listener);
  source.on('SIGTERM', listener);
  return {
    signal: controller.signal,
    dispose: () => {
      source.off('SIGINT', listener);
      source.off('SIGTERM', listener);
    },
  };
}
