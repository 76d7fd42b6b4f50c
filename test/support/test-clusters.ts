import { after, before, describe } from 'node:test';
import { startControlPlane } from './control-plane.ts';
import type { ControlPlane } from './control-plane.ts';
import { Simulation } from './simulation.ts';
import { TlsCluster } from './tls-cluster.ts';
import type { TestCluster } from './test-cluster.ts';

/**
 * Runs tests in virtual time, or on the control plane in `$CONTROL_PLANE`.
 *
 * @param defineTests defines the tests, each of which creates its own test cluster with `create`
 */
export function inTestClusters(
  defineTests: (where: string, create: () => Promise<TestCluster>) => void,
): void {
  if (process.env['CONTROL_PLANE'] === undefined) {
    defineTests('in virtual time', () => {
      const simulation = new Simulation();
      // The server of a simulation has no TLS.
      simulation.startCluster({ rootCaPem: 'no certificate' });
      return Promise.resolve(simulation);
    });
    return;
  }
  describe('on a control plane', () => {
    let plane: ControlPlane;

    before(async () => {
      plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 100 } } });
    });
    after(() => plane.close());

    defineTests('over TLS', () => TlsCluster.create(plane));
  });
}
