import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { CustomResourceDefinition } from '../../src/api/builtin.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, PODS } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { Draft } from '../../src/api/object.ts';
import { migrateIn } from '../../src/cli/commands/migrate.ts';
import type { Resource } from '../../src/api/resource.ts';
import { EveryKind } from '../support/every-kind.ts';
import { crdOf } from '../support/test-cluster.ts';
import type { TestCluster } from '../support/test-cluster.ts';
import { inTestClusters } from '../support/test-clusters.ts';

const crdNameOf = ({ plural, group }: Resource) => `${plural}.${group}`;

type Versions = NonNullable<Draft<CustomResourceDefinition>['spec']>['versions'];
type Version = Versions[number];

inTestClusters((where, create) => {
  describe(`${where}: a daemon whose CRDs change`, { timeout: 300_000 }, () => {
    let cluster: TestCluster;
    let kinds: EveryKind;

    const start = (...controllers: readonly string[]) =>
      cluster.startDaemon({ controllers, namespaces: [cluster.namespace] });

    beforeEach(async () => {
      cluster = await create();
      kinds = new EveryKind(cluster);
    });
    afterEach(async () => {
      // The daemon must still run, because it removes the finalizers.
      await kinds.removeAll();
      await cluster.end();
    });

    /** Lets `change` derive new versions from the CRD in this checkout, until the test ends. */
    const changeCrd = async (resource: Resource, change: (v1: Version) => Versions) => {
      const { spec } = crdOf(resource);
      const [version] = spec?.versions ?? [];
      assert.ok(version);
      const put = (versions: Versions) =>
        cluster.client.patch(
          CUSTOM_RESOURCE_DEFINITIONS,
          { name: crdNameOf(resource) },
          { type: 'merge', body: { spec: { versions } } },
        );
      await put(change(structuredClone(version)));
      // The server serves a stored CRD with a short delay.
      await cluster.pass(cluster.isVirtual ? 100 : 3000);
      return () => put([version]);
    };

    const countField = (version: Version) => {
      const field = version.schema?.openAPIV3Schema?.properties?.['spec']?.properties?.['count'];
      assert.ok(field);
      return field;
    };

    const errors = () => cluster.errors().filter((line) => !line.includes('cannot be split'));

    it('continues after a field and a version were added, and applies later changes', async () => {
      await cluster.installCrd();
      start('count');
      await cluster.applyCount();
      await cluster.untilReady(3);
      await cluster.settle();
      const before = await kinds.state();

      const restore = await changeCrd(COUNTS, (v1) => {
        const properties = v1.schema?.openAPIV3Schema?.properties?.['spec']?.properties ?? {};
        properties['priority'] = { type: 'integer' };
        return [v1, { ...v1, name: 'v2', storage: false }];
      });
      await cluster.settle();
      assert.deepEqual([...(await kinds.state())], [...before]);
      const v2: typeof COUNTS = { ...COUNTS, version: 'v2' };
      await cluster.client.patch(v2, cluster.at, { type: 'merge', body: { spec: { count: 4 } } });
      await cluster.untilReady(4);
      await restore();
      await cluster.patchCount({ count: 2 });
      await cluster.untilReady(2);
      assert.deepEqual(errors(), []);
    });

    it('continues to reconcile objects that a stricter schema rejects, and reports writes that the server rejects', async () => {
      await cluster.installCrd();
      start('count');
      await cluster.applyCount();
      await cluster.untilReady(3);
      await cluster.settle();
      const restore = await changeCrd(COUNTS, (v1) => {
        countField(v1).maximum = 2;
        return [v1];
      });
      await cluster.client.delete(PODS, cluster.podAt(0));
      await cluster.until('a replacement Pod', async () => {
        const pods = await cluster.pods();
        const isReady = pods.every(({ status }) => status?.phase === 'Running');
        return pods.length === 3 && isReady;
      });
      await cluster.settle();
      // Servers since 1.30 ignore validation errors in unchanged fields. Older servers reject both
      // status updates of this test: one Pod too few, and a Pod that is not ready.
      const reported = errors();
      assert.ok(reported.length === 0 || reported.length >= 2, reported.join('\n'));
      for (const line of reported) {
        assert.match(
          line,
          /requeuing for later retry: The server rejected the status: .*"test-count" is invalid: spec\.count.*Correct the object/,
        );
      }
      if (cluster.isVirtual) {
        await cluster.pass(3_600_000);
        assert.ok(errors().length <= reported.length + 17, 'retries are slow');
      }

      await cluster.patchCount({ count: 1 });
      await cluster.untilReady(1);
      await restore();
      const after = errors().length;
      await cluster.settle();
      assert.equal(errors().length, after);
    });

    it('can drop a version after its objects were migrated', async () => {
      await cluster.installCrd();
      for (const name of ['a', 'b']) await cluster.applyCount({}, name);
      const [v1] = crdOf(COUNTS).spec?.versions ?? [];
      assert.ok(v1);
      const lines: string[] = [];
      const print = (line: string) => lines.push(line);
      const context = { print, warn: print, signal: new AbortController().signal };
      // Back to v1, which the other tests use.
      for (const [old, next] of [
        [v1, { ...v1, name: 'v2' }],
        [{ ...v1, name: 'v2' }, v1],
      ] as const) {
        const drop = () => changeCrd(COUNTS, () => [next]);
        await changeCrd(COUNTS, () => [{ ...old, storage: false }, next]);
        await assert.rejects(drop(), /was previously a storage version/);
        const code = await migrateIn(cluster.client, 'counts', false, context);
        assert.equal(code, 0, lines.join('\n'));
        await drop();
        const { items } = await cluster.client.list({ ...COUNTS, version: next.name });
        const counts = items.map(({ metadata, spec }) => [metadata.name, spec.count]);
        assert.deepEqual(counts, [
          ['a', 3],
          ['b', 3],
        ]);
      }
      for (const name of ['a', 'b'])
        await cluster.client.delete(COUNTS, { namespace: cluster.namespace, name });
    });

    // In virtual time, test/simulation/outages.test.ts covers this for Counts.
    const skip = !process.env['CONTROL_PLANE'] && 'SKIPPED: needs CONTROL_PLANE';
    it(
      'starts again after CRDs were deleted with all objects and installed again',
      { skip },
      async () => {
        await kinds.install();
        start('count', 'webapp', 'foo', 'at');
        await kinds.create('old');
        await kinds.untilSettled();
        for (const resource of [COUNTS, WEB_APPS, FOOS, ATS]) {
          await cluster.client.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: crdNameOf(resource) });
        }
        await cluster.until(
          'no owned object is left',
          async () => (await kinds.children()).length === 0,
        );
        await cluster.until('no CRD is left', async () => {
          const { items } = await cluster.client.list(CUSTOM_RESOURCE_DEFINITIONS);
          return items.length === 0;
        });
        await kinds.install();
        await kinds.create('new');
        await kinds.untilSettled();
        assert.deepEqual(errors(), []);
      },
    );
  });
});
