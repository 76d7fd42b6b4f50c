import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { parseTarget, requestInfo } from '../../src/apiserver/request/request-info.ts';
import { DEPLOYMENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import { AT_FINALIZER as RECORDED } from '../../src/controllers/at/pod.ts';
import type { HttpHandler, HttpRequest } from '../../src/util/http.ts';
import { createNamesake, KINDS, SampleObject } from '../support/kinds.ts';
import type { Kind, Subject } from '../support/kinds.ts';
import { Simulation } from '../support/simulation.ts';

/** A write of a controller to an object that it owned when it was last cached. */
interface LateWrite {
  readonly controller: string;
  readonly does: string;
  readonly method: 'PATCH' | 'DELETE';
  /** Distinguishes several patches. */
  readonly type?: 'apply-patch' | 'json-patch';
  readonly resource: Resource;
  readonly name: string;
  readonly cause: (object: SampleObject, simulation: Simulation) => Promise<unknown>;
}

const LATE_WRITES: readonly LateWrite[] = [
  {
    controller: 'count',
    does: 'deletes a surplus Pod',
    method: 'DELETE',
    resource: PODS,
    name: 'x-1',
    cause: (object) => object.patch({ count: 1 }),
  },
  {
    controller: 'count',
    does: 'deletes a Pod with an outdated image',
    method: 'DELETE',
    resource: PODS,
    name: 'x-1',
    cause: (object) => object.patch({ name: 'nginx:2' }),
  },
  {
    controller: 'webapp',
    does: 'changes its Deployment',
    method: 'PATCH',
    type: 'apply-patch',
    resource: DEPLOYMENTS,
    name: 'x',
    cause: (object) => object.patch({ replicas: 2 }),
  },
  {
    controller: 'webapp',
    does: 'changes its Deployment',
    method: 'PATCH',
    type: 'json-patch',
    resource: DEPLOYMENTS,
    name: 'x',
    cause: (object) => object.patch({ replicas: 2 }),
  },
  {
    controller: 'webapp',
    does: 'changes its Service',
    method: 'PATCH',
    type: 'apply-patch',
    resource: SERVICES,
    name: 'x',
    cause: (object) => object.patch({ version: '1.28' }),
  },
  {
    controller: 'webapp',
    does: 'changes its Service',
    method: 'PATCH',
    type: 'json-patch',
    resource: SERVICES,
    name: 'x',
    cause: (object) => object.patch({ version: '1.28' }),
  },
  {
    controller: 'webapp',
    does: 'deletes its Deployment',
    method: 'DELETE',
    resource: DEPLOYMENTS,
    name: 'x',
    cause: ({ kind, at }, simulation) => simulation.client.delete(kind.resource, at),
  },
  {
    controller: 'webapp',
    does: 'deletes its Service',
    method: 'DELETE',
    resource: SERVICES,
    name: 'x',
    cause: ({ kind, at }, simulation) => simulation.client.delete(kind.resource, at),
  },
  {
    controller: 'foo',
    does: 'changes its Deployment',
    method: 'PATCH',
    type: 'apply-patch',
    resource: DEPLOYMENTS,
    name: 'x-site',
    cause: (object) => object.patch({ replicas: 2 }),
  },
  {
    controller: 'foo',
    does: 'changes its Deployment',
    method: 'PATCH',
    type: 'json-patch',
    resource: DEPLOYMENTS,
    name: 'x-site',
    cause: (object) => object.patch({ replicas: 2 }),
  },
  {
    controller: 'foo',
    does: 'deletes the Deployment of its previous deploymentName',
    method: 'DELETE',
    resource: DEPLOYMENTS,
    name: 'x-site',
    cause: (object) => object.patch({ deploymentName: 'other' }),
  },
  {
    controller: 'at',
    does: 'releases its Pod',
    method: 'PATCH',
    resource: PODS,
    name: 'x-pod',
    cause: (object) => object.create(),
  },
];

const kindOf = (controller: string): Kind => {
  const kind = KINDS.find((one) => one.controller === controller);
  assert.ok(kind);
  return kind;
};

describe('A cache that shows an object which was replaced by another one of the same name', () => {
  let simulation: Simulation;
  /** Response codes of the outdated writes. */
  let answers: number[];

  beforeEach(() => {
    simulation = new Simulation();
    simulation.startCluster();
    answers = [];
  });
  afterEach(() => simulation.end());

  /** Calls `replace` just before the first matching write, and records the response. */
  const replacing =
    (matches: (request: HttpRequest) => boolean, replace: () => Promise<unknown>) =>
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      if (answers.length > 0 || !matches(request)) return handler(request);
      answers.push(0);
      await replace();
      const response = await handler(request);
      answers[0] = response.status;
      return response;
    };
  const isWrite = (method: string, resource: Resource, name: string, subresource?: string) => {
    return (request: HttpRequest) => {
      const info = requestInfo(request.method, parseTarget(request.path));
      return (
        request.method === method &&
        info?.resource === resource.plural &&
        info.name === name &&
        info.subresource === subresource
      );
    };
  };
  /** Deletes an object at once, without its finalizers. */
  const remove = async (resource: Resource, name: string) => {
    const at = { namespace: simulation.namespace, name };
    const body = { metadata: { finalizers: [] } };
    await simulation.client.patch(resource, at, { type: 'merge', body });
    const options = { gracePeriodSeconds: 0, propagationPolicy: 'Background' } as const;
    await simulation.client.delete(resource, at, options);
  };

  for (const { controller, does, method, type, resource, name, cause } of LATE_WRITES) {
    const kind = kindOf(controller);
    const how = type === undefined ? '' : `, by ${type},`;

    it(`a ${kind.resource.kind} that ${does}${how} leaves the new ${resource.kind} unchanged`, async () => {
      const object = new SampleObject(simulation, kind);
      await object.install();
      let namesake: KubernetesObject | undefined;
      const isLate = (request: HttpRequest) =>
        isWrite(method, resource, name)(request) &&
        (request.headers['content-type']?.includes(type ?? '') ?? false);
      const around = replacing(isLate, async () => {
        const old: Subject = await simulation.client.get(resource, { ...object.at, name });
        await remove(resource, name);
        // The new object has what the controller would change or remove, and accepts an apply.
        const { nodeName: _, clusterIP: __, clusterIPs: ___, ...spec } = old.spec ?? {};
        const metadata = { finalizers: [RECORDED] };
        namesake = await createNamesake(simulation, resource, name, { metadata, spec });
      });
      simulation.startDaemonBehind(around, { controllers: [controller] });
      if (controller !== 'at') {
        await object.create();
        await object.untilDone();
        await simulation.settle();
      }
      await cause(object, simulation);
      await simulation.until('the write is late', async () => (answers[0] ?? 0) > 0);
      assert.ok([404, 409, 422].includes(answers[0] ?? 0), `the response was ${answers[0]}`);
      await simulation.pass(60_000);
      const at = { namespace: simulation.namespace, name };
      const after = await simulation.client.get(resource, at);
      const contentOf = (one: KubernetesObject | undefined) => {
        const { metadata, spec } = one as KubernetesObject & { spec: Record<string, unknown> };
        const { uid, labels, ownerReferences, finalizers, deletionTimestamp } = metadata;
        const { nodeName: _, ...rest } = spec;
        return { uid, labels, ownerReferences, finalizers, deletionTimestamp, spec: rest };
      };
      assert.deepEqual(contentOf(after), contentOf(namesake));
    });
  }

  for (const kind of KINDS) {
    it(`the status of a ${kind.resource.kind} is not written to a new object of the same name, which is synced`, async () => {
      const object = new SampleObject(simulation, kind);
      await object.install();
      let uid: string | undefined;
      const around = replacing(isWrite('PATCH', kind.resource, 'x', 'status'), async () => {
        await remove(kind.resource, 'x');
        const { metadata } = await object.create();
        uid = metadata.uid;
      });
      simulation.startDaemonBehind(around, { controllers: [kind.controller] });
      await object.create();
      await object.untilDone();
      assert.ok([404, 409, 422].includes(answers[0] ?? 0), `the response was ${answers[0]}`);
      await simulation.settle();
      for (const { resource, name } of kind.owned) {
        const { metadata } = await simulation.client.get(resource, { ...object.at, name });
        assert.equal(metadata.ownerReferences?.[0]?.uid, uid, `${resource.kind} ${name}`);
      }
    });
  }
});

describe('A name collision with an object without owners', () => {
  for (const kind of KINDS) {
    for (const { resource, name } of kind.owned) {
      it(`a ${kind.resource.kind} creates its ${resource.kind} as soon as the name is free`, async () => {
        const simulation = new Simulation();
        simulation.startCluster();
        const object = new SampleObject(simulation, kind);
        await object.install();
        await createNamesake(simulation, resource, name);
        simulation.startDaemon({ controllers: [kind.controller] });
        await object.create();
        await simulation.until('the object is stalled', () => object.has('Stalled'));
        // The next retry would be minutes later.
        await simulation.pass(1_240_000);
        const namesake = await simulation.client.get(resource, { ...object.at, name });
        assert.equal(namesake.metadata.ownerReferences, undefined);
        await simulation.client.delete(resource, namesake.metadata, { gracePeriodSeconds: 0 });
        await object.untilDone();
        await simulation.end();
      });
    }
  }
});
