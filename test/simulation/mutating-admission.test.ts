import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  CONTROLLER_REVISIONS,
  DAEMON_SETS,
  DEPLOYMENTS,
  EVENTS,
  JOBS,
  MUTATING_ADMISSION_POLICIES,
  MUTATING_ADMISSION_POLICY_BINDINGS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  PODS,
  REPLICA_SETS,
  SERVICES,
  STATEFUL_SETS,
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_ADMISSION_POLICY_BINDINGS,
} from '../../src/api/builtin.ts';
import { formatPath, toJsonPointer, valueAt } from '../../src/api/field-path.ts';
import type { FieldPath } from '../../src/api/field-path.ts';
import type { Condition } from '../../src/api/conditions.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { KubernetesObject, NewObject } from '../../src/api/object.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import type { Resource } from '../../src/api/resource.ts';
import { apiVersionOf, objectPath } from '../../src/api/resource.ts';
import { ownersOf } from '../../src/manager/hot-loop/hot-loop-report.ts';
import { Controller } from '../../src/manager/controller.ts';
import { OwnedObjects } from '../../src/manager/owned-objects.ts';
import { isRecord } from '../../src/util/values.ts';
import { done } from '../../src/workqueue/outcome.ts';
import { Simulation } from '../support/simulation.ts';
import { TEST_AGENT } from '../support/wire-rules.ts';

type Subject = KubernetesObject & {
  readonly spec?: object;
  readonly status?: { readonly conditions?: Condition[] };
};

interface Kind {
  readonly controller: string;
  /** Its field manager. */
  readonly component: string;
  readonly resource: Resource;
  readonly spec: object;
  readonly children: readonly Resource[];
}

const KINDS: readonly Kind[] = [
  {
    controller: 'count',
    component: 'count-controller',
    resource: COUNTS,
    spec: { name: 'nginx:1', count: 2 },
    children: [PODS],
  },
  {
    controller: 'webapp',
    component: 'webapp-controller',
    resource: WEB_APPS,
    spec: { version: '1.27', replicas: 1 },
    children: [DEPLOYMENTS, SERVICES],
  },
  {
    controller: 'foo',
    component: 'sample-controller',
    resource: FOOS,
    spec: { deploymentName: 'web', replicas: 1 },
    children: [DEPLOYMENTS],
  },
  {
    controller: 'at',
    component: 'at-controller',
    resource: ATS,
    spec: { schedule: '2025-01-01T00:00:00Z', command: 'true' },
    children: [PODS],
  },
];

/** Paths that the server sets, or that identify an object. */
const FIXED =
  /^\.(?:apiVersion|kind|status|metadata\.(?:name|namespace|uid|resourceVersion|creationTimestamp|generation|managedFields|ownerReferences|finalizers))/;

const MINUTE_MS = 60_000;

/** Returns the paths of all single values. */
function leaves(value: unknown, path: FieldPath = []): FieldPath[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => leaves(item, [...path, index]));
  if (!isRecord(value)) return [path];
  return Object.entries(value).flatMap(([name, member]) => leaves(member, [...path, name]));
}

/** Changes each new object, and each changed one, by the operations of a JSON patch in CEL. */
async function mutate(
  { client }: Simulation,
  child: Resource,
  operations: readonly string[],
  {
    operations: verbs = ['CREATE', 'UPDATE'],
    failurePolicy = 'Ignore',
  }: {
    readonly operations?: ('CREATE' | 'UPDATE')[];
    readonly failurePolicy?: 'Ignore' | 'Fail';
  } = {},
): Promise<void> {
  const version = 'admissionregistration.k8s.io/v1';
  const matches = {
    apiGroups: [child.group],
    apiVersions: [child.version],
    operations: verbs,
    resources: [child.plural],
  };
  const expression = `[${operations.map((operation) => `JSONPatch{${operation}}`).join()}]`;
  await client.create(MUTATING_ADMISSION_POLICIES, {
    apiVersion: version,
    kind: 'MutatingAdmissionPolicy',
    metadata: { name: 'change' },
    spec: {
      reinvocationPolicy: 'Never',
      failurePolicy,
      matchConstraints: { resourceRules: [matches] },
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
    },
  });
  await client.create(MUTATING_ADMISSION_POLICY_BINDINGS, {
    apiVersion: version,
    kind: 'MutatingAdmissionPolicyBinding',
    metadata: { name: 'change' },
    spec: { policyName: 'change' },
  });
}

/** Returns the writes of the next minutes, except those of tests, events and Leases. */
async function writesWithin(simulation: Simulation, minutes: number) {
  const from = simulation.now();
  await simulation.pass(minutes * MINUTE_MS);
  return simulation.server.requests.recent.filter(
    ({ method, info, userAgent, receivedMs }) =>
      userAgent !== TEST_AGENT &&
      method !== 'GET' &&
      info?.resource !== 'events' &&
      info?.resource !== 'leases' &&
      receivedMs >= from,
  );
}

/** Returns a CEL expression of another value of the same type. */
function otherValue(value: unknown): string {
  if (typeof value === 'number') return String(value + 1);
  if (typeof value === 'boolean') return String(!value);
  return JSON.stringify(`registry.local/${String(value)}`);
}

for (const { controller, component, resource, spec, children } of KINDS) {
  describe(`Admission that changes the objects of a ${resource.kind}`, () => {
    let simulation: Simulation;

    const start = async () => {
      simulation = new Simulation();
      simulation.startCluster();
      await simulation.installCrd(resource, ...children);
      simulation.startDaemon({ controllers: [controller] });
    };
    beforeEach(start);
    afterEach(() => simulation.end());

    const create = () =>
      simulation.client.create<Subject>(resource, {
        apiVersion: apiVersionOf(resource),
        kind: resource.kind,
        metadata: { namespace: 'default', name: 'web' },
        spec,
      });

    const readyOf = async () => {
      const object = await simulation.client.get<Subject>(resource, {
        namespace: 'default',
        name: 'web',
      });
      return object.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    };

    const ownedOf = async (child: Resource) =>
      (await simulation.client.list(child, { namespace: 'default' })).items.find(
        (object) => controllerOf(object)?.kind === resource.kind,
      );

    const ownWrites = async (minutes: number) =>
      (await writesWithin(simulation, minutes)).filter(({ userAgent }) => userAgent === 'daemon');

    /** Returns the fields of the owned objects that the controller sets, with other values. */
    const changes = async () => {
      const found: [Resource, FieldPath, string][] = [];
      for (const child of children) {
        const owned = await ownedOf(child);
        assert.ok(owned, child.kind);
        const object = await simulation.client.raw({ path: objectPath(child, owned.metadata) });
        for (const path of leaves(owned)) {
          const isOwn = ownersOf(object, path).includes(component);
          if (!isOwn || FIXED.test(formatPath(path))) continue;
          found.push([child, path, otherValue(valueAt(owned, path))]);
        }
      }
      return found;
    };

    it('is reported if the controller cannot settle, and costs few requests', async () => {
      await create();
      await simulation.pass(MINUTE_MS);
      for (const [child, path, value] of await changes()) {
        await simulation.end();
        await start();
        await mutate(simulation, child, [
          `op: "replace", path: "${toJsonPointer(path)}", value: ${value}`,
        ]);
        await create();
        const where = `${child.kind}${formatPath(path)}: ${value}`;
        const first = await ownWrites(5);
        assert.ok(first.length < 100, `${where}: ${first.length} writes`);
        const later = await ownWrites(5);
        assert.ok(later.length <= 10, `${where}: ${later.length} writes in steady state`);
        if (!formatPath(path).endsWith('image')) continue;
        assert.equal(later.length, 0, where);
        if (resource !== ATS) assert.equal(await readyOf(), 'True', where);
      }
    });
  });
}

/** Operations of a policy for objects of a kind of ours, and what the status and the Warning say. */
const REPORTED: readonly (readonly [string, Resource, string, RegExp | undefined])[] = [
  ['Count', PODS, 'op: "add", path: "/metadata/labels", value: {"a": "b"}', /the labels .* of Pod/],
  ['WebApp', DEPLOYMENTS, 'op: "add", path: "/spec/replicas", value: 0', /spec\.replicas of/],
  ['WebApp', SERVICES, 'op: "add", path: "/spec/selector", value: {"a": "b"}', /spec\.selector of/],
  [
    'WebApp',
    SERVICES,
    'op: "replace", path: "/spec/ports/0/targetPort", value: 8080',
    /spec\.ports of/,
  ],
  // The rollout changes the Deployment meanwhile.
  [
    'WebApp',
    DEPLOYMENTS,
    'op: "replace", path: "/spec/template/spec/containers/0/image", value: "local/nginx"',
    undefined,
  ],
  [
    'Foo',
    DEPLOYMENTS,
    'op: "add", path: "/spec/template/spec/containers/0/command", value: ["nginx"]',
    undefined,
  ],
  ['Foo', DEPLOYMENTS, 'op: "add", path: "/spec/replicas", value: 3', /spec\.replicas of/],
  ['At', PODS, 'op: "add", path: "/spec/restartPolicy", value: "Always"', /spec\.restartPolicy of/],
];

describe('Admission that changes what an object needs', () => {
  for (const [name, child, operation, message] of REPORTED) {
    const result = message ? 'is reported by the owner' : 'needs no report';
    it(`${result}: ${name}, ${operation}`, async () => {
      const kind = KINDS.find(({ resource }) => resource.kind === name);
      assert.ok(kind);
      const { resource, controller, children, spec } = kind;
      const simulation = new Simulation();
      simulation.startCluster();
      try {
        await simulation.installCrd(resource, ...children);
        simulation.startDaemon({ controllers: [controller] });
        await mutate(simulation, child, [operation]);
        const metadata = { namespace: 'default', name: 'web' };
        await simulation.client.create(resource, {
          apiVersion: apiVersionOf(resource),
          kind: resource.kind,
          metadata,
          spec,
        } as NewObject<KubernetesObject>);
        await simulation.pass(10 * MINUTE_MS);
        const { status } = await simulation.client.get<Subject>(resource, metadata);
        const ready = status?.conditions?.find(({ type }) => type === 'Ready');
        const warnings = (await simulation.client.list(EVENTS, metadata)).items.filter(
          ({ type, involvedObject }) => type === 'Warning' && involvedObject.kind === resource.kind,
        );
        assert.equal(ready?.status, message ? 'False' : 'True');
        assert.deepEqual(
          warnings.map((event) => event.message),
          message ? [ready?.message] : [],
        );
        if (message) assert.match(ready?.message ?? '', message);
        const later = await writesWithin(simulation, 10);
        assert.ok(later.length <= 10, `${later.length} writes`);
      } finally {
        await simulation.end();
      }
    });
  }
});

describe('Admission that denies the removal of the finalizer of a Pod of an At', () => {
  it('does not hide the result of the command, and is reported', async () => {
    const simulation = new Simulation();
    simulation.startCluster();
    try {
      await simulation.installCrd(ATS, PODS);
      simulation.startDaemon({ controllers: ['at'] });
      // The operation fails: the Pod has no such label.
      await mutate(simulation, PODS, ['op: "remove", path: "/metadata/labels/a"'], {
        operations: ['UPDATE'],
        failurePolicy: 'Fail',
      });
      const metadata = { namespace: 'default', name: 'web' };
      await simulation.client.create<Subject>(ATS, {
        apiVersion: apiVersionOf(ATS),
        kind: 'At',
        metadata,
        spec: { schedule: '2025-01-01T00:00:00Z', command: 'true' },
      });
      await simulation.pass(MINUTE_MS);
      const { status } = await simulation.client.get<Subject>(ATS, metadata);
      assert.ok(status?.conditions?.some(({ reason }) => reason === 'Completed'));
      const events = (await simulation.client.list(EVENTS, metadata)).items;
      const warning = events.find(({ reason }) => reason === 'FailedPatch');
      assert.match(warning?.message ?? '', /finalizer: Pod "web-pod": policy 'change'/);
    } finally {
      await simulation.end();
    }
  });
});

const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'app', image: 'nginx:1' }] },
};
const selector = { matchLabels: { app: 'web' } };
const REPLICA_SET = { replicas: 2, selector, template };
const COUNT = { name: 'nginx:1', count: 2 };
const OTHER_OWNER = 'op: "replace", path: "/metadata/ownerReferences/0/uid", value: "other"';
const NO_LABELS = 'op: "remove", path: "/metadata/labels"';
const NODE =
  '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0';

/** Fields without which a controller does not recognize its objects. */
const IDENTITY: readonly {
  readonly resource: Resource;
  readonly spec: object;
  readonly child: Resource;
  readonly operations: readonly string[];
  /** Whether the controller settles; otherwise its creates become rare. */
  readonly settles?: boolean;
}[] = [
  {
    resource: COUNTS,
    spec: COUNT,
    child: PODS,
    operations: [
      'op: "replace", path: "/metadata/annotations/demo.mark8s.io~1image", value: ""',
      'op: "replace", path: "/spec/containers/0/image", value: "registry.local/nginx"',
    ],
    settles: true,
  },
  { resource: COUNTS, spec: COUNT, child: PODS, operations: [OTHER_OWNER] },
  { resource: REPLICA_SETS, spec: REPLICA_SET, child: PODS, operations: [NO_LABELS] },
  { resource: REPLICA_SETS, spec: REPLICA_SET, child: PODS, operations: [OTHER_OWNER] },
  { resource: DEPLOYMENTS, spec: REPLICA_SET, child: REPLICA_SETS, operations: [NO_LABELS] },
  {
    resource: DEPLOYMENTS,
    spec: REPLICA_SET,
    child: REPLICA_SETS,
    operations: [
      'op: "replace", path: "/spec/template/spec/containers/0/image", value: "registry.local/nginx"',
    ],
    settles: true,
  },
  { resource: DAEMON_SETS, spec: { selector, template }, child: PODS, operations: [NO_LABELS] },
  {
    resource: DAEMON_SETS,
    spec: { selector, template },
    child: PODS,
    operations: [`op: "replace", path: "${NODE}", value: "other"`],
  },
  {
    resource: STATEFUL_SETS,
    spec: { ...REPLICA_SET, serviceName: 'web' },
    child: PODS,
    operations: ['op: "remove", path: "/metadata/labels/controller-revision-hash"'],
  },
  {
    resource: STATEFUL_SETS,
    spec: { ...REPLICA_SET, serviceName: 'web' },
    child: CONTROLLER_REVISIONS,
    operations: [
      'op: "replace", path: "/data/spec/template/spec/containers/0/image", value: "other"',
    ],
    settles: true,
  },
  {
    resource: JOBS,
    spec: { template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } },
    child: PODS,
    operations: [NO_LABELS],
  },
];

const MAX_REQUESTS = 3000;

describe('Admission that changes what identifies an object', () => {
  for (const { resource, spec, child, operations, settles = false } of IDENTITY) {
    it(`costs few requests: ${resource.kind}, ${operations[0]}`, async () => {
      const simulation = new Simulation();
      // A controller that never waits would block the test.
      let requests = 0;
      simulation.startCluster({}, (handler) => async (request) => {
        if (requests++ > MAX_REQUESTS) throw new Error('too many requests');
        return handler(request);
      });
      try {
        if (resource === COUNTS) {
          await simulation.installCrd(resource, child);
          simulation.startDaemon({ controllers: ['count'] });
        }
        await mutate(simulation, child, operations);
        await simulation.client.create(resource, {
          apiVersion: apiVersionOf(resource),
          kind: resource.kind,
          metadata: { namespace: 'default', name: 'web' },
          spec,
        } as NewObject<KubernetesObject>);
        await writesWithin(simulation, 10);
        const later = await writesWithin(simulation, 10);
        const creates = later.filter(
          ({ method, info }) =>
            method === 'POST' && info?.resource === child.plural && info.subresource === undefined,
        );
        assert.ok(creates.length <= (settles ? 0 : 10), `${creates.length} creates`);
        assert.ok(requests < MAX_REQUESTS / 3, `${requests} requests`);
        if (settles) return;
        const lines = resource === COUNTS ? simulation.lines : simulation.clusterLines;
        const line = lines.find(({ message }) => message.startsWith('Hot loop detected'));
        const field = /path: "([^"]+)"/
          .exec(operations[0] ?? '')?.[1]
          ?.replaceAll(/\/(\d+)/g, '[$1]');
        assert.deepEqual(
          [line?.fields?.['fields'], line?.fields?.['admission']],
          [[field?.replaceAll('/', '.')], ['MutatingAdmissionPolicy "change"']],
        );
      } finally {
        await simulation.end();
      }
    });
  }
});

const WEBHOOK_URL = 'https://change.example.com/';

/** Changes each new object, and each changed one, by a webhook with the operations of a JSON patch. */
async function mutateByWebhook(
  { client, server }: Simulation,
  child: Resource,
  patch: readonly { readonly op: string; readonly path: string; readonly value?: string }[],
): Promise<void> {
  await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'change' },
    webhooks: [
      {
        name: 'change.example.com',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        clientConfig: { url: WEBHOOK_URL },
        rules: [
          {
            apiGroups: [child.group],
            apiVersions: [child.version],
            operations: ['CREATE', 'UPDATE'],
            resources: [child.plural],
          },
        ],
      },
    ],
  });
  const operations = patch.map((operation) => ({ ...operation }));
  server.registerWebhooks({
    [WEBHOOK_URL]: () => ({ allowed: true, patchType: 'JSONPatch', patch: operations }),
  });
}

/** A program on the library with one Deployment for each Count. */
function startLibraryProgram(simulation: Simulation): void {
  simulation.startControllers((kit) => {
    const counts = kit.informers.for(COUNTS);
    const owned = new OwnedObjects(COUNTS, 'library').add(kit.informers.for(DEPLOYMENTS));
    const desired = {
      apiVersion: apiVersionOf(DEPLOYMENTS),
      kind: 'Deployment',
      metadata: { name: 'web', labels: { tier: 'web' }, annotations: { note: 'asked' } },
      spec: { replicas: 1, selector, template },
    };
    const controller = new Controller(kit, {
      name: 'library',
      kind: COUNTS.kind,
      sync: async (key, context) => {
        const count = counts.lister.get(key);
        if (count) await owned.ensure(context, count, [desired]);
        return done();
      },
    });
    return [controller.for(counts).owns(owned)];
  });
}

const ASKED_IMAGE = '/metadata/annotations/demo.mark8s.io~1image';
const WEBHOOKS = [
  {
    what: 'the image of Pods of a Count',
    child: PODS,
    patch: [{ op: 'replace', path: '/spec/containers/0/image', value: 'registry.local/nginx' }],
  },
  {
    what: 'the image that a Count asked for',
    child: PODS,
    patch: [{ op: 'replace', path: ASKED_IMAGE, value: '' }],
  },
  {
    what: 'values of a Deployment of a program on the library',
    child: DEPLOYMENTS,
    patch: [
      { op: 'replace', path: '/metadata/labels/tier', value: 'other' },
      { op: 'replace', path: '/metadata/annotations/note', value: 'other' },
      { op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'other' },
      { op: 'replace', path: '/spec/template/spec/containers/0/name', value: 'other' },
    ],
  },
  {
    what: 'the owner of a Deployment of a program on the library',
    child: DEPLOYMENTS,
    patch: [{ op: 'replace', path: '/metadata/ownerReferences/0/uid', value: 'other' }],
    reported: ['.metadata.ownerReferences[0].uid'],
  },
];

describe('A mutating webhook', () => {
  for (const { what, child, patch, reported } of WEBHOOKS) {
    const how = reported ? 'is reported' : 'costs no writes in steady state';
    it(`${how} if it changes ${what}`, async () => {
      const simulation = new Simulation();
      simulation.startCluster();
      try {
        await simulation.installCrd(COUNTS, child);
        await mutateByWebhook(simulation, child, patch);
        if (child === PODS) simulation.startDaemon();
        else startLibraryProgram(simulation);
        await simulation.applyCount();
        const { writes } = simulation.wire;
        await simulation.pass(5 * MINUTE_MS);
        const earlier = writes.length;
        await simulation.pass(5 * MINUTE_MS);
        assert.ok(writes.length - earlier <= (reported ? 10 : 0), `${writes.length} writes`);
        const line = simulation.lines.find(({ message }) => message.startsWith('Hot loop'));
        assert.deepEqual(line?.fields?.['fields'], reported);
        if (reported) {
          const mutators = ['MutatingWebhookConfiguration "change"'];
          assert.deepEqual(line?.fields?.['admission'], mutators);
        } else if (child === PODS) await simulation.untilReady(3);
      } finally {
        await simulation.end();
      }
    });
  }
});

describe('Admission that denies one of the Pods of a Count', () => {
  it('leaves the others ready, is reported in the status, and is retried slowly', async () => {
    const simulation = new Simulation();
    simulation.startCluster();
    try {
      await simulation.installCrd(COUNTS, PODS);
      const apiVersion = 'admissionregistration.k8s.io/v1';
      const metadata = { name: 'deny' };
      await simulation.client.create(VALIDATING_ADMISSION_POLICIES, {
        apiVersion,
        kind: 'ValidatingAdmissionPolicy',
        metadata,
        spec: {
          matchConstraints: {
            resourceRules: [
              { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
            ],
          },
          validations: [{ expression: "object.metadata.name != 'test-count-0'", message: 'not 0' }],
        },
      });
      await simulation.client.create(VALIDATING_ADMISSION_POLICY_BINDINGS, {
        apiVersion,
        kind: 'ValidatingAdmissionPolicyBinding',
        metadata,
        spec: { policyName: 'deny', validationActions: ['Deny'] },
      });
      simulation.startDaemon();
      await simulation.applyCount();
      await simulation.pass(MINUTE_MS);
      assert.deepEqual(await simulation.podNames(), ['test-count-1', 'test-count-2']);
      const { status } = await simulation.count();
      assert.equal(status?.readyReplicas, 2);
      const ready = status.conditions?.find(({ type }) => type === 'Ready');
      assert.match(ready?.message ?? '', /"test-count-0" is forbidden: .*not 0/);
      const { writes } = simulation.wire;
      const earlier = writes.length;
      await simulation.pass(10 * MINUTE_MS);
      assert.ok(writes.length - earlier <= 10, writes.slice(earlier).join('\n'));
      assert.ok(!simulation.lines.some(({ message }) => message.startsWith('Hot loop')));
    } finally {
      await simulation.end();
    }
  });
});
