import type { Logger } from '../util/logger.ts';
import { exitProcess } from '../util/process-exit.ts';
import type { ExitableProcess } from '../util/process-exit.ts';

/** Source of termination signals, such as `process`. */
export interface SignalSource extends ExitableProcess {
  on(signal: 'SIGINT' | 'SIGTERM', listener: (signal: 'SIGINT' | 'SIGTERM') => void): unknown;
  off(signal: 'SIGINT' | 'SIGTERM', listener: (signal: 'SIGINT' | 'SIGTERM') => void): unknown;
}

/**
 * Returns an `AbortSignal` for SIGINT and SIGTERM. The first signal requests a graceful shutdown. The
 * second signal exits the process immediately with code 1, as in Kubernetes components, even if a
 * system call blocks a thread. `dispose` removes the listeners.
 */
export function terminationSignal(
  source: SignalSource,
  log: Logger,
): { readonly signal: AbortSignal; dispose(): void } {
  const controller = new AbortController();
  const listener = (name: 'SIGINT' | 'SIGTERM') => {
    if (controller.signal.aborted) {
      log.info('Exiting immediately', { signal: name });
      exitProcess(source, 1);
      return;
    }
    log.info('Shutting down; a second signal exits immediately', { signal: name });
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
