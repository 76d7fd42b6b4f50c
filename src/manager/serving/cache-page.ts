import { keyOf } from '../../api/object-key.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import { jsonPages } from './page.ts';
import type { Pages } from './page.ts';

/** As much of an informer as its cache shows. */
export interface CachedResource {
  readonly name: string;
  readonly lister: {
    readonly size: number;
    list(query?: { readonly namespace?: string }): readonly DeepReadonly<KubernetesObject>[];
  };
}

/** Objects that are named in one answer. */
const MOST_OBJECTS = 1000;

/**
 * For people who ask whether an object has arrived here, and as which version: names and
 * resourceVersions, never what the objects hold.
 *
 * - `/debug/cache`: the resources that are cached.
 * - `/debug/cache?resource=NAME`, and `&namespace=NAME`: the objects of one, by their keys.
 *
 * @param informers asked at each request
 */
export function cachePage(informers: () => readonly CachedResource[]): Pages {
  const json = jsonPages();
  return new Map([
    [
      '/debug/cache',
      (query: URLSearchParams) => {
        const all = informers();
        const asked = query.get('resource');
        if (asked === null) {
          return json(200, {
            resources: all.map(({ name, lister }) => ({ resource: name, objects: lister.size })),
          });
        }
        const found = all.find(({ name }) => name === asked);
        return found
          ? json(200, contentOf(found, query.get('namespace') ?? undefined))
          : json(404, { error: `Not cached: ${asked}; see /debug/cache` });
      },
    ],
  ]);
}

function contentOf({ name, lister }: CachedResource, namespace: string | undefined) {
  const objects = lister.list(namespace === undefined ? {} : { namespace });
  const keys = objects
    .map((object) => ({ key: keyOf(object), resourceVersion: object.metadata.resourceVersion }))
    .toSorted((one, other) => (one.key < other.key ? -1 : 1));
  return { resource: name, objects: objects.length, keys: keys.slice(0, MOST_OBJECTS) };
}
