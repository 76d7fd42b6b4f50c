import { groupResourceOf } from '../api/resource.ts';
import type { Logger } from '../util/logger.ts';
import { hookedClient } from './client-calls.ts';
import type { CallHook } from './client-calls.ts';
import type { Client, RawRequest } from './client.ts';

/**
 * Returns a client that sends every write of `client` as a server-side dry run: the server admits and
 * validates it, but does not store it. Logs each write that the server accepted.
 *
 * @example
 * ```ts
 * import { HttpClient, silentLogger } from 'crd-controller';
 * import { dryRunClient } from 'crd-controller/client';
 * import { NAMESPACES } from 'crd-controller/kinds';
 * import { ApiServer } from 'crd-controller/testing';
 *
 * const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
 * const team = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } };
 * await dryRunClient(client, silentLogger).create(NAMESPACES, team);
 * const { items } = await client.list(NAMESPACES, { fieldSelector: 'metadata.name=team' });
 * console.log(items.length); // prints: 0
 * ```
 */
export function dryRunClient(client: Client, log: Logger): Client {
  const hook: CallHook = async ({ call, options, isWrite, send }) => {
    const { verb, resource, subresource, at } = call;
    if (!isWrite || !resource) return send(options);
    const result = await send({ ...options, dryRun: true });
    const suffix = subresource === undefined ? '' : `/${subresource}`;
    log.info('Dry run', {
      would: verb,
      resource: `${groupResourceOf(resource)}${suffix}`,
      object: at,
    });
    return result;
  };
  const dry = hookedClient(client, hook, { isDryRun: true });
  return { ...dry, raw: (request) => client.raw(dryRequest(request)) };
}

function dryRequest(request: RawRequest): RawRequest {
  const { method = 'GET', path } = request;
  if (method === 'GET') return request;
  return { ...request, path: `${path}${path.includes('?') ? '&' : '?'}dryRun=All` };
}
