import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { EveryKind } from '../support/every-kind.ts';
import { killAll } from '../support/program.ts';
import type { Program } from '../support/program.ts';
import { Release } from '../support/releases.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

const skip =
  process.env['CONTROL_PLANE'] === undefined &&
  'SKIPPED: bundles the program twice; needs CONTROL_PLANE, as npm run test:real sets it';

/** The next release changes a default, so that its effect is visible. */
const NEXT = {
  file: 'src/controllers/at/pod.ts',
  from: "image: 'busybox:1.37'",
  to: "image: 'busybox:1.38'",
};

describe(
  'Two releases of the program, and objects of every kind',
  { skip, timeout: 240_000 },
  () => {
    let plane: ControlPlane;
    let cluster: TlsCluster;
    let kinds: EveryKind;
    let current: Release;
    let next: Release;
    const programs: Program[] = [];

    before(async () => {
      [current, next] = await Promise.all([
        Release.bundle('1.0.0'),
        Release.bundle('1.1.0', [NEXT]),
      ]);
      plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 0 } } });
      cluster = await TlsCluster.create(plane);
      kinds = new EveryKind(cluster);
      await kinds.install();
    });
    after(async () => {
      await killAll(programs);
      await cluster.end();
      await plane.close();
      await Promise.all([current.remove(), next.remove()]);
    });

    /** Starts a replica, and waits until it leads or has observed the leader. */
    const start = async (release: Release): Promise<Program> => {
      const program = release.run(
        [
          `--kubeconfig=${plane.kubeconfigPath}`,
          `--namespaces=${cluster.namespace}`,
          '--leader-elect',
          `--leader-elect-resource-namespace=${cluster.namespace}`,
          '-v=2',
        ],
        { POD_NAME: `${release.version}-${programs.length}` },
      );
      programs.push(program);
      await program.printed(new RegExp(`"Starting crd-controller" version="v${release.version}"`));
      await program.printed(/"(Successfully acquired lease|New leader elected)"/);
      return program;
    };

    /** Performs a rolling update: the new replica starts before the old one stops. */
    const roll = async (old: Program, release: Release): Promise<Program> => {
      const successor = await start(release);
      old.child.kill('SIGTERM');
      const { code, stderr } = await old.ended();
      assert.equal(code, 0, stderr);
      await successor.printed(/("Starting workers"[^]*){4}/);
      await kinds.untilSettled();
      return successor;
    };

    const sorted = (state: Map<string, string>) =>
      [...state].map((entry) => entry.join(': ')).toSorted();

    it('upgrade and downgrade re-create no object, and repeat no write and no event', async () => {
      const first = await start(current);
      await kinds.create('old');
      await kinds.untilSettled();
      const before = await kinds.state();
      assert.deepEqual(await kinds.images('old'), ['busybox:1.37']);

      const second = await roll(first, next);
      assert.deepEqual(sorted(await kinds.state()), sorted(before), 'forward');
      await kinds.create('new');
      await kinds.untilSettled();
      assert.deepEqual(await kinds.images('new'), ['busybox:1.38'], 'the next release leads');
      const both = await kinds.state();
      for (const [name, version] of before) assert.equal(both.get(name), version, name);

      const third = await roll(second, current);
      assert.deepEqual(
        sorted(await kinds.state()),
        sorted(both),
        'the current release leads again',
      );

      for (const name of ['old-count', 'new-count']) {
        const at = { namespace: cluster.namespace, name };
        await cluster.client.patch(COUNTS, at, { type: 'merge', body: { spec: { count: 3 } } });
      }
      await kinds.untilSettled();
      await kinds.removeAll();
      third.child.kill('SIGTERM');
      assert.equal((await third.ended()).code, 0);
      const errors = programs.flatMap(({ stderr }) => stderr.match(/^E.*$/gm) ?? []);
      for (const error of errors)
        assert.match(error, /not retrying a terminal error.*(old|new)-malformed/);
    });
  },
);
