import type { KubernetesObject } from '../api/object.ts';
import { objectKey } from '../api/object-key.ts';
import type { ObjectKey, ObjectName } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { Client, DeleteOptions, WriteOptions } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';

/** What a caller asked of a client. */
interface Call {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'raw';
  /** Absent for `raw`. */
  readonly resource?: Resource;
  /** The object, as far as the caller knew its name; a namespace; the path of `raw`. */
  readonly at: string;
  readonly options?: DeleteOptions & WriteOptions & { readonly subresource?: string };
}

/** A call of a client that has ended. */
export interface EndedCall extends Call {
  readonly ms: number;
  /** What a create, an update or a patch stored. */
  readonly answer?: KubernetesObject;
  /** It was rejected, with `error`. */
  readonly failed: boolean;
  readonly error?: unknown;
}

/**
 * `client`, with `observer` told of every call that has ended, before its caller is. The options of
 * a call say so if it was a dry run, whoever made it one.
 */
export function observedClient(
  client: Client,
  clock: Pick<Clock, 'monotonic'>,
  observer: (call: EndedCall) => void,
): Client {
  const observed = async <R>(
    call: Call,
    calling: Promise<R>,
    seen: (result: R) => Pick<EndedCall, 'answer'> = () => ({}),
  ): Promise<R> => {
    const startMs = clock.monotonic();
    try {
      const result = await calling;
      observer({ ...call, ...seen(result), ms: clock.monotonic() - startMs, failed: false });
      return result;
    } catch (error) {
      observer({ ...call, ms: clock.monotonic() - startMs, failed: true, error });
      throw error;
    }
  };
  const { isDryRun = false } = client;
  const write = <T extends KubernetesObject>(call: Call, calling: Promise<T>): Promise<T> =>
    observed(dry(call), calling, (answer) => ({ answer }));
  const dry = (call: Call): Call =>
    isDryRun ? { ...call, options: { ...call.options, dryRun: true } } : call;
  return {
    isDryRun,
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
        { verb: 'create', resource, at, options },
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
        dry({ verb: 'delete', resource, at: keyAt(at), options }),
        client.delete(resource, at, options),
      ),
  };
}

function keyAt({ namespace, name }: ObjectName): ObjectKey {
  return objectKey(namespace, name);
}
