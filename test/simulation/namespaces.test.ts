import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { NAMESPACES, PODS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { Access } from '../support/access.ts';
import { Simulation } from '../support/simulation.ts';
import { countDraft, NAME } from '../support/test-cluster.ts';

/** Delays the events of Pod watches in `namespace` while `gate` returns an unresolved gate. */
function lagging(namespace: string, gate: () => Deferred | undefined) {
  const path = new RegExp(`/namespaces/${namespace}/pods\\?.*watch=true`);
  return (handler: HttpHandler): HttpHandler =>
    async (request) => {
      const response = await handler(request);
      if (!path.test(request.path)) return response;
      async function* late(body: AsyncIterable<Uint8Array>) {
        for await (const chunk of body) {
          await gate()?.promise;
          yield chunk;
        }
      }
      return { ...response, body: late(response.body) };
    };
}

describe('A daemon for two namespaces without permissions in others', () => {
  let simulation: Simulation;
  let access: Access;
  let gate: Deferred | undefined;

  beforeEach(async () => {
    simulation = new Simulation();
    simulation.startCluster();
    for (const name of ['a', 'b', 'c']) {
      await simulation.client.create(NAMESPACES, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name },
      });
    }
    await simulation.installCrd();
    access = new Access(({ namespace = '' }) => ['a', 'b'].includes(namespace));
    gate = undefined;
  });
  afterEach(() => simulation.end());

  const start = () => {
    const slow = lagging('a', () => gate);
    return simulation.startDaemonBehind((handler) => access.around(slow(handler)), {
      namespaces: ['a', 'b'],
    });
  };
  const pods = async (namespace: string) =>
    (await simulation.client.list(PODS, { namespace })).items;
  const untilReadyIn = (namespace: string, count = 3) =>
    simulation.until(`${count} Pods ready in ${namespace}`, async () => {
      const { status } = await simulation.client.get(COUNTS, { namespace, name: NAME });
      return status?.healthy === true && (await pods(namespace)).length === count;
    });
  const apply = (namespace: string) => simulation.client.create(COUNTS, countDraft(namespace));
  const created = (namespace: string) =>
    simulation.server.requests.recent.filter(
      ({ info, userAgent }) =>
        userAgent === 'daemon' &&
        info?.verb === 'create' &&
        info.resource === 'pods' &&
        info.namespace === namespace,
    ).length;
  const linesOf = (message: string) => simulation.lines.filter((line) => line.message === message);

  it('reconciles the Counts of both with one controller, and sends no other requests', async () => {
    start();
    for (const namespace of ['a', 'b', 'c']) await apply(namespace);
    await untilReadyIn('a');
    await untilReadyIn('b');
    await simulation.client.delete(PODS, { namespace: 'b', name: `${NAME}-1` });
    await simulation.pass(1000);
    await untilReadyIn('b');
    assert.equal((await pods('c')).length, 0);
    assert.deepEqual(access.refused, []);
    assert.deepEqual(simulation.errors(), []);
    assert.deepEqual(
      linesOf('Starting controller').map(({ fields }) => fields['controller']),
      ['count'],
    );
  });

  it('delays a key until the cache of its own namespace contains its writes', async () => {
    start();
    await simulation.pass(1000);
    gate = new Deferred();
    await apply('a');
    await apply('b');
    await untilReadyIn('b');
    for (let turn = 0; turn < 5; turn++) {
      const body = { metadata: { labels: { turn: String(turn) } } };
      await simulation.client.patch(
        COUNTS,
        { namespace: 'a', name: NAME },
        { type: 'merge', body },
      );
      await simulation.pass(1000);
    }
    assert.equal(created('a'), 3, 'one sync');
    gate.resolve();
    gate = undefined;
    await untilReadyIn('a');
    assert.deepEqual([created('a'), created('b')], [3, 3]);
  });

  it('names missing permissions, and waits until they are granted', async () => {
    access.isAllowed = ({ namespace }) => namespace === 'a';
    start();
    await apply('a');
    await simulation.pass(15_000);
    assert.deepEqual(
      linesOf('Waiting for caches to sync').map(({ fields }) => [
        fields['caches'],
        fields['forSeconds'],
      ]),
      [
        ['counts.demo.mark8s.io in b', 10],
        ['pods in b', 10],
      ],
    );
    await simulation.pass(30_000);
    assert.deepEqual(
      linesOf('Failed to list')
        .map(({ fields }) => String(fields['fix']).split(',')[0] ?? '')
        .toSorted((a, b) => a.localeCompare(b)),
      [
        'allow jane to list and watch counts.demo.mark8s.io in the namespace b',
        'allow jane to list and watch pods in the namespace b',
        'undefined',
        'undefined',
      ],
    );
    assert.equal((await pods('a')).length, 0);
    access.isAllowed = ({ namespace = '' }) => ['a', 'b'].includes(namespace);
    await untilReadyIn('a');
  });
});

describe('A daemon for all namespaces with permissions in some of them', () => {
  it('reports the missing ClusterRole, and the alternative to name namespaces', async () => {
    const simulation = new Simulation();
    await simulation.installCrd();
    const access = new Access(({ namespace }) => namespace !== undefined);
    simulation.startDaemonBehind(access.around);
    await simulation.pass(30_000);
    const fixes = simulation.lines.flatMap(({ fields }) =>
      'fix' in fields ? [fields['fix']] : [],
    );
    assert.equal(fixes.length, 2);
    for (const fix of fixes) {
      assert.match(String(fix), /create clusterrole .*; or .* namespaces/);
    }
    await simulation.end();
  });
});
