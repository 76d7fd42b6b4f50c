import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DEPLOYMENTS, EVENTS, NODES, PODS, SERVICES } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { Resource } from '../../src/api/resource.ts';
import { DEFAULT_CONTROLLERS } from '../../src/controllers/registry.ts';
import { Simulation } from '../support/simulation.ts';

const SUBJECTS: readonly (readonly [Resource, object])[] = [
  [COUNTS, { name: 'nginx', count: 2 }],
  [WEB_APPS, { version: '1.27', replicas: 1 }],
  [ATS, { schedule: '2020-01-01T00:00:00Z', command: 'echo YAY' }],
  [FOOS, { deploymentName: 'web', replicas: 1 }],
];
const CONFIG = { controllers: DEFAULT_CONTROLLERS };

/** `--once`, with and without `--dry-run`. */
describe('given one object of each kind, and nobody who looks after them', () => {
  let world: Simulation;

  beforeEach(async () => {
    world = new Simulation();
    world.startCluster();
    for (const [resource, spec] of SUBJECTS) {
      await world.installCrd(resource);
      const { group, version, kind } = resource;
      const metadata = { namespace: world.namespace, name: 'x' };
      await world.client.create(resource, {
        apiVersion: `${group}/${version}`,
        kind,
        metadata,
        spec,
      } as never);
    }
    await world.settle();
  });
  afterEach(() => world.end());

  const everything = async () => {
    const kinds: readonly Resource[] = [
      COUNTS,
      WEB_APPS,
      ATS,
      FOOS,
      PODS,
      DEPLOYMENTS,
      SERVICES,
      EVENTS,
    ];
    const lists = await Promise.all(
      kinds.map((kind) => world.client.list(kind, { namespace: world.namespace })),
    );
    return lists.flatMap(({ items }) => items);
  };
  const wouldBe = () =>
    world.lines
      .filter(({ message }) => message === 'Dry run')
      .map(
        ({ fields }) =>
          `${String(fields['would'])} ${String(fields['resource'])} ${String(fields['object'])}`,
      )
      .filter((line) => !line.includes(' events '))
      .toSorted();

  it('a pass does for all of them what can be done now, and ends', async () => {
    assert.equal(await world.onePass(CONFIG), true);
    const names = (await everything())
      .filter(({ kind }) => ['Pod', 'Deployment', 'Service'].includes(kind))
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    for (const name of ['Pod x-0', 'Pod x-pod', 'Deployment web', 'Deployment x']) {
      assert.ok(names.includes(name), `${name}: ${names.join(', ')}`);
    }
    assert.deepEqual(world.errors(), []);
  });

  it('a dry pass says what a pass would do, changes nothing, and tells that something is left', async () => {
    const before = await everything();
    assert.equal(await world.onePass(CONFIG, { isDryRun: true }), false);
    assert.deepEqual(await everything(), before);
    assert.deepEqual(wouldBe(), [
      'create deployments.apps default/web',
      'create pods default/x-0',
      'create pods default/x-1',
      'create pods default/x-pod',
      'patch ats.cnat.programming-kubernetes.info/status default/x',
      'patch counts.demo.mark8s.io/status default/x',
      'patch foos.samplecontroller.k8s.io/status default/x',
      'patch webapps.jiajunhuang.com default/x',
    ]);
    assert.deepEqual(world.errors(), []);
  });

  it('once all is as it should be, both find nothing left to do, and write nothing', async () => {
    const stop = world.startDaemon(CONFIG);
    await world.settle();
    await world.pass(60_000);
    await world.settle();
    await stop();
    const before = await everything();
    world.lines.length = 0;
    assert.equal(await world.onePass(CONFIG, { isDryRun: true }), true);
    assert.equal(await world.onePass(CONFIG), true);
    assert.deepEqual(wouldBe(), []);
    assert.deepEqual(await everything(), before);
    const ends = world.lines.filter(({ message }) => message === 'Nothing is left to do');
    assert.deepEqual(
      ends.map(({ fields }) => [fields['objects'], fields['wouldWrite'] ?? fields['wrote']]),
      [
        [4, 0],
        [4, 0],
      ],
    );
  });

  it('a dry pass tells drift', async () => {
    assert.equal(await world.onePass(CONFIG), true);
    await world.pass(60_000);
    assert.equal(await world.onePass(CONFIG), true);
    await world.pass(60_000);
    assert.equal(await world.onePass(CONFIG), true);
    await world.client.delete(PODS, { namespace: world.namespace, name: 'x-1' });
    await world.pass(5000);
    world.lines.length = 0;
    assert.equal(await world.onePass(CONFIG, { isDryRun: true }), false);
    assert.ok(wouldBe().includes('create pods default/x-1'), wouldBe().join('\n'));
    assert.ok(!wouldBe().some((line) => line.includes('x-0')), wouldBe().join('\n'));
  });

  it('a pass that fails for one object does the rest, and tells', async () => {
    world.server.faults.beforeRequest(async ({ method, info }) => {
      if (method === 'POST' && info?.resource === 'deployments') throw new Error('out of order');
    });
    assert.equal(await world.onePass(CONFIG), false);
    assert.deepEqual(await world.podNames(), ['x-0', 'x-1', 'x-pod']);
  });

  it('a pass does not wait for a kind that the server does not have', async () => {
    const names = ['counts.demo.mark8s.io'];
    const crds: Resource = {
      group: 'apiextensions.k8s.io',
      version: 'v1',
      plural: 'customresourcedefinitions',
      kind: 'CustomResourceDefinition',
      namespaced: false,
    };
    for (const name of names) await world.client.delete(crds, { name });
    await world.pass(5000);
    assert.equal(await world.onePass(CONFIG), false);
    assert.ok(
      world.errors().some((line) => line.startsWith('The server does not have the resource')),
      world.errors().join('\n'),
    );
  });

  it('a pass without objects is soon over', async () => {
    const startMs = world.elapsedMs();
    assert.equal(
      await world.onePass({ controllers: ['count'], namespaces: ['kube-system'] }),
      true,
    );
    assert.ok(world.elapsedMs() - startMs < 2000);
  });

  it('a dry pass over nodes writes no label', async () => {
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'master', labels } };
    await world.client.create(NODES, node);
    const config = { controllers: ['pod-count'] };
    assert.equal(await world.onePass(config, { isDryRun: true }), false);
    assert.deepEqual(wouldBe(), ['patch nodes master']);
    assert.deepEqual((await world.client.get(NODES, { name: 'master' })).metadata.labels, labels);
  });
});
