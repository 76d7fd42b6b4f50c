import type { KubernetesObject } from '../api/object.ts';
import { objectKey } from '../api/object-key.ts';
import type { ObjectKey, ObjectName } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { CallOptions, Client, DeleteOptions, WriteOptions } from './client.ts';
import type { Clock } from '../util/clock.ts';

/** API call. */
interface Call {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'raw';
  /** Undefined for `raw`. */
  readonly resource?: Resource;
  /** Key of the object, `NAMESPACE/PREFIX*` for a generated name, a namespace, or the path of `raw`. */
  readonly at: string;
  /** The object of a create, as it was sent. */
  readonly sent?: unknown;
  readonly options?: DeleteOptions & WriteOptions & { readonly subresource?: string };
}

/** Finished API call. */
export interface FinishedCall extends Call {
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
  const observed = async <R>(
    call: Call,
    pending: Promise<R>,
    details: (result: R) => Pick<FinishedCall, 'answer'> = () => ({}),
  ): Promise<R> => {
    const startMs = clock.monotonic();
    try {
      const result = await pending;
      observer({ ...call, ...details(result), ms: clock.monotonic() - startMs, failed: false });
      return result;
    } catch (error) {
      observer({ ...call, ms: clock.monotonic() - startMs, failed: true, error });
      throw error;
    }
  };
  const { isDryRun = false, reachability } = client;
  const write = <T extends KubernetesObject>(call: Call, pending: Promise<T>): Promise<T> =>
    observed(withDryRun(call), pending, (answer) => ({ answer }));
  const withDryRun = (call: Call): Call =>
    isDryRun ? { ...call, options: { ...call.options, dryRun: true } } : call;
  return {
    isDryRun,
    reachability,
    get: (resource, at, options) =>
      observed({ verb: 'get', resource, at: keyAt(at) }, client.get(resource, at, options)),
    list: (resource, options) =>
      observed(
        { verb: 'list', resource, at: options?.namespace ?? '' },
        client.list(resource, options),
      ),
    watch: (resource, options) =>
      observed(
        { verb: 'watch', resource, at: options?.namespace ?? '' },
        client.watch(resource, options),
      ),
    raw: (request) => observed({ verb: 'raw', at: request.path }, client.raw(request)),
    create: (resource, object, options = {}) => {
      const { namespace, name, generateName = '' } = object.metadata;
      const at = objectKey(namespace, name ?? `${generateName}*`);
      return write(
        { verb: 'create', resource, at, options, sent: object },
        client.create(resource, object, options),
      );
    },
    update: (resource, object, options = {}) =>
      write(
        { verb: 'update', resource, at: keyAt(object.metadata), options },
        client.update(resource, object, options),
      ),
    patch: (resource, at, patch, options = {}) =>
      write(
        { verb: 'patch', resource, at: keyAt(at), options },
        client.patch(resource, at, patch, options),
      ),
    delete: (resource, at, options = {}) =>
      observed(
        withDryRun({ verb: 'delete', resource, at: keyAt(at), options }),
        client.delete(resource, at, options),
      ),
  };
}

/** The call whose options `withCallOptions` rewrites. */
export interface RewrittenCall {
  /** Undefined for `raw`. */
  readonly resource?: Resource;
  readonly subresource?: string | undefined;
  readonly isWrite: boolean;
}

/** Returns a client that passes the options of each call through `rewrite`. */
export function withCallOptions(
  client: Client,
  rewrite: <O extends CallOptions>(options: O, call: RewrittenCall) => O,
): Client {
  const { isDryRun = false, reachability } = client;
  return {
    isDryRun,
    reachability,
    get: (resource, at, options = {}) =>
      client.get(resource, at, rewrite(options, { resource, isWrite: false })),
    list: (resource, options = {}) =>
      client.list(resource, rewrite(options, { resource, isWrite: false })),
    watch: (resource, options = {}) =>
      client.watch(resource, rewrite(options, { resource, isWrite: false })),
    create: (resource, object, options = {}) =>
      client.create(resource, object, rewrite(options, { resource, isWrite: true })),
    update: (resource, object, options = {}) => {
      const { subresource } = options;
      return client.update(
        resource,
        object,
        rewrite(options, { resource, subresource, isWrite: true }),
      );
    },
    patch: (resource, at, patch, options = {}) => {
      const { subresource } = options;
      return client.patch(
        resource,
        at,
        patch,
        rewrite(options, { resource, subresource, isWrite: true }),
      );
    },
    delete: (resource, at, options = {}) =>
      client.delete(resource, at, rewrite(options, { resource, isWrite: true })),
    raw: (request) => client.raw(rewrite(request, { isWrite: request.method === 'POST' })),
  };
}

function keyAt({ namespace, name }: ObjectName): ObjectKey {
  return objectKey(namespace, name);
}
