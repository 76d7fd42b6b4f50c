import type { ApiServer } from '../../apiserver/api-server.ts';
import type { RequestRecord } from '../../apiserver/audit/request-log.ts';
import type {
  ClusterEvent,
  ClusterReport,
  ShownRequest,
} from '../../serving/page/cluster-report.ts';
import { keyOf } from '../../api/object-key.ts';
import { groupResourceOf } from '../../api/resource.ts';
import { objectPage } from '../../serving/object-page.ts';
import type { CachedObjects } from '../../serving/object-page.ts';
import type { HttpServerRoutes, RouteSetting } from '../../serving/routes.ts';
import { jsonPages } from '../../serving/routes.ts';
import type { WithDefaults } from '../../util/check-options.ts';
import { redactText } from '../../util/redact.ts';

/** User agent of the cluster controllers. */
export const CLUSTER_CONTROLLERS_AGENT = 'kube-controller-manager';

/** Maximum numbers of requests and events in a response, and maximum length of a path. */
const MAX_REQUESTS = 100;
const MAX_EVENTS = 50;
const MAX_PATH = 300;

/**
 * Debug pages about the embedded API server: `/debug/cluster`, and switches for faults that are changed by PUT.
 * A request of a web page of another origin is rejected like on all debug pages.
 */
export function clusterPages(
  server: ApiServer,
  url: string,
): WithDefaults<Pick<HttpServerRoutes, 'pages' | 'settings'>> {
  const json = jsonPages(redactText);
  const settings = new Map([
    ['/debug/faults/fail-next-write', failNextWrite(server)],
    ['/debug/faults/cut-watches', action('cut-watches', () => server.faults.dropWatches())],
    ['/debug/faults/expire-history', action('expire-history', () => server.faults.expireHistory())],
  ]);
  const report = (): ClusterReport => ({
    url,
    revision: server.revision,
    watches: server.watches,
    requests: server.requests.count(),
    objects: server.counts
      .map(({ group, resource, number }) => ({
        resource: group ? `${resource}.${group}` : resource,
        count: number,
      }))
      .toSorted((a, b) => b.count - a.count || (a.resource < b.resource ? -1 : 1)),
    recent: server.requests.recent.slice(-MAX_REQUESTS).toReversed().map(shownRequest),
    events: server
      .objects('', 'events')
      .toSorted((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
      .slice(-MAX_EVENTS)
      .toReversed()
      .map(shownEvent),
    faults: Object.fromEntries(Array.from(settings, ([path, { get }]) => [path, get()])),
  });
  const pages = new Map([
    ['/debug/cluster', () => json(200, report())],
    ...objectPage({
      path: '/debug/cluster/object',
      informers: () => server.counts.map((counted) => storedObjects(server, counted)),
      events: () => server.objects('', 'events').map(shownEvent),
    }),
  ]);
  return { pages, settings };
}

/** The stored objects of a resource, as the pages read those of an informer. */
function storedObjects(
  server: ApiServer,
  { group, resource: plural }: ApiServer['counts'][number],
): CachedObjects {
  const all = server.objects(group, plural);
  const [first] = all;
  const namespaced = first?.metadata.namespace !== undefined;
  const resource = { group, version: '', plural, kind: first?.kind ?? '', namespaced };
  return {
    name: groupResourceOf(resource),
    resource,
    lister: {
      get: (key) => all.find((object) => keyOf(object) === key),
      list: ({ namespace } = {}) =>
        all.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace),
    },
  };
}

function shownRequest({
  method,
  path,
  info,
  userAgent,
  user,
  receivedMs,
  status,
}: RequestRecord): ShownRequest {
  return {
    verb: info ? info.verb : method,
    path: path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}…` : path,
    user: user?.name ?? '',
    agent: userAgent.slice(0, MAX_PATH),
    at: new Date(receivedMs).toISOString(),
    ...(status !== undefined && { status }),
  };
}

/** The schema of Events has checked the types of the fields. */
function shownEvent(event: ReturnType<ApiServer['objects']>[number]): ClusterEvent {
  const { type, reason, message, count, lastTimestamp, involvedObject } =
    event as Partial<ClusterEvent>;
  return {
    metadata: { uid: event.metadata.uid },
    ...(type !== undefined && { type }),
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
    ...(count !== undefined && { count }),
    lastTimestamp,
    involvedObject: involvedObject ?? {},
  };
}

/** Setting that answers the next write of a client with a status code; 0 takes the plan back. */
function failNextWrite({ faults }: ApiServer): RouteSetting {
  let code = 0;
  faults.beforeRequest(({ method, userAgent }) => {
    // The cluster controllers write all the time, and would take the fault.
    if (code === 0 || method === 'GET' || userAgent === CLUSTER_CONTROLLERS_AGENT) return undefined;
    const failure = code;
    code = 0;
    return failure;
  });
  return {
    name: 'fail-next-write',
    get: () => String(code),
    set: (text) => {
      if (!/^(?:0|[45]\d\d)$/.test(text.trim())) {
        throw new RangeError('must be a status code from 400 to 599, or 0 for none');
      }
      code = Number(text);
    },
  };
}

/** Setting whose value is the number of times that it was set to `now`. */
function action(name: string, act: () => void): RouteSetting {
  let times = 0;
  return {
    name,
    get: () => String(times),
    set: (text) => {
      if (text.trim() !== 'now') throw new RangeError('must be now');
      act();
      times++;
    },
  };
}
