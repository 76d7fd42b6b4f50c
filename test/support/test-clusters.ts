import { after, before, describe } from 'node:test';
import { startControlPlane } from './control-plane.ts';
import type { ControlPlane } from './control-plane.ts';
import { Simulation } from './simulation.ts';
import { TlsCluster } from './tls-cluster.ts';
import type { TestCluster } from './test-cluster.ts';

/**
 * Tells stories in virtual time, or on the control plane that `$CONTROL_PLANE` asks for.
 *
 * @param tellIn defines the stories; each of them makes a world of its own with `create`
 */
export function inTestClusters(
  tellIn: (where: string, create: () => Promise<TestCluster>) => void,
): void {
  if (process.env['CONTROL_PLANE'] === undefined) {
    tellIn('in virtual time', () => {
      const world = new Simulation();
      world.startCluster();
      return Promise.resolve(world);
    });
    return;
  }
  describe('on a control plane', () => {
    let plane: ControlPlane;

    before(async () => {
      plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 100 } } });
    });
    after(() => plane.close());

    tellIn('over TLS', () => TlsCluster.create(plane));
  });
}
