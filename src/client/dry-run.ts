import { objectKey } from '../api/object-key.ts';
import type { ObjectName } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { Logger } from '../util/logger.ts';
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
  const logged = async <R>(
    would: string,
    resource: Resource,
    at: Partial<ObjectName>,
    written: Promise<R>,
    subresource?: string,
  ): Promise<R> => {
    const result = await written;
    const suffix = subresource === undefined ? '' : `/${subresource}`;
    log.info('Dry run', {
      would,
      resource: `${groupResourceOf(resource)}${suffix}`,
      object: objectKey(at.namespace, at.name ?? ''),
    });
    return result;
  };
  return {
    isDryRun: true,
    reachability: client.reachability,
    get: (resource, at, options) => client.get(resource, at, options),
    list: (resource, options) => client.list(resource, options),
    watch: (resource, options) => client.watch(resource, options),
    raw: (request) => client.raw(dryRequest(request)),
    create: (resource, object, options) =>
      logged(
        'create',
        resource,
        object.metadata,
        client.create(resource, object, { ...options, dryRun: true }),
      ),
    update: (resource, object, options) =>
      logged(
        'update',
        resource,
        object.metadata,
        client.update(resource, object, { ...options, dryRun: true }),
        options?.subresource,
      ),
    patch: (resource, at, patch, options) =>
      logged(
        'patch',
        resource,
        at,
        client.patch(resource, at, patch, { ...options, dryRun: true }),
        options?.subresource,
      ),
    delete: (resource, at, options) =>
      logged('delete', resource, at, client.delete(resource, at, { ...options, dryRun: true })),
  };
}

function dryRequest(request: RawRequest): RawRequest {
  const { method = 'GET', path } = request;
  if (method === 'GET') return request;
  return { ...request, path: `${path}${path.includes('?') ? '&' : '?'}dryRun=All` };
}
