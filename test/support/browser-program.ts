/**
 * A program for browsers: an API server in the page, with cluster controllers and the Count controller. Its client has
 * no transport.
 */
import { ApiError } from '../../src/api/api-error.ts';
import type { CustomResourceDefinition } from '../../src/api/builtin.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { Count } from '../../src/api/generated/count.ts';
import { labelSelectorText } from '../../src/api/label-selector.ts';
import type { KubernetesObject, WatchEvent } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import { apiVersionOf, collectionPath, objectPath } from '../../src/api/resource.ts';
import { builtinKinds } from '../../src/apiserver/builtin/definition.ts';
import { PORTABLE_KINDS } from '../../src/apiserver/builtin/generated/portable-kinds.ts';
import { ServerCore } from '../../src/apiserver/server-core.ts';
import { ObjectStore } from '../../src/apiserver/storage/object-store.ts';
import { InformerSet } from '../../src/cache/informer-set.ts';
import type {
  Client,
  ListOptions,
  Patch,
  WatchOptions,
  WatchStream,
} from '../../src/client/client.ts';
import { ClusterControllers } from '../../src/cluster/cluster-controllers.ts';
import { countController } from '../../src/controllers/count/controller.ts';
import type { ControllerKit } from '../../src/manager/controller-kit.ts';
import { Manager } from '../../src/manager/manager.ts';
import { EventBroadcaster } from '../../src/record/event-broadcaster.ts';
import { concatBytes, utf8Text } from '../../src/util/bytes.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { HttpHandler, HttpRequest, HttpResponse } from '../../src/util/http.ts';
import { silentLogger } from '../../src/util/logger.ts';

const PATCH_TYPES: Readonly<Record<Patch['type'], string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length > 0 ? `${path}?${new URLSearchParams(given).toString()}` : path;
}

function selectionOf(options: ListOptions | WatchOptions): Query {
  const { labelSelector, fieldSelector, resourceVersion, resourceVersionMatch } = options;
  return {
    labelSelector: labelSelector === undefined ? undefined : labelSelectorText(labelSelector),
    fieldSelector,
    resourceVersion,
    resourceVersionMatch,
  };
}

async function textOf({ body }: HttpResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return utf8Text(concatBytes(chunks));
}

/** An event of a watch, or the Status of an error, in JSON. */
interface Line {
  readonly type: string;
  readonly object: KubernetesObject;
}

function eventOf<T extends KubernetesObject>({ type, object }: Line): WatchEvent<T> {
  if (type === 'ERROR') return { type: 'error', error: ApiError.fromStatus({ ...object }) };
  const { resourceVersion, annotations } = object.metadata;
  if (type === 'BOOKMARK') {
    const initialEventsEnd = annotations?.['k8s.io/initial-events-end'] === 'true';
    return { type: 'bookmark', resourceVersion, initialEventsEnd };
  }
  const change = type === 'ADDED' ? 'added' : type === 'DELETED' ? 'deleted' : 'modified';
  return { type: change, object: object as T };
}

/** A list in JSON. */
interface ListBody<T extends KubernetesObject> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: T[];
}

/** Returns a client that calls the server in the page. */
function clientOf(handler: HttpHandler): Client {
  const send = async (
    method: HttpRequest['method'],
    path: string,
    signal: AbortSignal | undefined,
    body?: unknown,
    type: string = 'application/json',
  ): Promise<HttpResponse> => {
    const response = await handler({
      method,
      path,
      headers: { accept: 'application/json', 'content-type': type },
      ...(signal && { signal }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (response.status < 300) return response;
    throw ApiError.fromStatus(JSON.parse(await textOf(response)) as object, response.status);
  };
  const valueOf = async <T>(response: Promise<HttpResponse>): Promise<T> =>
    JSON.parse(await textOf(await response)) as T;
  return {
    get: (resource, at, options) => valueOf(send('GET', objectPath(resource, at), options?.signal)),
    list: async <T extends KubernetesObject>(resource: Resource<T>, options: ListOptions = {}) => {
      const path = withQuery(collectionPath(resource, options.namespace), {
        ...selectionOf(options),
        limit: options.limit,
        continue: options.continueToken,
      });
      const { metadata, items } = await valueOf<ListBody<T>>(send('GET', path, options.signal));
      const { resourceVersion, continue: continueToken } = metadata;
      const typeMeta = { apiVersion: apiVersionOf(resource), kind: resource.kind };
      return {
        items: items.map((item) => Object.assign(item, typeMeta)),
        resourceVersion,
        ...(continueToken && { continueToken }),
      };
    },
    watch: async <T extends KubernetesObject>(
      resource: Resource<T>,
      options: WatchOptions = {},
    ): Promise<WatchStream<T>> => {
      const path = withQuery(collectionPath(resource, options.namespace), {
        ...selectionOf(options),
        watch: true,
        sendInitialEvents: options.sendInitialEvents,
        allowWatchBookmarks: options.allowWatchBookmarks,
        timeoutSeconds: options.timeoutSeconds,
      });
      const { body } = await send('GET', path, options.signal);
      return {
        lastByteMs: systemClock.monotonic(),
        async *[Symbol.asyncIterator]() {
          // A chunk of a watch has whole lines.
          for await (const chunk of body) {
            for (const line of utf8Text(chunk).trimEnd().split('\n')) {
              yield eventOf<T>(JSON.parse(line) as Line);
            }
          }
        },
      };
    },
    create: (resource, object, options) =>
      valueOf(
        send('POST', collectionPath(resource, object.metadata.namespace), options?.signal, object),
      ),
    update: (resource, object, options) => {
      const path = objectPath(resource, object.metadata, options?.subresource);
      return valueOf(send('PUT', path, options?.signal, object));
    },
    patch: (resource, at, { type, body }, options) => {
      const { subresource, fieldManager, signal } = options ?? {};
      const path = withQuery(objectPath(resource, at, subresource), { fieldManager });
      return valueOf(send('PATCH', path, signal, body, PATCH_TYPES[type]));
    },
    delete: async (resource, at, options) => {
      const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds, signal } = options ?? {};
      const preconditions = { uid, resourceVersion };
      const body = { preconditions, propagationPolicy, gracePeriodSeconds };
      await send('DELETE', objectPath(resource, at), signal, body);
    },
    raw: ({ method = 'GET', path, body, signal }) => valueOf(send(method, path, signal, body)),
  };
}

const NAMESPACE = 'default';

/**
 * Starts an API server and its controllers, creates a Count and returns it when it is ready.
 *
 * @param crd the CustomResourceDefinition of Counts, in JSON
 */
export async function readyCount(crd: string, count: string): Promise<string> {
  const unavailable = () => {
    throw new Error('This program has no keys, webhooks and metrics');
  };
  const server = new ServerCore(
    { kinds: builtinKinds(PORTABLE_KINDS) },
    {
      store: new ObjectStore({}),
      webhooks: { call: unavailable },
      newTokenKey: unavailable,
    },
  );
  const client = clientOf(server.handler);
  const deps = { client, clock: systemClock, log: silentLogger };
  const informers = new InformerSet(client, { clock: systemClock, log: silentLogger });
  const events = new EventBroadcaster(deps);
  const kit: ControllerKit = {
    ...deps,
    informers,
    events,
    customMetrics: { counter: unavailable, gauge: unavailable, histogram: unavailable },
    forCluster: unavailable,
  };
  const stop = new AbortController();
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, JSON.parse(crd) as CustomResourceDefinition);
  const program = new Manager(deps)
    .add('caches', informers)
    .add('events', events)
    .add(
      'controllers',
      new ClusterControllers(deps, { kubelet: { startupMs: 0 } }),
      countController(kit),
    );
  const running = program.run(stop.signal);
  const { metadata } = await client.create(COUNTS, JSON.parse(count) as Count);
  for await (const event of await client.watch(COUNTS, { namespace: NAMESPACE })) {
    if (!('object' in event) || event.object.metadata.name !== metadata.name) continue;
    const { conditions = [] } = event.object.status ?? {};
    if (!conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) continue;
    stop.abort();
    await running;
    await server.close();
    return JSON.stringify(event.object.status);
  }
  throw new Error('The watch ended');
}
