import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { PODS } from '../../src/api/builtin.ts';
import { fetchMonitorSnapshot } from '../../src/cli/top/snapshot.ts';
import { renderView } from '../../src/cli/top/render.ts';
import { ProgramMonitor } from '../../src/cli/top/program-monitor.ts';
import { WriteFence } from '../../src/client/write-fence.ts';
import { formatPostponement } from '../../src/manager/sync-log.ts';
import { formatCall } from '../../src/manager/sync-history.ts';
import type { KeyHistory } from '../../src/manager/sync-history.ts';
import type { ProcessStatus } from '../../src/serving/debug-pages.ts';
import { formatCause } from '../../src/workqueue/queue-item.ts';
import { ScrapedDaemons } from '../support/scraped-daemons.ts';
import { Simulation } from '../support/simulation.ts';

const ELECTION = {
  name: 'crd-controller',
  namespace: undefined,
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2000,
};

async function pageOf(simulation: Simulation, path: string): Promise<unknown> {
  const { fields } =
    simulation.lines.find(({ message }) => message === 'Listening') ?? assert.fail();
  const answer = await fetch(`http://${String(fields['address'])}${path}`);
  assert.equal(answer.status, 200, path);
  return answer.json();
}

/** One sync in the form that the test compares. */
interface RunSummary {
  readonly causes: readonly string[];
  readonly postponed: readonly string[];
  readonly calls: readonly string[];
  readonly result: string | undefined;
}

describe('The debug pages of a daemon', () => {
  let simulation: Simulation;

  beforeEach(async () => {
    simulation = new Simulation();
    simulation.startCluster();
    await simulation.installCrd();
    simulation.startDaemon(
      { debugBindAddress: '127.0.0.1:0', leaderElection: ELECTION },
      simulation.client,
      {
        client: simulation.client,
        fence: new WriteFence(),
        identity: 'host_1',
        namespace: 'default',
      },
    );
    await simulation.applyCount({ count: 2 });
    await simulation.untilReady(2);
    await simulation.settle();
  });
  afterEach(() => simulation.end());

  const ask = (path: string) => pageOf(simulation, path);

  async function runsOf(key: string): Promise<RunSummary[]> {
    const { controllers } = (await ask(`/debug/why?key=${key}&controller=count`)) as {
      controllers: readonly { state: string; history: KeyHistory }[];
    };
    const [{ state, history } = assert.fail()] = controllers;
    assert.equal(state, 'idle');
    return history.last.map(({ causes, postponed, calls, end }) => ({
      causes: causes.map(formatCause),
      postponed: postponed.map(formatPostponement),
      calls: calls.map(formatCall),
      result: end?.result,
    }));
  }

  const about = (runs: readonly RunSummary[], cause: string) =>
    runs.find(({ causes }) => causes.includes(cause)) ??
    assert.fail(`${cause} is not among ${runs.flatMap(({ causes }) => causes).join('\n')}`);

  it('report the changed field of a WebApp spec or of an owned object as the cause of a sync', async () => {
    await simulation.patchCount({ count: 1 });
    // Later syncs replace this one in the history.
    await simulation.pass(100);
    const scaled = about(
      await runsOf('default/test-count'),
      'Count default/test-count changed: .spec.count',
    );
    assert.equal(scaled.result, 'done');
    assert.ok(
      scaled.calls.includes('delete pods default/test-count-1 ok 0ms'),
      scaled.calls.join(),
    );
    await simulation.client.delete(PODS, simulation.podAt(0));
    await simulation.settle();
    const runs = await runsOf('default/test-count');
    const replacements = runs.filter(({ calls }) =>
      calls.includes('create pods default/test-count-0 ok 0ms'),
    );
    assert.deepEqual(
      replacements.map(({ causes, calls }) => ({ causes, calls })),
      [
        {
          causes: [
            'owned Pod default/test-count-0 changed: .metadata.deletionTimestamp, .metadata.deletionGracePeriodSeconds',
          ],
          calls: [
            'create pods default/test-count-0 ok 0ms',
            'patch counts.demo.mark8s.io/status default/test-count ok 0ms',
          ],
        },
      ],
    );
    const seen = about(runs, 'owned Pod default/test-count-0 deleted');
    assert.deepEqual(seen.calls, ['patch counts.demo.mark8s.io/status default/test-count ok 0ms']);
  });

  it('report the queues, the informers and the leader', async () => {
    const queues = (await ask('/debug/queues')) as Record<string, readonly { key: string }[]>;
    for (const ranking of ['busiest', 'slowest', 'hottest']) {
      assert.deepEqual(
        queues[ranking]?.map(({ key }) => key),
        ['default/test-count'],
        ranking,
      );
    }
    const { election, informers } = (await ask('/debug/status')) as ProcessStatus;
    assert.deepEqual(
      election?.leases.map(({ lease, holder }) => [lease, holder]),
      [['default/crd-controller', 'host_1']],
    );
    assert.equal(election.identity, 'host_1');
    assert.deepEqual(
      informers.map(({ name, state, objects }) => `${name} ${state} ${objects}`).toSorted(),
      ['counts.demo.mark8s.io watching 1', 'pods watching 2'],
    );
  });
});

describe('The debug pages of a daemon with shards', () => {
  it('report the owner of each shard', async () => {
    const simulation = new Simulation();
    try {
      await simulation.installCrd();
      simulation.startDaemon(
        { debugBindAddress: '127.0.0.1:0', leaderElection: { ...ELECTION, shards: 2 } },
        simulation.client,
        {
          client: simulation.client,
          fence: new WriteFence(),
          identity: 'host_1',
          namespace: 'default',
        },
      );
      await simulation.pass(60_000);
      const { election } = (await pageOf(simulation, '/debug/status')) as ProcessStatus;
      assert.deepEqual(
        election?.leases.map(({ lease, holder }) => [lease, holder]),
        [
          ['default/crd-controller-0', 'host_1'],
          ['default/crd-controller-1', 'host_1'],
        ],
      );
    } finally {
      await simulation.end();
    }
  });
});

describe('The live view of a daemon', () => {
  it('shows its queues, workers, informers, keys and leadership', async () => {
    const simulation = new ScrapedDaemons();
    try {
      simulation.startCluster();
      await simulation.installCrd();
      simulation.startScraped('pod-1', {
        config: { controllers: ['count'], debugBindAddress: '127.0.0.1:0' },
      });
      await simulation.applyCount({ count: 2 });
      await simulation.untilReady(2);
      await simulation.pass(60_000);
      const listening = simulation.lines.findLast(({ message }) => message === 'Listening');
      const address = String(listening?.fields['address']);
      const monitor = new ProgramMonitor(address);
      monitor.record(await fetchMonitorSnapshot(address, () => 0, new AbortController().signal));
      const lines = renderView(monitor.view(0), { width: 160, height: Infinity }, false);
      const shown = lines.join('\n');
      assert.match(shown, /^leader for 1m; identity pod-1/m);
      assert.match(shown, /^cpu \d+%, memory \d+MiB, heap \d+MiB, event loop lag p99 \d/m);
      assert.match(shown, /^count +\d+ +\d+ +\d+ +\d+ +\d+ +\d\/10 .* 0\.\d\d +0 +0 +0$/m);
      assert.match(shown, /^pods +watching +1m +2 +\d+s ago/m);
      assert.match(
        shown,
        /^HOTTEST KEY[^]*^default\/test-count +count +\d.*Count default\/test-count changed: \.status/m,
      );
    } finally {
      await simulation.end();
    }
  });
});
