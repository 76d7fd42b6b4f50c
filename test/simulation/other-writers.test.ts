import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { parseTarget, requestInfo } from '../../src/apiserver/request/request-info.ts';
import { PODS } from '../../src/api/builtin.ts';
import type { Condition } from '../../src/api/conditions.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import { isApiError } from '../../src/api/api-error.ts';
import type { Resource } from '../../src/api/resource.ts';
import { AT_FINALIZER as RECORDED } from '../../src/controllers/at/pod.ts';
import { WEB_APP_FINALIZER } from '../../src/controllers/webapp/owned-objects.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { KINDS, SampleObject } from '../support/kinds.ts';
import { Simulation } from '../support/simulation.ts';

const OTHER_FINALIZER = 'a.example/theirs';

describe('Objects with concurrent writers', () => {
  let simulation: Simulation;
  let lateWrites: number;

  beforeEach(() => {
    simulation = new Simulation();
    simulation.startCluster();
    lateWrites = 0;
  });
  afterEach(() => simulation.end());

  const kindOf = (resource: Resource) => {
    const kind = KINDS.find((one) => one.resource === resource);
    assert.ok(kind);
    return new SampleObject(simulation, kind);
  };
  /** Adds the finalizer of another controller just before each write that does not contain it. */
  const addingFinalizer =
    (resource: Resource, name: string) =>
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      const info = requestInfo(request.method, parseTarget(request.path));
      const isOfFinalizers = String(request.body).includes('finalizers');
      if (request.method === 'PATCH' && info?.resource === resource.plural && isOfFinalizers) {
        const at = { namespace: simulation.namespace, name };
        const { metadata } = await simulation.client.get(resource, at);
        const { finalizers = [], deletionTimestamp } = metadata;
        if (!finalizers.includes(OTHER_FINALIZER) && deletionTimestamp === undefined) {
          lateWrites++;
          const body = { metadata: { finalizers: [...finalizers, OTHER_FINALIZER] } };
          await simulation.client.patch(resource, at, { type: 'merge', body });
        }
      }
      return handler(request);
    };
  const removeTheirs = async (resource: Resource, name: string) => {
    const at = { namespace: simulation.namespace, name };
    const { metadata } = await simulation.client.get(resource, at);
    const finalizers = (metadata.finalizers ?? []).filter((one) => one !== OTHER_FINALIZER);
    await simulation.client.patch(resource, at, {
      type: 'merge',
      body: { metadata: { finalizers } },
    });
  };
  const untilGone = (resource: Resource, name: string) =>
    simulation.until(`${resource.kind} ${name} is gone`, async () => {
      try {
        await simulation.client.get(resource, { namespace: simulation.namespace, name });
        return false;
      } catch (error) {
        if (isApiError(error, 'notFound')) return true;
        throw error;
      }
    });

  it('keeps a finalizer that is added just before the finalizer of a WebApp, until its deletion', async () => {
    const object = kindOf(WEB_APPS);
    await object.install();
    simulation.startDaemonBehind(addingFinalizer(WEB_APPS, 'x'), { controllers: ['webapp'] });
    await object.create();
    await object.untilDone();
    assert.equal(lateWrites, 1);
    const { finalizers = [] } = (await object.get()).metadata;
    assert.deepEqual(finalizers.toSorted(), [OTHER_FINALIZER, WEB_APP_FINALIZER]);
    await simulation.client.delete(WEB_APPS, object.at);
    await simulation.settle();
    assert.deepEqual((await object.get()).metadata.finalizers, [OTHER_FINALIZER]);
    await removeTheirs(WEB_APPS, 'x');
    await untilGone(WEB_APPS, 'x');
  });

  it('keeps a finalizer that is added just before the Pod of an At is released', async () => {
    const object = kindOf(ATS);
    await object.install();
    simulation.startDaemonBehind(addingFinalizer(PODS, 'x-pod'), { controllers: ['at'] });
    await object.create({ command: 'sleep 3600' });
    await simulation.until('the controller was about to release it', async () => lateWrites === 1);
    await simulation.settle();
    const pod = await simulation.client.get(PODS, { ...object.at, name: 'x-pod' });
    assert.deepEqual(pod.metadata.finalizers, [OTHER_FINALIZER]);
    assert.ok(!pod.metadata.finalizers?.includes(RECORDED));
  });

  for (const kind of KINDS) {
    it(`keeps a condition of another writer on a ${kind.resource.kind}, unchanged and in its position`, async () => {
      const object = new SampleObject(simulation, kind);
      await object.install();
      const stop = simulation.startDaemon({ controllers: [kind.controller] });
      await object.create();
      await object.untilDone();
      await stop();
      const theirs: Condition = {
        type: 'Example',
        status: 'Unknown',
        observedGeneration: 1,
        lastTransitionTime: '2025-01-01T00:00:00Z',
        reason: 'Theirs',
        message: 'the other controller’s value',
      };
      const { status, metadata } = await object.get();
      const conditions = [theirs, ...(status?.conditions ?? [])];
      // Its own conditions are outdated, so that the controller writes the status.
      const outdated = conditions.map((condition) =>
        condition === theirs ? theirs : { ...condition, reason: 'Outdated' },
      );
      const body = { metadata: { uid: metadata.uid }, status: { conditions: outdated } };
      const isOver = kind.resource === ATS ? { phase: 'RUNNING' } : {};
      await simulation.client.patch(
        kind.resource,
        object.at,
        { type: 'merge', body: { ...body, status: { ...body.status, ...isOver } } },
        { subresource: 'status' },
      );
      simulation.startDaemon({ controllers: [kind.controller] });
      await simulation.settle();
      const after = (await object.get()).status?.conditions ?? [];
      assert.deepEqual(after[0], theirs);
      assert.ok(!after.some(({ reason }) => reason === 'Outdated'));
      assert.deepEqual(
        after.map(({ type }) => type),
        conditions.map(({ type }) => type),
      );
    });
  }
});
