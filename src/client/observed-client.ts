import type { KubernetesObject } from '../api/object.ts';
import type { Clock } from '../util/clock.ts';
import { hookedClient } from './client-calls.ts';
import type { ClientCall } from './client-calls.ts';
import type { Client, DeleteOptions, WriteOptions } from './client.ts';

/** Finished API call. */
export interface FinishedCall extends ClientCall {
  readonly options?: DeleteOptions & WriteOptions & { readonly subresource?: string | undefined };
  readonly ms: number;
  /** Stored object, for create, update and patch. */
  readonly answer?: KubernetesObject;
  /** Whether the call was rejected with `error`. */
  readonly failed: boolean;
  readonly error?: unknown;
}

/**
 * Wraps `client` and passes every finished call to `observer`, before the caller gets the result. If
 * the client or the call is a dry run, the options of the observed call contain `dryRun`.
 */
export function observedClient(
  client: Client,
  clock: Pick<Clock, 'monotonic'>,
  observer: (call: FinishedCall) => void,
): Client {
  return hookedClient(client, async ({ call, options, isWrite, stored, send }) => {
    const startMs = clock.monotonic();
    const dryRun = client.isDryRun && isWrite && call.verb !== 'raw' && { dryRun: true };
    const observed = { ...call, options: { ...options, ...dryRun } };
    try {
      const result = await send(options);
      const answer = stored && { answer: stored(result) };
      observer({ ...observed, ...answer, ms: clock.monotonic() - startMs, failed: false });
      return result;
    } catch (error) {
      observer({ ...observed, ms: clock.monotonic() - startMs, failed: true, error });
      throw error;
    }
  });
}
