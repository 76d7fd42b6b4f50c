import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { NAMESPACES } from '../../src/api/builtin.ts';
import { CONFIG_MAPS } from '../support/config-maps.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { crdController, killAll } from '../support/program.ts';
import type { Program } from '../support/program.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

/** A cache has reached more than the server has after the restore. */
const NOTICED = /The server lost part of its history/;

const where = process.env['CONTROL_PLANE'] ?? 'embedded';
const skip = ['embedded', 'real', 'cluster'].includes(where)
  ? false
  : 'it needs an etcd of its own';

describe('given a leader and a standby, and an etcd', { skip }, () => {
  let plane: ControlPlane;
  let etcd: NonNullable<ControlPlane['etcd']>;
  let world: TlsCluster;
  let programs: Program[] = [];

  before(async () => {
    // What the server has lost may own what was created for it: that is the garbage collector's.
    plane = await startControlPlane({ cluster: {} });
    assert.ok(plane.etcd);
    ({ etcd } = plane);
  });
  after(() => plane.close());

  const start = (name: string) => {
    const program = crdController(
      [
        `--kubeconfig=${plane.kubeconfigPath}`,
        `--namespaces=${world.namespace}`,
        '--controllers=count',
        '--leader-elect',
        `--leader-elect-resource-namespace=${world.namespace}`,
        // The leader outlives the time in which the server is stopped.
        '--leader-elect-lease-duration=120s',
        '--leader-elect-renew-deadline=100s',
        '--leader-elect-retry-period=1s',
      ],
      { POD_NAME: name },
    );
    programs.push(program);
    return program;
  };

  /** Two programs, of which the first leads, and a Count with as many Pods. */
  const startScenario = async (count: number) => {
    world = await TlsCluster.create(plane);
    await world.installCrd();
    programs = [];
    const leader = start('leader');
    await leader.printed(/"Starting workers"/);
    const standby = start('standby');
    await standby.printed(/"New leader elected"/);
    await world.applyCount({ count });
    await untilPods(count);
    return { leader, standby };
  };
  afterEach(async () => {
    await killAll(programs);
    await world.end();
  });

  const untilPods = (count: number) =>
    world.until(`${count} Pods`, async () => {
      const { status } = await world.count();
      return status?.replicas === count && (await world.pods()).length === count;
    });

  /** Writes that move the revision on, and concern no controller. */
  const writeElsewhere = async (times: number) => {
    const { metadata } = await world.client.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: world.namespace, generateName: 'elsewhere-' },
    });
    for (let at = 1; at < times; at++) {
      const body = { data: { at: String(at) } };
      await world.client.patch(CONFIG_MAPS, metadata, { type: 'merge', body });
    }
  };

  const cases = [{ what: 'whose resourceVersions are older', lost: 300, later: 0 }];
  // The embedded server is back sooner than any etcd can be restored. Simulations have it absent.
  if (where !== 'embedded') {
    cases.push({ what: 'and has passed the lost resourceVersions at once', lost: 10, later: 300 });
  }
  for (const { what, lost, later } of cases) {
    it(
      `restored from a backup ${what}: leader and standby work from the state that is there`,
      { timeout: 120_000 },
      async () => {
        const { leader, standby } = await startScenario(3);
        const restore = await etcd.backUp();
        await writeElsewhere(lost);
        await world.patchCount({ count: 5 });
        await untilPods(5);
        await restore();
        await writeElsewhere(later + 1);

        if (later === 0) await Promise.all([leader.printed(NOTICED), standby.printed(NOTICED)]);
        await untilPods(3);
        await world.patchCount({ count: 4 });
        await untilPods(4);
        leader.child.kill('SIGTERM');
        assert.equal((await leader.ended()).code, 0, leader.stderr);
        await standby.printed(/"Starting workers"/);
        await world.patchCount({ count: 2 });
        await untilPods(2);
      },
    );
  }

  it(
    'wiped clean: the controllers work from nothing, once there is something again',
    { timeout: 120_000 },
    async () => {
      await startScenario(2);
      await writeElsewhere(100);
      await etcd.wipe();
      // The Lease went too: either of the two may create it.
      await world.client.create(NAMESPACES, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: world.namespace },
      });
      await world.installCrd();
      await world.applyCount({ count: 3 });
      await untilPods(3);
      await world.patchCount({ count: 1 });
      await untilPods(1);
    },
  );
});
