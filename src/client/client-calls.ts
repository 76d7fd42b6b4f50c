import type { KubernetesObject } from '../api/object.ts';
import { objectKey } from '../api/object-key.ts';
import type { ObjectKey, ObjectName } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { CallOptions, Client } from './client.ts';

/** A call of a client, before it is sent. */
export interface ClientCall {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'raw';
  /** Undefined for `raw`. */
  readonly resource?: Resource;
  readonly subresource?: string | undefined;
  /** Key of the object, `NAMESPACE/PREFIX*` for a generated name, a namespace, or the path of `raw`. */
  readonly at: string;
  /** The object of a create, as it is sent. */
  readonly sent?: unknown;
}

/** A call with its options, and what it returns. */
export interface PendingCall<O extends CallOptions, R> {
  readonly call: ClientCall;
  /** Those of the caller; the request of `raw`. */
  readonly options: O;
  readonly isWrite: boolean;
  /** Returns the stored object of the result of a create, update or patch. */
  readonly stored?: (result: R) => KubernetesObject;
  /** Sends the call with options. */
  readonly send: (options: O) => Promise<R>;
}

/** Sends a call, once or not at all, and returns its result. */
export type CallHook = <O extends CallOptions, R>(pending: PendingCall<O, R>) => Promise<R>;

/** Returns a client that passes each call through `hook`. */
export function hookedClient(
  client: Client,
  hook: CallHook,
  { isDryRun = client.isDryRun ?? false } = {},
): Client {
  const read = { isWrite: false };
  const write = { isWrite: true };
  const stored = <T extends KubernetesObject>(object: T): T => object;
  return {
    isDryRun,
    reachability: client.reachability,
    get: (resource, at, options = {}) =>
      hook({
        ...read,
        call: { verb: 'get', resource, at: keyAt(at) },
        options,
        send: (changed) => client.get(resource, at, changed),
      }),
    list: (resource, options = {}) =>
      hook({
        ...read,
        call: { verb: 'list', resource, at: options.namespace ?? '' },
        options,
        send: (changed) => client.list(resource, changed),
      }),
    watch: (resource, options = {}) =>
      hook({
        ...read,
        call: { verb: 'watch', resource, at: options.namespace ?? '' },
        options,
        send: (changed) => client.watch(resource, changed),
      }),
    create: (resource, object, options = {}) => {
      const { namespace, name, generateName = '' } = object.metadata;
      const at = objectKey(namespace, name ?? `${generateName}*`);
      return hook({
        ...write,
        call: { verb: 'create', resource, at, sent: object },
        options,
        stored,
        send: (changed) => client.create(resource, object, changed),
      });
    },
    update: (resource, object, options = {}) =>
      hook({
        ...write,
        call: {
          verb: 'update',
          resource,
          subresource: options.subresource,
          at: keyAt(object.metadata),
        },
        options,
        stored,
        send: (changed) => client.update(resource, object, changed),
      }),
    patch: (resource, at, patch, options = {}) =>
      hook({
        ...write,
        call: { verb: 'patch', resource, subresource: options.subresource, at: keyAt(at) },
        options,
        stored,
        send: (changed) => client.patch(resource, at, patch, changed),
      }),
    delete: (resource, at, options = {}) =>
      hook({
        ...write,
        call: { verb: 'delete', resource, at: keyAt(at) },
        options,
        send: (changed) => client.delete(resource, at, changed),
      }),
    raw: (request) =>
      hook({
        isWrite: request.method === 'POST',
        call: { verb: 'raw', at: request.path },
        options: request,
        send: (changed) => client.raw(changed),
      }),
  };
}

function keyAt({ namespace, name }: ObjectName): ObjectKey {
  return objectKey(namespace, name);
}
