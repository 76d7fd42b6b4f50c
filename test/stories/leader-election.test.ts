import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EVENTS, LEASES, PODS } from '../../src/api/builtin.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { recordInformer } from '../support/recorded-informer.ts';
import { crdController, killAll } from '../support/program.ts';
import type { Program } from '../support/program.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

/** Enough objects for a sync that takes some time. */
const MANY = 100;

const STOP_MID_SYNC = import.meta.resolve('../support/stop-mid-sync.ts');

/** Pauses a leader with SIGSTOP, as a frozen machine or a very long garbage collection does. */
describe('Two processes, one of which leads', { timeout: 60_000 }, () => {
  let controlPlane: ControlPlane;
  let cluster: TlsCluster;
  const programs: Program[] = [];

  before(async () => {
    controlPlane = await startControlPlane();
    cluster = await TlsCluster.create(controlPlane);
    await cluster.installCrd();
  });
  after(async () => {
    await killAll(programs);
    await cluster.end();
    await controlPlane.close();
  });

  const start = (name: string) => {
    const program = crdController(
      [
        `--kubeconfig=${controlPlane.kubeconfigPath}`,
        `--namespaces=${cluster.namespace}`,
        '--controllers=count',
        '--leader-elect',
        `--leader-elect-resource-namespace=${cluster.namespace}`,
        '--leader-elect-lease-duration=2s',
        '--leader-elect-renew-deadline=1700ms',
        '--leader-elect-retry-period=400ms',
        '--vmodule=sync-barrier=2',
      ],
      { POD_NAME: name, NODE_OPTIONS: `--import=${STOP_MID_SYNC}` },
    );
    programs.push(program);
    return program;
  };

  it('a leader that is paused during a sync and resumed after its lease expired sends no writes and exits with code 1', async (context) => {
    const both = [start('one'), start('other')];
    const isLeader = ({ stderr }: Program) => stderr.includes('"Successfully acquired lease"');
    for (const each of both) {
      await each.printed(/"New leader elected"|"Caches have caught up(.*\n)*.*"Starting workers"/);
    }
    const [zombie, heir] = both.toSorted((x, y) => Number(isLeader(y)) - Number(isLeader(x)));
    assert.ok(zombie && heir && isLeader(zombie) && !isLeader(heir));

    const { config } = controlPlane;
    const { received, stop } = await recordInformer(
      config,
      PODS,
      cluster.namespace,
      (pod) => pod.status?.phase,
    );
    context.after(stop);
    const added = () => received.filter((line) => line.startsWith('add ')).length;
    await cluster.applyCount({ count: MANY });
    await zombie.printed(/Stopped in the middle of a sync/);
    await cluster.patchCount({ count: 2 });
    await heir.printed(/"Caches have caught up with the server"(.*\n)*.*"Starting workers"/);
    await cluster.until(
      'the new leader has synced',
      async () => (await cluster.pods()).length === 2,
    );
    assert.equal(added(), 3, 'paused during the sync');
    zombie.child.kill('SIGCONT');
    const { code, stderr } = await zombie.ended();
    assert.equal(code, 1, stderr);
    assert.match(stderr, /\nError: leader election lost: lease .*\n$/);
    await cluster.pass(300);
    assert.equal(added(), 3, 'no further Pods');
    assert.equal((await cluster.pods()).length, 2);

    heir.child.kill('SIGTERM');
    assert.equal((await heir.ended()).code, 0, heir.stderr);
    const lease = { namespace: cluster.namespace, name: 'crd-controller' };
    assert.equal((await cluster.client.get(LEASES, lease)).spec?.holderIdentity ?? '', '');
    const { items } = await cluster.client.list(EVENTS, { namespace: cluster.namespace });
    const leaseEvents = items.filter(({ involvedObject }) => involvedObject.kind === 'Lease');
    const about = (what: RegExp) =>
      leaseEvents.filter(({ message }) => what.test(message ?? '')).length;
    assert.deepEqual([about(/became leader$/), about(/stopped leading$/)], [2, 1]);
  });
});
