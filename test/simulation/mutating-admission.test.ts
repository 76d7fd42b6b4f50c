import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  DEPLOYMENTS,
  MUTATING_ADMISSION_POLICIES,
  MUTATING_ADMISSION_POLICY_BINDINGS,
  PODS,
  SERVICES,
} from '../../src/api/builtin.ts';
import { formatPath, valueAt } from '../../src/api/field-path.ts';
import type { FieldPath } from '../../src/api/field-path.ts';
import type { Condition } from '../../src/api/conditions.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import type { Resource } from '../../src/api/resource.ts';
import { apiVersionOf, objectPath } from '../../src/api/resource.ts';
import { ownersOf } from '../../src/manager/hot-loop/hot-loop-report.ts';
import { isRecord } from '../../src/util/values.ts';
import { Simulation } from '../support/simulation.ts';

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

    /** Changes each new object, and each changed one. */
    const mutate = async (child: Resource, path: FieldPath, value: string) => {
      const pointer = path.map((step) => String(step).replaceAll('~', '~0').replaceAll('/', '~1'));
      const change = `JSONPatch{op: "replace", path: "/${pointer.join('/')}", value: ${value}}`;
      const version = 'admissionregistration.k8s.io/v1';
      const matches = {
        apiGroups: [child.group],
        apiVersions: [child.version],
        operations: ['CREATE' as const, 'UPDATE' as const],
        resources: [child.plural],
      };
      await simulation.client.create(MUTATING_ADMISSION_POLICIES, {
        apiVersion: version,
        kind: 'MutatingAdmissionPolicy',
        metadata: { name: 'change' },
        spec: {
          reinvocationPolicy: 'Never',
          failurePolicy: 'Fail',
          matchConstraints: { resourceRules: [matches] },
          mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: `[${change}]` } }],
        },
      });
      await simulation.client.create(MUTATING_ADMISSION_POLICY_BINDINGS, {
        apiVersion: version,
        kind: 'MutatingAdmissionPolicyBinding',
        metadata: { name: 'change' },
        spec: { policyName: 'change' },
      });
    };

    /** Returns the writes of the daemon in the next minutes, except those of events. */
    const writesWithin = async (minutes: number) => {
      const from = simulation.now();
      await simulation.pass(minutes * MINUTE_MS);
      return simulation.server.requests.recent.filter(
        ({ method, info, userAgent, receivedMs }) =>
          userAgent === 'daemon' &&
          method !== 'GET' &&
          info?.resource !== 'events' &&
          info?.resource !== 'leases' &&
          receivedMs >= from,
      );
    };

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
        await mutate(child, path, value);
        await create();
        const where = `${child.kind}${formatPath(path)}: ${value}`;
        const first = await writesWithin(10);
        assert.ok(first.length < 100, `${where}: ${first.length} writes`);
        const later = await writesWithin(10);
        assert.ok(later.length <= 10, `${where}: ${later.length} writes in steady state`);
        if (!formatPath(path).endsWith('image')) continue;
        assert.equal(later.length, 0, where);
        if (resource !== ATS) assert.equal(await readyOf(), 'True', where);
      }
    });
  });
}
