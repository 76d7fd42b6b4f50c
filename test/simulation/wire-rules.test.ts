import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { LEASES, PODS } from '../../src/api/builtin.ts';
import type { Client } from '../../src/client/client.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { ScrapedDaemons } from '../support/scraped-daemons.ts';
import { Simulation } from '../support/simulation.ts';

const POD = { namespace: 'default', name: 'x' };
const OWNED = { fieldManager: 'daemon' };

describe('A client that violates a wire rule', () => {
  let simulation: Simulation;
  let daemon: Client;

  beforeEach(async () => {
    simulation = new Simulation();
    daemon = new HttpClient({
      handler: simulation.server.handler,
      server: 'https://simulated',
      clock: simulation.time,
      userAgent: 'daemon',
    });
    await simulation.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: POD,
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  });

  const assertBroken = (rule: RegExp) => assert.rejects(simulation.end(), rule);
  const merge = (metadata: object) => ({ type: 'merge', body: { metadata } }) as const;

  it('a DELETE without a uid precondition is reported', async () => {
    await daemon.delete(PODS, POD, { resourceVersion: '1' }).catch(() => undefined);
    await assertBroken(/deletes without the uid: daemon DELETE .*\/pods\/x/);
  });

  for (const field of ['finalizers', 'ownerReferences', '$deleteFromPrimitiveList/finalizers']) {
    it(`a write to ${field} without a resourceVersion is reported`, async () => {
      const { uid } = (await simulation.client.get(PODS, POD)).metadata;
      await daemon.patch(PODS, POD, merge({ uid, [field]: [] }), OWNED).catch(() => undefined);
      await assertBroken(/without uid and resourceVersion: daemon PATCH/);
    });
  }

  it('a merge patch of a list in the spec without a resourceVersion is reported', async () => {
    const { uid } = (await simulation.client.get(PODS, POD)).metadata;
    const body = { metadata: { uid }, spec: { tolerations: [{ operator: 'Exists' as const }] } };
    await daemon.patch(PODS, POD, { type: 'merge', body }, OWNED).catch(() => undefined);
    await assertBroken(/without uid and resourceVersion: daemon PATCH/);
  });

  it('a JSON patch of finalizers without test operations is reported', async () => {
    const body = [{ op: 'add', path: '/metadata/finalizers', value: ['a.example/b'] }] as const;
    await daemon.patch(PODS, POD, { type: 'json', body }, OWNED);
    await assertBroken(/without uid and resourceVersion/);
  });

  it('a write without a field manager is reported, a read is not', async () => {
    await daemon.raw({
      method: 'POST',
      path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { verb: 'get', resource: 'pods' } },
      },
    });
    simulation.wire.assertKept();
    await daemon.patch(PODS, POD, merge({ labels: { a: 'b' } }));
    await assertBroken(/^.*writes without a field manager: daemon PATCH/s);
  });

  it('a request that is repeated after a 404 is reported, one after a 429 is not', async () => {
    const attempts = simulation.wire.follow({
      ...daemon,
      get: async (resource, at) => {
        await daemon.get(resource, at).catch(() => undefined);
        return daemon.get(resource, at);
      },
    });
    simulation.server.faults.failNext({ verb: 'get', resource: 'pods' }, 429);
    await attempts.get(PODS, POD);
    simulation.wire.assertKept();
    const missing = attempts.get(LEASES, POD);
    await assert.rejects(missing, (error) => isApiError(error, 'notFound'));
    await assertBroken(/get was repeated after 404/);
  });

  it('a request above the rate limit is reported', async () => {
    const limit = { qps: 1, burst: 2 };
    const handler = simulation.wire.limited(simulation.server.handler, limit, simulation.time);
    const unlimited = new HttpClient({
      handler,
      server: 'https://simulated',
      clock: simulation.time,
    });
    for (const waitMs of [0, 0, 1000, 0]) {
      await simulation.pass(waitMs);
      simulation.wire.assertKept();
      await unlimited.get(PODS, POD);
    }
    await assertBroken(/beyond the rate limit/);
  });
});

describe('A daemon with a client-side rate limit', () => {
  let simulation: Simulation;

  beforeEach(async () => {
    simulation = new Simulation();
    simulation.startCluster();
    await simulation.installCrd();
  });
  afterEach(() => simulation.end());

  it('applies the limit to retries', async () => {
    simulation.startDaemon(
      { concurrentSyncs: new Map() },
      simulation.limitedClient({ qps: 4, burst: 4 }),
    );
    await simulation.pass(5000);
    const creation = { verb: 'create', resource: 'pods' };
    simulation.server.faults.failNext(creation, 429, { times: 12, retryAfterSeconds: 1 });
    await simulation.applyCount({ count: 12 });
    await simulation.untilReady(12);
  });
});

describe('A daemon whose server takes 300 ms for each response', () => {
  it('measures durations in seconds', async () => {
    const simulation = new ScrapedDaemons();
    simulation.startCluster();
    await simulation.installAll();
    await simulation.applyExamples();
    simulation.server.faults.beforeRequest(({ userAgent }) =>
      userAgent === 'test' ? undefined : simulation.sleep(300),
    );
    simulation.startScraped('a', { qps: 2 });
    // A scrape compares each duration with the elapsed time.
    await simulation.passScraped(120_000);
    const text = simulation.scrapes.at(-1)?.text ?? '';
    for (const name of [
      'rest_client_request_duration_seconds',
      'rest_client_rate_limiter_duration_seconds',
      'controller_runtime_reconcile_time_seconds',
      'workqueue_work_duration_seconds',
      'workqueue_queue_duration_seconds',
      'reflector_list_duration_seconds',
    ]) {
      const sums = [...text.matchAll(new RegExp(`^${name}_sum.* (\\S+)$`, 'gm'))];
      assert.ok(
        sums.some(([, sum]) => Number(sum) > 0.1),
        `${name} has observations`,
      );
    }
    await simulation.end();
  });
});
