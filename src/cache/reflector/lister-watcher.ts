import type { KubernetesObject, ObjectList } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type {
  Client,
  ListOptions,
  Selection,
  WatchOptions,
  WatchStream,
} from '../../client/client.ts';

/** What is asked of a list; which objects is settled by the source. */
export type ListRequest = Omit<ListOptions, keyof Selection>;

/** What a reflector asks of a watch; which objects is settled by the source. */
export type WatchRequest = Omit<WatchOptions, keyof Selection | 'metadataOnly'>;

/** The two calls that a reflector needs, bound to one resource and selection. */
export interface ListerWatcher<T extends KubernetesObject> {
  list(request: ListRequest): Promise<ObjectList<T>>;
  watch(request: WatchRequest): Promise<WatchStream<T>>;
}

/**
 * The objects of `resource` within `selection`, whole or as metadata. One selection serves list and
 * watch, so that the watch never reports what the list did not count.
 */
export function listerWatcher<T extends KubernetesObject>(
  client: Pick<Client, 'list' | 'watch'>,
  resource: Resource<T>,
  selection: Selection = {},
  form: Pick<ListOptions, 'metadataOnly'> = {},
): ListerWatcher<T> {
  const { namespace, labelSelector, fieldSelector } = selection;
  const { metadataOnly } = form;
  const bound = { namespace, labelSelector, fieldSelector, metadataOnly };
  return {
    list: (request) =>
      client.list(resource, {
        ...request,
        ...bound,
        metadataOnly: request.metadataOnly ?? metadataOnly,
      }),
    watch: (request) => client.watch(resource, { ...request, ...bound }),
  };
}
