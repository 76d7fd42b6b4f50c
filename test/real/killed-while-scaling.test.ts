import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PODS } from '../../src/api/builtin.ts';
import type { Pod } from '../../src/api/builtin.ts';
import type { DeepReadonly } from '../../src/api/object.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { recordInformer } from '../support/recorded-informer.ts';
import { needsReal } from '../support/skip.ts';
import { TlsCluster } from '../support/tls-cluster.ts';
import { NAME } from '../support/test-cluster.ts';

/** Enough Pods for a sync that takes some time. */
const MANY = 40;

const skip = needsReal('a kube-apiserver to end');

/**
 * The test starts its own control plane. After each outage within two minutes, the scheduler and the
 * kubelet of this cluster wait longer before they reconnect: up to a minute after the fourth.
 */
describe('A Count on a real control plane', { skip, timeout: 240_000 }, () => {
  let plane: ControlPlane;
  let processes: NonNullable<ControlPlane['processes']>;
  let cluster: TlsCluster;

  before(async () => {
    plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 0 } } });
    assert.ok(plane.processes);
    ({ processes } = plane);
    cluster = await TlsCluster.create(plane);
  });
  after(async () => {
    await cluster.end();
    await plane.close();
  });

  it('all Pods are created exactly once if kube-apiserver is killed while the Count is scaled', async (t) => {
    await cluster.installCrd();
    cluster.startDaemon();
    const phaseOf = ({ status }: DeepReadonly<Pod>) => status?.phase;
    const { informer, received, stop } = await recordInformer(
      plane.config,
      PODS,
      cluster.namespace,
      phaseOf,
    );
    t.after(stop);
    await cluster.applyCount();
    await cluster.untilReady(3);

    const creationsAndDeletions = () => received.filter((line) => !line.startsWith('update'));
    let crash: Promise<void> | undefined;
    informer.addHandler({
      onAdd(_pod, isInInitialList) {
        if (!isInInitialList) crash ??= processes.crash('kube-apiserver');
      },
    });
    await cluster.patchCount({ count: MANY });
    await cluster.until('the crash', async () => crash !== undefined);
    await crash;
    assert.ok(
      creationsAndDeletions().length < MANY,
      `${creationsAndDeletions().length} Pods: killed during the sync`,
    );
    await processes.restart('kube-apiserver');

    await cluster.untilReady(MANY);
    await cluster.settle();
    const names = Array.from({ length: MANY }, (_, ordinal) => `${NAME}-${ordinal}`);
    assert.deepEqual(await cluster.podNames(), names.toSorted());
    await cluster.until(
      'all Pods were observed',
      async () => creationsAndDeletions().length >= MANY,
    );
    assert.deepEqual(
      creationsAndDeletions().toSorted(),
      names.map((name) => `add ${name}`).toSorted(),
    );
    const events = await cluster.events();
    assert.deepEqual(
      events.filter((event) => event.startsWith('Err')),
      [],
    );
  });
});
