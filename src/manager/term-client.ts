import type { CallOptions, Client } from '../client/client.ts';

/**
 * Returns a client whose writes end with the term in which they were called. A write that is retried, or waits for the
 * rate limit, is then not sent in a later term of the same process.
 *
 * @param term returns a signal that aborts at the end of the current term
 */
export function termClient(client: Client, term: () => AbortSignal): Client {
  const within = <O extends CallOptions>(options: O): O => {
    const { signal } = options;
    return { ...options, signal: signal ? AbortSignal.any([signal, term()]) : term() };
  };
  const { isDryRun = false } = client;
  return {
    isDryRun,
    get: (...call) => client.get(...call),
    list: (...call) => client.list(...call),
    watch: (...call) => client.watch(...call),
    create: (resource, object, options = {}) => client.create(resource, object, within(options)),
    update: (resource, object, options = {}) => client.update(resource, object, within(options)),
    patch: (resource, at, patch, options = {}) =>
      client.patch(resource, at, patch, within(options)),
    delete: (resource, at, options = {}) => client.delete(resource, at, within(options)),
    raw: (request) => client.raw(request.method === 'POST' ? within(request) : request),
  };
}
