import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import {
  CONFIG_MAPS,
  CRON_JOBS,
  DAEMON_SETS,
  DEPLOYMENTS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  EVENTS,
  JOBS,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  REPLICA_SETS,
  SECRETS,
  SERVICES,
  STATEFUL_SETS,
} from '../../../src/api/builtin.ts';
import { controllerReference } from '../../../src/api/metadata.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { conditionOf } from '../../../src/api/workloads.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { ClusterBench, NAMESPACE, templateOf } from './cluster-bench.ts';

const MINUTE_MS = 60_000;

/** The denied requests: their method, a part of the path, and of the body. */
type Denied = readonly [method: string, path: RegExp, body?: RegExp];

const DENIED = 'denied by policy';

/** Rejects requests as admission does: a policy denies them as forbidden or as invalid. Records the writes. */
function denying(
  [method, path, body]: Denied,
  code: number,
  handler: HttpHandler,
  writes: string[],
): HttpHandler {
  return async (request) => {
    if (request.method !== 'GET' && !request.path.includes('/events')) {
      writes.push(`${request.method} ${request.path}`);
    }
    const isDenied =
      request.method === method &&
      path.test(request.path) &&
      (body?.test(String(request.body ?? '')) ?? true);
    if (!isDenied) return handler(request);
    const status = { kind: 'Status', code, message: DENIED };
    const headers = { 'content-type': 'application/json' };
    return { status: code, headers, body: Readable.from([Buffer.from(JSON.stringify(status))]) };
  };
}

interface Siblings {
  readonly title: string;
  readonly controllers: readonly string[];
  readonly denied: Denied;
  /** @default 403 */
  readonly code?: number;
  readonly run: (bench: ClusterBench) => Promise<void>;
  /** Returns the objects that remain. */
  readonly remaining: (bench: ClusterBench) => Promise<readonly string[]>;
  readonly expected: readonly string[];
  /** Returns the text that reports the denial. */
  readonly report?: (bench: ClusterBench) => Promise<string>;
}

const spec = (app: string, more: object = {}) => ({
  selector: { matchLabels: { app } },
  template: templateOf({ app }),
  ...more,
});

const namesOf = (resource: Resource) => async (bench: ClusterBench) =>
  (await bench.list(resource))
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.generateName ?? metadata.name)
    .toSorted();

const eventsOf = (name: string) => async (bench: ClusterBench) =>
  (await bench.events(name)).join('\n');

const SIBLINGS: readonly Siblings[] = [
  {
    title: 'the Pod of one node of a DaemonSet',
    controllers: ['daemonset', 'node-lifecycle', 'events'],
    denied: ['POST', /\/pods/, /"values":\["b"\]/],
    run: async (bench) => {
      for (const node of ['a', 'b', 'c']) await bench.createNode(node);
      await bench.create(DAEMON_SETS, 'set', { spec: spec('set') });
    },
    remaining: async (bench) => {
      const { status } = await bench.get(DAEMON_SETS, 'set');
      return [`${status?.currentNumberScheduled} of ${status?.desiredNumberScheduled}`];
    },
    expected: ['2 of 3'],
    report: eventsOf('set'),
  },
  {
    title: 'one Pod of a StatefulSet that is managed in parallel',
    controllers: ['statefulset', 'events'],
    denied: ['POST', /\/pods/, /"name":"set-1"/],
    run: async (bench) => {
      const podManagementPolicy = 'Parallel';
      const parallel = { replicas: 4, serviceName: '', podManagementPolicy };
      await bench.create(STATEFUL_SETS, 'set', { spec: spec('set', parallel) });
    },
    remaining: namesOf(PODS),
    expected: ['set-0', 'set-2', 'set-3'],
    report: eventsOf('set'),
  },
  {
    title: 'one claim of a Pod of a StatefulSet',
    controllers: ['statefulset', 'events'],
    denied: ['POST', /\/persistentvolumeclaims/, /"name":"a-set-0"/],
    run: async (bench) => {
      const volumeClaimTemplates = ['a', 'b'].map((name) => ({
        metadata: { name },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      }));
      const more = { replicas: 1, serviceName: '', volumeClaimTemplates };
      await bench.create(STATEFUL_SETS, 'set', { spec: spec('set', more) });
    },
    remaining: namesOf(PERSISTENT_VOLUME_CLAIMS),
    expected: ['b-set-0'],
    report: eventsOf('set'),
  },
  {
    title: 'the Pod of one index of a Job',
    controllers: ['job', 'events'],
    denied: ['POST', /\/pods/, /"generateName":"job-1-"/],
    run: async (bench) => {
      const pod = { ...templateOf({}).spec, restartPolicy: 'Never' };
      const counts = { completionMode: 'Indexed', completions: 3, parallelism: 3 };
      await bench.create(JOBS, 'job', { spec: { ...counts, template: { spec: pod } } });
    },
    remaining: namesOf(PODS),
    expected: ['job-0-', 'job-2-'],
    report: eventsOf('job'),
  },
  {
    title: 'the finalizer of one Pod of a finished Job',
    controllers: ['job', 'kubelet', 'scheduler', 'events'],
    denied: ['PATCH', /\/pods\/job-1-[^/]+$/, /"finalizers"/],
    run: async (bench) => {
      const containers = [{ name: 'app', image: 'busybox', command: ['true'] }];
      const template = { spec: { containers, restartPolicy: 'Never' } };
      const counts = { completionMode: 'Indexed', completions: 3, parallelism: 3 };
      await bench.create(JOBS, 'job', { spec: { ...counts, template } });
    },
    remaining: async (bench) =>
      (await bench.list(PODS))
        .filter(({ metadata }) => metadata.finalizers?.length)
        .map(({ metadata }) => metadata.generateName ?? ''),
    expected: ['job-1-'],
  },
  {
    title: 'the deletion of one surplus Pod of a ReplicaSet',
    controllers: ['replicaset', 'events'],
    denied: ['DELETE', /\/pods\/one/],
    run: async (bench) => {
      for (const name of ['one', 'two', 'three']) {
        await bench.createPod(name, {}, { labels: { app: 'set' } });
      }
      await bench.create(REPLICA_SETS, 'set', { spec: spec('set', { replicas: 0 }) });
    },
    remaining: namesOf(PODS),
    expected: ['one'],
    report: async (bench) => {
      const { status } = await bench.get(REPLICA_SETS, 'set');
      return `${status?.conditions?.[0]?.reason}: ${status?.conditions?.[0]?.message}`;
    },
  },
  {
    title: 'the adoption of one Pod by a ReplicaSet',
    controllers: ['replicaset'],
    denied: ['PATCH', /\/pods\/one/],
    code: 422,
    run: async (bench) => {
      for (const name of ['one', 'two', 'three']) {
        await bench.createPod(name, {}, { labels: { app: 'set' } });
      }
      await bench.create(REPLICA_SETS, 'set', { spec: spec('set', { replicas: 3 }) });
    },
    remaining: async (bench) =>
      (await bench.list(PODS)).map(
        ({ metadata }) => `${metadata.name} ${metadata.ownerReferences?.length ?? 0}`,
      ),
    expected: ['one 0', 'three 1', 'two 1'],
  },
  {
    title: 'the deletion of one old ReplicaSet of a Deployment',
    controllers: ['deployment', 'replicaset'],
    denied: ['DELETE', /\/replicasets\/web-1/],
    run: async (bench) => {
      for (const name of ['web-1', 'web-2', 'web-3']) {
        const labels = { app: 'web', 'pod-template-hash': name };
        const matchLabels = labels;
        await bench.create(REPLICA_SETS, name, {
          metadata: { labels },
          spec: { replicas: 0, selector: { matchLabels }, template: templateOf(labels) },
        });
      }
      const limits = { replicas: 0, revisionHistoryLimit: 0 };
      await bench.create(DEPLOYMENTS, 'web', { spec: spec('web', limits) });
    },
    remaining: async (bench) =>
      (await namesOf(REPLICA_SETS)(bench)).filter((name) => /^web-\d$/.test(name)),
    expected: ['web-1'],
  },
  {
    title: 'the scale of one old ReplicaSet of a Deployment',
    controllers: ['deployment', 'replicaset'],
    denied: ['PATCH', /\/replicasets\/web-1\?/, /"replicas":0/],
    run: async (bench) => {
      for (const name of ['web-1', 'web-2', 'web-3']) {
        const labels = { app: 'web', 'pod-template-hash': name };
        await bench.create(REPLICA_SETS, name, {
          metadata: { labels },
          spec: { replicas: 1, selector: { matchLabels: labels }, template: templateOf(labels) },
        });
      }
      const recreate = { replicas: 0, strategy: { type: 'Recreate' } };
      await bench.create(DEPLOYMENTS, 'web', { spec: spec('web', recreate) });
    },
    remaining: async (bench) =>
      (await bench.list(REPLICA_SETS))
        .filter((set) => set.spec?.replicas !== 0)
        .map(({ metadata }) => metadata.name),
    expected: ['web-1'],
  },
  {
    title: 'the deletion of one object of a namespace',
    controllers: ['namespace'],
    denied: ['DELETE', /\/configmaps\/one/],
    run: async (bench) => {
      await bench.create(NAMESPACES, 'gone');
      for (const name of ['one', 'two']) {
        await bench.create(CONFIG_MAPS, name, { metadata: { namespace: 'gone' } });
        await bench.create(SECRETS, name, { metadata: { namespace: 'gone' } });
      }
      await bench.client.delete(NAMESPACES, { name: 'gone' });
    },
    remaining: async ({ client }) => {
      const lists = [CONFIG_MAPS, SECRETS].map((resource: Resource) =>
        client.list(resource, { namespace: 'gone' }),
      );
      const items = (await Promise.all(lists)).flatMap((list) => list.items);
      return items.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    },
    expected: ['ConfigMap one'],
    report: async (bench) => {
      const { status } = await bench.get(NAMESPACES, 'gone');
      return (
        conditionOf(status?.conditions, 'NamespaceDeletionContentFailure', 'True')?.message ?? ''
      );
    },
  },
  {
    title: 'the deletion of one finished Job of a CronJob',
    controllers: ['cronjob'],
    denied: ['DELETE', /\/jobs\/job-1/],
    run: async (bench) => {
      const template = { spec: { ...templateOf({}).spec, restartPolicy: 'Never' } };
      const cron = await bench.create(CRON_JOBS, 'cron', {
        spec: {
          schedule: '0 0 1 1 *',
          successfulJobsHistoryLimit: 0,
          jobTemplate: { spec: { template } },
        },
      });
      for (const name of ['job-1', 'job-2', 'job-3']) {
        const ownerReferences = [controllerReference(cron)];
        await bench.create(JOBS, name, { metadata: { ownerReferences }, spec: { template } });
        const conditions = ['SuccessCriteriaMet', 'Complete'].map((type) => {
          return { type, status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z' };
        });
        const times = { startTime: '2025-01-01T00:00:00Z', completionTime: '2025-01-01T00:00:00Z' };
        await bench.merge(JOBS, name, { status: { conditions, ...times } }, 'status');
      }
    },
    remaining: namesOf(JOBS),
    expected: ['job-1'],
  },
  {
    title: 'one EndpointSlice of a Service',
    controllers: ['endpointslice-mirroring'],
    denied: ['POST', /\/endpointslices/, /"addressType":"IPv4"/],
    run: async (bench) => {
      await bench.create(SERVICES, 'web', { spec: { ports: [{ port: 80 }] } });
      const addresses = ['10.0.0.1', 'fd00::1'].map((ip) => ({ ip }));
      await bench.create(ENDPOINTS, 'web', { subsets: [{ addresses, ports: [{ port: 80 }] }] });
    },
    remaining: async (bench) => (await bench.list(ENDPOINT_SLICES)).map((each) => each.addressType),
    expected: ['IPv6'],
  },
  {
    title: 'the deletion of one event',
    controllers: ['events'],
    denied: ['DELETE', /\/events\/a/],
    run: async (bench) => {
      for (const name of ['a', 'b']) {
        const involvedObject = { kind: 'Pod', name: 'x', namespace: NAMESPACE };
        await bench.create(EVENTS, name, { involvedObject, reason: 'R', type: 'Normal' });
      }
      await bench.pass(90 * MINUTE_MS);
    },
    remaining: namesOf(EVENTS),
    expected: ['a'],
  },
];

describe('Cluster controllers', () => {
  for (const {
    title,
    controllers,
    denied,
    code = 403,
    run,
    remaining,
    expected,
    report,
  } of SIBLINGS) {
    it(`write the others if the server denies ${title}`, async () => {
      const bench = new ClusterBench();
      const { clock } = bench;
      const writes: string[] = [];
      const handler = denying(denied, code, bench.server.handler, writes);
      await bench.start(
        { controllers },
        new HttpClient({ handler, server: 'https://test', clock }),
      );
      try {
        await run(bench);
        await bench.pass(2 * MINUTE_MS);
        assert.deepEqual(await remaining(bench), expected);
        if (report) assert.match(await report(bench), new RegExp(DENIED));
        const earlier = writes.length;
        await bench.pass(10 * MINUTE_MS);
        assert.ok(writes.length - earlier <= 12, writes.slice(earlier).join('\n'));
        assert.deepEqual(await remaining(bench), expected);
      } finally {
        await bench.end();
      }
    });
  }
});
