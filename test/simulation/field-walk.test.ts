import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import type { Condition } from '../../src/api/conditions.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import type { Resource } from '../../src/api/resource.ts';
import { candidates, edgeValues } from '../support/field-values.ts';
import type { FieldSchema } from '../support/field-values.ts';
import { Simulation } from '../support/simulation.ts';
import { crdOf } from '../support/test-cluster.ts';

interface Kind {
  readonly controller: string;
  readonly resource: Resource;
  readonly children: readonly Resource[];
  /** Returns a spec with the required fields, for the object of this name. */
  readonly base: (name: string) => Readonly<Record<string, unknown>>;
  /** Fields that make the object create owned objects immediately. */
  readonly now?: Readonly<Record<string, unknown>>;
  /** Fields without an immediate effect on owned objects. */
  readonly unseen?: readonly string[];
}

const KINDS: readonly Kind[] = [
  {
    controller: 'count',
    resource: COUNTS,
    children: [PODS],
    base: () => ({ name: 'nginx' }),
  },
  {
    controller: 'webapp',
    resource: WEB_APPS,
    children: [DEPLOYMENTS, SERVICES],
    base: () => ({ version: '1.27', replicas: 0 }),
  },
  {
    controller: 'foo',
    resource: FOOS,
    children: [DEPLOYMENTS],
    base: (name) => ({ deploymentName: name }),
  },
  {
    controller: 'at',
    resource: ATS,
    children: [PODS],
    base: () => ({ schedule: '2030-01-01T00:00:00Z', command: 'true' }),
    now: { schedule: '2025-01-01T00:00:00Z' },
    unseen: ['schedule', 'command'],
  },
];

type Subject = KubernetesObject & {
  spec?: Record<string, unknown>;
  status?: { observedGeneration?: number; conditions?: Condition[] };
};

const HOUR_MS = 3_600_000;

for (const kind of KINDS) {
  const { resource, children, controller, base } = kind;
  const fields = fieldsOf(resource);

  describe(`Every field of the spec of a ${resource.kind}`, () => {
    let simulation: Simulation;

    beforeEach(() => {
      simulation = new Simulation();
      simulation.startCluster();
    });
    afterEach(() => simulation.end());

    const at = (name: string) => ({ namespace: 'default', name });
    const get = (name: string) => simulation.client.get<Subject>(resource, at(name));
    const create = (name: string, spec: unknown) => {
      const { group, version } = resource;
      const metadata = at(name);
      const draft = { apiVersion: `${group}/${version}`, kind: resource.kind, metadata, spec };
      return simulation.client.create(resource, draft);
    };
    /** Returns whether the server accepts the write. */
    const accepts = async (write: () => Promise<unknown>) => {
      try {
        await write();
        return true;
      } catch (error) {
        if (!isApiError(error, 'invalid', 'badRequest')) throw error;
        return false;
      }
    };
    const childrenOf = async (name: string) => {
      const lists = await Promise.all(
        children.map((child) => simulation.client.list(child, { namespace: 'default' })),
      );
      return lists
        .flatMap(({ items }): KubernetesObject[] => items)
        .filter((child) => controllerOf(child)?.name === name);
    };
    /** Returns the parts of the owned objects that depend on the owner. */
    const shapeOf = async (name: string) =>
      (await childrenOf(name))
        .map((child) => {
          const { metadata, spec } = child as Subject;
          const { nodeName: _, clusterIP: __, clusterIPs: ___, ...rest } = spec ?? {};
          return JSON.stringify([metadata.name, metadata.labels, rest]);
        })
        .toSorted();
    const settled = async (name: string) => {
      await simulation.settle();
      const { metadata, status } = await get(name);
      assert.equal(status?.observedGeneration, metadata.generation);
      return shapeOf(name);
    };

    it('applies a field that is added, changed, removed or rolled back, without side effects', async () => {
      await simulation.installCrd(resource, ...children);
      simulation.startDaemon({ controllers: [controller] });
      await create('bystander', base('bystander'));
      const original = base('x');
      await create('x', original);
      const shape = await settled('x');
      const bystanders = async () => [await get('bystander'), ...(await childrenOf('bystander'))];
      const before = JSON.stringify(await bystanders());
      const replace = (spec: object) =>
        simulation.client.patch(resource, at('x'), {
          type: 'json',
          body: [{ op: 'replace', path: '/spec', value: spec }],
        });
      for (const [field, schema] of fields) {
        const shapes = new Set<string>([String(shape)]);
        let accepted = 0;
        for (const value of candidates(schema)) {
          if (value === original[field]) continue;
          if (!(await accepts(() => replace({ ...original, [field]: value })))) continue;
          shapes.add(String(await settled('x')));
          if (++accepted === 2) break;
        }
        assert.equal(accepted, 2, `two valid values of ${field}`);
        if (!kind.unseen?.includes(field)) assert.equal(shapes.size, 3, `${field} has an effect`);
        const { [field]: _, ...without } = original;
        if (await accepts(() => replace(without))) await settled('x');
        await replace(original);
        assert.deepEqual(await settled('x'), shape, `${field} rolled back`);
      }
      assert.equal(JSON.stringify(await bystanders()), before);
      assert.deepEqual(simulation.errors(), []);
    });

    /**
     * Waits for an hour. Then each object in `names` has at most `mostErrors` logged errors and a
     * condition that explains them.
     */
    const assertAtRest = async (names: ReadonlyMap<string, unknown>, mostErrors = 1) => {
      await simulation.pass(HOUR_MS);
      const failures = new Map<unknown, number>();
      for (const { level, fields: logged } of simulation.lines) {
        if (level !== 'error') continue;
        const key = logged[resource.kind.charAt(0).toLowerCase() + resource.kind.slice(1)];
        failures.set(key, (failures.get(key) ?? 0) + 1);
      }
      for (const [name, value] of names) {
        const shown = JSON.stringify(value)?.slice(0, 80);
        const count = failures.get(`default/${name}`) ?? 0;
        assert.ok(count <= mostErrors, `${shown}: ${count} errors\n${simulation.errors().at(-1)}`);
        const { status, metadata } = await get(name);
        assert.equal(status?.observedGeneration, metadata.generation, `${shown} was synced`);
        const is = (type: string) =>
          status?.conditions?.some((one) => one.type === type && one.status === 'True') ?? false;
        const waits = resource === ATS && is('Reconciling');
        assert.ok(is('Ready') || is('Stalled') || waits, `${shown}: ${JSON.stringify(status)}`);
      }
    };

    /**
     * Creates an object for each edgeValues value of each field, and returns those that the server
     * stored.
     */
    const createDoubtful = async () => {
      const stored = new Map<string, unknown>();
      let number = 0;
      const attempt = async (name: string, spec: unknown, value: unknown) => {
        if (await accepts(() => create(name, spec))) stored.set(name, value);
      };
      for (const [field, schema] of fields) {
        for (const value of edgeValues(schema)) {
          const name = `${field.toLowerCase()}-${number++}`;
          await attempt(name, { ...base(name), [field]: value }, { [field]: value });
        }
        const { [field]: _, ...without } = base(`without-${field.toLowerCase()}`);
        await attempt(`without-${field.toLowerCase()}`, without, `no ${field}`);
      }
      for (const spec of [undefined, null, 'x', [], {}]) {
        await attempt(`spec-${number++}`, spec, { spec });
      }
      for (const length of [63, 64, 200, 253]) {
        const name = 'long.'.padEnd(length, 'x');
        await attempt(name, base('long'.padEnd(length, 'y')), length);
      }
      return stored;
    };

    it('reports an invalid value once, and does not retry it indefinitely', async () => {
      await simulation.installCrd(resource, ...children);
      simulation.startDaemon({ controllers: [controller] });
      const stored = await createDoubtful();
      await assertAtRest(stored);
      await create('good', base('good'));
      assert.equal((await settled('good')).length > 0, resource !== ATS);
    });

    it('reports a rejection by the server once, retries it slowly, and retries it at once after a change', async () => {
      await simulation.installCrd(resource, ...children);
      simulation.startDaemon({ controllers: [controller] });
      const [child] = children;
      assert.ok(child);
      const creation = { verb: 'create', resource: child.plural };
      simulation.server.faults.failNext(creation, 422, { times: Infinity });
      await create('x', { ...base('x'), ...kind.now });
      // Retries from 5 s to 5 min, and one attempt for its own status update.
      await assertAtRest(new Map([['x', 'rejected by the server']]), 19);
      const stalled = (await get('x')).status?.conditions?.some(({ type }) => type === 'Stalled');
      assert.equal(stalled, true);
      simulation.server.faults.clear();
      const body = { metadata: { annotations: { touched: 'yes' } } };
      await simulation.client.patch(resource, at('x'), { type: 'merge', body });
      await settled('x');
      assert.ok((await childrenOf('x')).length > 0);
    });

    it('reports an invalid value once that was stored before the CRD validated it', async () => {
      const crd = crdOf(resource);
      const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
      for (const version of crd.spec.versions) version.schema = { openAPIV3Schema: open };
      await simulation.client.create(CUSTOM_RESOURCE_DEFINITIONS, crd);
      simulation.startDaemon({ controllers: [controller] });
      const stored = await createDoubtful();
      assert.ok(stored.size > 12 * fields.length, 'most were stored');
      await assertAtRest(stored);
    });
  });
}

function fieldsOf(resource: Resource): [string, FieldSchema][] {
  const [version] = crdOf(resource).spec.versions;
  const { spec } = version?.schema?.openAPIV3Schema?.properties ?? {};
  return Object.entries(spec?.properties ?? {});
}
