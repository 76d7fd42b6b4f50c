import type { ClusterConnection } from '../../src/client/cluster-connection.ts';
import type { Runnable } from '../../src/util/runnable.ts';

/**
 * Runs something over a connection of its own until the returned function is called, which resolves
 * once both have ended, and rejects if it failed.
 */
export function runOver(
  connection: ClusterConnection,
  runnable: Pick<Runnable, 'run'>,
): () => Promise<void> {
  const stopping = new AbortController();
  const running = runnable.run(stopping.signal);
  // Whoever stops it learns of a fault; until then the test fails by what it misses.
  running.catch(() => undefined);
  return async () => {
    stopping.abort();
    await running;
    await connection.close();
  };
}
