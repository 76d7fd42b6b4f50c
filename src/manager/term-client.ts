import type { Client } from '../client/client.ts';
import { hookedClient } from '../client/client-calls.ts';

/**
 * Returns a client whose writes end with the term in which they were called. A write that is retried, or waits for the
 * rate limit, is then not sent in a later term of the same process.
 *
 * @param term returns a signal that aborts at the end of the current term
 */
export function termClient(client: Client, term: () => AbortSignal): Client {
  return hookedClient(client, ({ options, isWrite, send }) => {
    if (!isWrite) return send(options);
    const { signal } = options;
    return send({ ...options, signal: signal ? AbortSignal.any([signal, term()]) : term() });
  });
}
