import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { LEASES } from '../../../../src/api/builtin.ts';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import type { ManagerConfig } from '../../../../src/cli/commands/run.ts';
import type { HttpHandler } from '../../../../src/util/http.ts';
import { LEADER_ELECTION, Replicas } from '../../../support/replicas.ts';
import { Simulation } from '../../../support/simulation.ts';
import { countDraft } from '../../../support/test-cluster.ts';

/** Effects of flags of `run` that no other test covers. */
describe('a daemon with', () => {
  let simulation: Simulation;
  const requests: string[] = [];
  const recorded =
    (handler: HttpHandler): HttpHandler =>
    (request) => {
      requests.push(`${request.method} ${request.path}`);
      return handler(request);
    };
  const start = async (config: Partial<ManagerConfig>) => {
    requests.length = 0;
    simulation = new Simulation();
    simulation.startCluster();
    await simulation.installCrd();
    return simulation.startDaemonBehind(recorded, config);
  };
  afterEach(() => simulation.end());

  describe('--watch-label-selector=team=a', () => {
    it('reconciles objects with the label, and their Pods without it', async () => {
      await start({ labelSelector: 'team=a' });
      for (const team of ['a', 'b']) {
        const draft = countDraft(simulation.namespace, { count: 2 }, `of-${team}`);
        await simulation.client.create(COUNTS, {
          ...draft,
          metadata: { ...draft.metadata, labels: { team } },
        });
      }
      await simulation.until(
        'the Pods of one',
        async () => (await simulation.podNames()).length === 2,
      );
      await simulation.settle();
      assert.deepEqual(await simulation.podNames(), ['of-a-0', 'of-a-1']);
      const { status } = await simulation.client.get(COUNTS, { ...simulation.at, name: 'of-a' });
      assert.equal(status?.readyReplicas, 2);
    });

    it('stops reconciling an object that loses the label, and keeps its Pods', async () => {
      await start({ labelSelector: 'team=a' });
      const draft = countDraft(simulation.namespace, { count: 1 });
      await simulation.client.create(COUNTS, {
        ...draft,
        metadata: { ...draft.metadata, labels: { team: 'a' } },
      });
      await simulation.untilReady(1);
      const body = { metadata: { labels: { team: null } }, spec: { count: 3 } };
      await simulation.client.patch(COUNTS, simulation.at, { type: 'merge', body });
      await simulation.settle();
      assert.equal((await simulation.pods()).length, 1);
    });
  });

  describe('--feature-gates=WatchListClient', () => {
    const streamed = () => requests.filter((request) => request.includes('sendInitialEvents=true'));

    it('=true: caches are filled by watches', async () => {
      await start({ features: { WatchListClient: true } });
      await simulation.settle();
      assert.equal(streamed().length, 2);
    });

    it('=false: they are filled by lists', async () => {
      await start({ features: { WatchListClient: false } });
      await simulation.settle();
      assert.deepEqual(streamed(), []);
      assert.ok(requests.some((request) => /GET .*\/pods\?(?!.*watch=)/.test(request)));
      await simulation.applyCount({ count: 1 });
      await simulation.untilReady(1);
    });
  });
});

describe('a leader with', () => {
  for (const [releaseOnCancel, holder] of [
    [true, ''],
    [false, 'a'],
  ] as const) {
    it(`--leader-elect-release-on-cancel=${releaseOnCancel} releases or keeps the Lease`, async () => {
      const simulation = new Replicas();
      await simulation.installCrd();
      const leaderElection = { ...LEADER_ELECTION, releaseOnCancel };
      const replica = simulation.startReplica('a', { config: { leaderElection } });
      await simulation.until('it leads', async () => replica.mayWrite);
      replica.stop();
      await simulation.until('it has ended', async () => replica.ending !== undefined);
      const at = { namespace: 'default', name: 'crd-controller' };
      const { spec } = await simulation.client.get(LEASES, at);
      assert.equal(spec?.holderIdentity ?? '', holder);
      await simulation.end();
    });
  }
});
