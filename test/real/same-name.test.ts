import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { PODS } from '../../src/api/builtin.ts';
import type { Pod } from '../../src/api/builtin.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { until } from '../support/until.ts';

const PODS_AT_ONCE = 20;
const ROUNDS = 5;

const skip =
  process.env['CONTROL_PLANE'] !== 'cluster' &&
  'SKIPPED: needs a whole control plane: npm run test:real';

describe('The kubelets of a test cluster', { skip, timeout: 240_000 }, () => {
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane();
  });
  after(() => plane.close());

  /** Creates a Pod as soon as the name is free. */
  const create = (name: string): Promise<Pod> =>
    until(`the name ${name} is free`, async () => {
      try {
        return await plane.client.create(PODS, {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { namespace: 'default', name },
          spec: { containers: [{ name: 'app', image: 'nginx' }] },
        });
      } catch (error) {
        if (isApiError(error, 'alreadyExists')) return undefined;
        throw error;
      }
    });

  const untilRunning = ({ metadata }: Pod): Promise<Pod> =>
    until(`${metadata.name} is running`, async () => {
      const pod = await plane.client.get(PODS, metadata);
      assert.equal(pod.metadata.uid, metadata.uid, `${metadata.name} was replaced`);
      return pod.status?.phase === 'Running' ? pod : undefined;
    });

  it('do not delete a Pod because of an earlier Pod of the same name', async () => {
    const names = Array.from({ length: PODS_AT_ONCE }, (_, index) => `web-${index}`);
    let pods = await Promise.all(names.map(create));
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(pods.map(untilRunning));
      pods = await Promise.all(
        pods.map(async ({ metadata }) => {
          await plane.client.delete(PODS, metadata, { uid: metadata.uid });
          return create(metadata.name);
        }),
      );
    }
    await Promise.all(pods.map(untilRunning));
  });
});
