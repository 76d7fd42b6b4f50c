import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { CONFIG_MAPS, NAMESPACES } from '../../src/api/builtin.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { crdController, killAll } from '../support/program.ts';
import type { Program } from '../support/program.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

/** Logged when a cache has a newer resourceVersion than the restored server. */
const RESTORE_DETECTED = /The server lost part of its history/;

const where = process.env['CONTROL_PLANE'] ?? 'embedded';
const skip = ['embedded', 'real', 'cluster'].includes(where) ? false : 'needs its own etcd';

describe('A leader and a standby with their own etcd', { skip }, () => {
  let plane: ControlPlane;
  let etcd: NonNullable<ControlPlane['etcd']>;
  let cluster: TlsCluster;
  let programs: Program[] = [];

  before(async () => {
    // The garbage collector deletes objects whose owners the server has lost.
    plane = await startControlPlane({ cluster: {} });
    assert.ok(plane.etcd);
    ({ etcd } = plane);
  });
  after(() => plane.close());

  const start = (name: string) => {
    const program = crdController(
      [
        `--kubeconfig=${plane.kubeconfigPath}`,
        `--namespaces=${cluster.namespace}`,
        '--controllers=count',
        '--leader-elect',
        `--leader-elect-resource-namespace=${cluster.namespace}`,
        // Retains the lease while the server is stopped.
        '--leader-elect-lease-duration=120s',
        '--leader-elect-renew-deadline=100s',
        '--leader-elect-retry-period=1s',
      ],
      { POD_NAME: name },
    );
    programs.push(program);
    return program;
  };

  /** Starts two programs, of which the first leads, and a Count with `count` Pods. */
  const startScenario = async (count: number) => {
    cluster = await TlsCluster.create(plane);
    await cluster.installCrd();
    programs = [];
    const leader = start('leader');
    await leader.printed(/"Starting workers"/);
    const standby = start('standby');
    await standby.printed(/"New leader elected"/);
    await cluster.applyCount({ count });
    await untilPods(count);
    return { leader, standby };
  };
  afterEach(async () => {
    await killAll(programs);
    await cluster.end();
  });

  const untilPods = (count: number) =>
    cluster.until(`${count} Pods`, async () => {
      const { status } = await cluster.count();
      return status?.replicas === count && (await cluster.pods()).length === count;
    });

  /** Sends writes that advance the revision and do not affect the controller. */
  const writeElsewhere = async (times: number) => {
    const { metadata } = await cluster.client.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: cluster.namespace, generateName: 'elsewhere-' },
    });
    for (let at = 1; at < times; at++) {
      const body = { data: { at: String(at) } };
      await cluster.client.patch(CONFIG_MAPS, metadata, { type: 'merge', body });
    }
  };

  const cases = [{ what: 'with older resourceVersions', lost: 300, later: 0 }];
  // The embedded server restarts faster than any etcd can be restored. Simulations cover a longer outage.
  if (where !== 'embedded') {
    cases.push({ what: 'and has passed the lost resourceVersions', lost: 10, later: 300 });
  }
  for (const { what, lost, later } of cases) {
    it(
      `reconcile the state of an etcd that was restored from a backup ${what}`,
      { timeout: 120_000 },
      async () => {
        const { leader, standby } = await startScenario(3);
        const restore = await etcd.backUp();
        await writeElsewhere(lost);
        await cluster.patchCount({ count: 5 });
        await untilPods(5);
        await restore();
        await writeElsewhere(later + 1);

        if (later === 0)
          await Promise.all([leader.printed(RESTORE_DETECTED), standby.printed(RESTORE_DETECTED)]);
        await untilPods(3);
        await cluster.patchCount({ count: 4 });
        await untilPods(4);
        leader.child.kill('SIGTERM');
        assert.equal((await leader.ended()).code, 0, leader.stderr);
        await standby.printed(/"Starting workers"/);
        await cluster.patchCount({ count: 2 });
        await untilPods(2);
      },
    );
  }

  it('reconcile new objects after etcd was emptied', { timeout: 120_000 }, async () => {
    await startScenario(2);
    await writeElsewhere(100);
    await etcd.wipe();
    // The Lease is gone, too: each of the two may create it.
    await cluster.client.create(NAMESPACES, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: cluster.namespace },
    });
    await cluster.installCrd();
    await cluster.applyCount({ count: 3 });
    await untilPods(3);
    await cluster.patchCount({ count: 1 });
    await untilPods(1);
  });
});
