import { Gauge } from './prom-client.ts';
import type { MetricsText, Registry } from './registry.ts';
import { expose } from './registry.ts';
import { SeriesCounter, SeriesHistogram } from './series.ts';
import { Memo, oncePerObject } from '../util/memo.ts';

/** Labels of a request, as in kube-apiserver. Requests with the same labels should share an object. */
export interface RequestLabels {
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly scope: '' | 'cluster' | 'namespace' | 'resource';
}

/** Number of stored objects of a resource. */
export interface ObjectCount extends Pick<RequestLabels, 'group' | 'resource'> {
  readonly number: number;
}

/** Metrics of an API server, with kube-apiserver's names. */
export interface ApiServerMetrics {
  /** A request was answered, `seconds` after its arrival. */
  answered(request: RequestLabels, dryRun: string, code: number, seconds: number): void;
  /** Changes the number of requests in flight by `change`. */
  inFlight(kind: 'mutating' | 'readOnly', change: 1 | -1): void;
  /** Changes the number of long-running requests by `change`. */
  longRunning(request: RequestLabels, change: 1 | -1): void;
  /** Returns a function that adds to the events that watches of a resource have sent. */
  watchEvents(
    resource: Pick<RequestLabels, 'group' | 'version' | 'resource'>,
  ): (events: number) => void;
  /** Sets the function that returns the number of stored objects of each resource. */
  countObjects(count: () => Iterable<ObjectCount>): void;
  /** Returns the text of a scrape. */
  expose(): Promise<MetricsText>;
}

const REQUEST = [
  'verb',
  'group',
  'version',
  'resource',
  'subresource',
  'scope',
  'component',
] as const;
const RESOURCE = ['group', 'version', 'resource'] as const;
const component = 'apiserver';

const SECONDS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
];

/** Registers the metrics of an API server. Called once per registry. */
export function apiServerMetrics(registry: Registry): ApiServerMetrics {
  const registers = [registry];
  const requests = new SeriesCounter({
    name: 'apiserver_request_total',
    help: 'Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.',
    labelNames: [...REQUEST, 'dry_run', 'code'],
    registers,
  });
  const durations = new SeriesHistogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.',
    labelNames: [...REQUEST, 'dry_run'],
    buckets: SECONDS,
    registers,
  });
  const inFlight = new Gauge({
    name: 'apiserver_current_inflight_requests',
    help: 'Number of requests that are being processed per request kind, without long-running requests.',
    labelNames: ['request_kind'],
    registers,
  });
  for (const kind of ['mutating', 'readOnly']) inFlight.set({ request_kind: kind }, 0);
  const longRunning = new Gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.',
    labelNames: REQUEST,
    registers,
  });
  const events = new SeriesCounter({
    name: 'apiserver_watch_events_total',
    help: 'Number of events sent in watch clients',
    labelNames: RESOURCE,
    registers,
  });
  let count: () => Iterable<ObjectCount> = () => [];
  const objects: Gauge<'group' | 'resource'> = new Gauge({
    name: 'apiserver_resource_objects',
    help: 'Number of stored objects split by kind.',
    labelNames: ['group', 'resource'],
    registers,
    collect: () => {
      objects.reset();
      for (const { group, resource, number } of count()) objects.set({ group, resource }, number);
    },
  });
  // The name before Kubernetes 1.37.
  const storage: Gauge<'resource'> = new Gauge({
    name: 'apiserver_storage_objects',
    help: '[DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects split by kind.',
    labelNames: ['resource'],
    registers,
    collect: () => {
      storage.reset();
      for (const { group, resource, number } of count()) {
        storage.set({ resource: group === '' ? resource : `${resource}.${group}` }, number);
      }
    },
  });
  const seriesOf = oncePerObject(
    (request: RequestLabels) =>
      new Memo(100, (answer) => {
        const [code = '', dryRun = ''] = answer.split(' ');
        const labels = { ...request, component, dry_run: dryRun };
        return { count: requests.series({ ...labels, code }), duration: durations.series(labels) };
      }),
  );
  return {
    answered: (request, dryRun, code, seconds) => {
      const { count, duration } = seriesOf(request).get(`${code} ${dryRun}`);
      count.inc();
      duration.observe(seconds);
    },
    inFlight: (kind, change) => inFlight.inc({ request_kind: kind }, change),
    longRunning: (request, change) => longRunning.inc({ ...request, component }, change),
    watchEvents: (resource) => {
      const series = events.series(resource);
      return (sent) => {
        for (let event = 0; event < sent; event++) series.inc();
      };
    },
    countObjects: (next) => {
      count = next;
    },
    expose: () => expose(registry),
  };
}
