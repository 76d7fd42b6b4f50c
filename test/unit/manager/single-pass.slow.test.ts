import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  DEPLOYMENTS,
  EVENTS,
  NODES,
  PODS,
  SERVICES,
} from '../../../src/api/builtin.ts';
import { ATS } from '../../../src/api/generated/at.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { FOOS } from '../../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../../src/api/generated/web-app.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { Controller } from '../../../src/manager/controller.ts';
import type { SyncHandler } from '../../../src/manager/controller-options.ts';
import { SinglePass } from '../../../src/manager/single-pass.ts';
import { done, postpone, requeueAfter, TerminalError } from '../../../src/workqueue/outcome.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { Simulation } from '../../support/simulation.ts';
import { DEFAULT_CONTROLLERS } from '../../support/own-program.ts';

const SUBJECTS: readonly (readonly [Resource, object])[] = [
  [COUNTS, { name: 'nginx', count: 2 }],
  [WEB_APPS, { version: '1.27', replicas: 1 }],
  [ATS, { schedule: '2020-01-01T00:00:00Z', command: 'echo YAY' }],
  [FOOS, { deploymentName: 'web', replicas: 1 }],
];
const CONFIG = { controllers: DEFAULT_CONTROLLERS };

/** `--once`, with and without `--dry-run`, in virtual time. */
describe('with one new object of each kind', () => {
  let simulation: Simulation;

  beforeEach(async () => {
    simulation = new Simulation();
    simulation.startCluster();
    for (const [resource, spec] of SUBJECTS) {
      await simulation.installCrd(resource);
      const { group, version, kind } = resource;
      const metadata = { namespace: simulation.namespace, name: 'x' };
      await simulation.client.create(resource, {
        apiVersion: `${group}/${version}`,
        kind,
        metadata,
        spec,
      } as never);
    }
    await simulation.settle();
  });
  afterEach(() => simulation.end());

  const allObjects = async () => {
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
      kinds.map((kind) => simulation.client.list(kind, { namespace: simulation.namespace })),
    );
    return lists.flatMap(({ items }) => items);
  };
  const dryRunWrites = () =>
    simulation.lines
      .filter(({ message }) => message === 'Dry run')
      .map(
        ({ fields }) =>
          `${String(fields['would'])} ${String(fields['resource'])} ${String(fields['object'])}`,
      )
      .filter((line) => !line.includes(' events '))
      .toSorted();

  it('a single pass syncs all objects, and ends', async () => {
    assert.equal(await simulation.singlePass(CONFIG), true);
    const names = (await allObjects())
      .filter(({ kind }) => ['Pod', 'Deployment', 'Service'].includes(kind))
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    for (const name of ['Pod x-0', 'Pod x-pod', 'Deployment web', 'Deployment x']) {
      assert.ok(names.includes(name), `${name}: ${names.join(', ')}`);
    }
    assert.deepEqual(simulation.errors(), []);
  });

  it('a dry run logs the writes of a single pass, changes nothing, and reports that it has not converged', async () => {
    const before = await allObjects();
    assert.equal(await simulation.singlePass(CONFIG, { isDryRun: true }), false);
    assert.deepEqual(await allObjects(), before);
    assert.deepEqual(dryRunWrites(), [
      'create deployments.apps default/web',
      'create deployments.apps default/x',
      'create pods default/x-0',
      'create pods default/x-1',
      'create pods default/x-pod',
      'create services default/x',
      'patch ats.cnat.programming-kubernetes.info/status default/x',
      'patch counts.demo.mark8s.io/status default/x',
      'patch foos.samplecontroller.k8s.io/status default/x',
      'patch webapps.jiajunhuang.com default/x',
      'patch webapps.jiajunhuang.com/status default/x',
    ]);
    assert.deepEqual(simulation.errors(), []);
  });

  it('both write nothing and report convergence if all objects are in the desired state', async () => {
    const stop = simulation.startDaemon(CONFIG);
    await simulation.settle();
    await simulation.pass(60_000);
    await simulation.settle();
    await stop();
    const before = await allObjects();
    simulation.lines.length = 0;
    assert.equal(await simulation.singlePass(CONFIG, { isDryRun: true }), true);
    assert.equal(await simulation.singlePass(CONFIG), true);
    assert.deepEqual(dryRunWrites(), []);
    assert.deepEqual(await allObjects(), before);
    const ends = simulation.lines.filter(({ message }) => message === 'Nothing is left to do');
    assert.deepEqual(
      ends.map(({ fields }) => [fields['objects'], fields['wouldWrite'] ?? fields['wrote']]),
      [
        [4, 0],
        [4, 0],
      ],
    );
  });

  it('a dry run logs the write that reverts a change', async () => {
    assert.equal(await simulation.singlePass(CONFIG), true);
    await simulation.pass(60_000);
    assert.equal(await simulation.singlePass(CONFIG), true);
    await simulation.pass(60_000);
    assert.equal(await simulation.singlePass(CONFIG), true);
    await simulation.client.delete(PODS, { namespace: simulation.namespace, name: 'x-1' });
    await simulation.pass(5000);
    simulation.lines.length = 0;
    assert.equal(await simulation.singlePass(CONFIG, { isDryRun: true }), false);
    assert.ok(dryRunWrites().includes('create pods default/x-1'), dryRunWrites().join('\n'));
    assert.ok(!dryRunWrites().some((line) => line.includes('x-0')), dryRunWrites().join('\n'));
  });

  it('a single pass syncs the other objects if one fails, and reports that it has not converged', async () => {
    simulation.server.faults.beforeRequest(async ({ method, info }) => {
      if (method === 'POST' && info?.resource === 'deployments') throw new Error('internal error');
    });
    assert.equal(await simulation.singlePass(CONFIG), false);
    assert.deepEqual(await simulation.podNames(), ['x-0', 'x-1', 'x-pod']);
  });

  it('a single pass does not wait for a resource that is not served', async () => {
    const counts = { name: 'counts.demo.mark8s.io' };
    await simulation.client.delete(CUSTOM_RESOURCE_DEFINITIONS, counts);
    await simulation.pass(5000);
    assert.equal(await simulation.singlePass(CONFIG), false);
    const [error = ''] = simulation.errors();
    assert.match(error, /^The server does not have the resource/);
    assert.equal((await simulation.client.list(DEPLOYMENTS, {})).items.length, 2);
  });

  it('a single pass waits at most a minute for a cache that does not sync', async () => {
    simulation.server.faults.beforeRequest(async ({ method, info }) => {
      if (method === 'GET' && info?.resource === 'services') throw new Error('internal error');
    });
    const startMs = simulation.elapsedMs();
    assert.equal(await simulation.singlePass(CONFIG), false);
    assert.ok(simulation.elapsedMs() - startMs < 70_000);
    const logged = simulation
      .errors()
      .filter((line) => line.startsWith('Timed out waiting for cache to sync'));
    assert.equal(logged.length, 1);
    assert.ok((await simulation.podNames()).includes('x-0'));
  });

  it('a single pass without objects ends within 2 s', async () => {
    const startMs = simulation.elapsedMs();
    assert.equal(
      await simulation.singlePass({ controllers: ['count'], namespaces: ['kube-system'] }),
      true,
    );
    assert.ok(simulation.elapsedMs() - startMs < 2000);
  });

  it('a dry run writes no label of a Node', async () => {
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'master', labels } };
    await simulation.client.create(NODES, node);
    const config = { controllers: ['pod-count'] };
    assert.equal(await simulation.singlePass(config, { isDryRun: true }), false);
    assert.deepEqual(dryRunWrites(), ['patch nodes master']);
    assert.deepEqual(
      (await simulation.client.get(NODES, { name: 'master' })).metadata.labels,
      labels,
    );
  });
});

/** Single passes of a controller whose sync handler is given by the test. */
describe('a single pass', () => {
  let simulation: Simulation;
  let syncs: number;

  beforeEach(async () => {
    simulation = new Simulation();
    syncs = 0;
    await simulation.installCrd();
    await simulation.applyCount();
  });
  afterEach(() => simulation.end());

  const passWith = async (
    sync: SyncHandler,
    options: { readonly syncTimeoutMs?: number } = {},
  ): Promise<boolean> => {
    const { log } = recordingLogger(simulation.lines);
    const pass = new SinglePass({ clock: simulation.time, log }, { isDryRun: false });
    simulation.startControllers((kit) => [
      new Controller(
        { ...kit, observe: pass.observe },
        {
          name: 'count',
          kind: 'Count',
          ...options,
          sync: (key, context) => {
            syncs++;
            return sync(key, context);
          },
        },
      ).for(kit.informers.for(COUNTS)),
    ]);
    let isOver = false;
    void pass.run(new AbortController().signal).then(() => (isOver = true));
    await simulation.until('the pass is over', () => Promise.resolve(isOver), {
      withinMs: 300_000,
    });
    return pass.hasConverged;
  };
  const label: SyncHandler = async (_, { client }) => {
    const { uid } = (await client.get(COUNTS, simulation.at)).metadata;
    const body = { metadata: { uid, labels: { run: String(syncs) } } };
    await client.patch(COUNTS, simulation.at, { type: 'merge', body }, { fieldManager: 'test' });
    return done();
  };

  it('ends without convergence if every sync writes', async () => {
    assert.equal(await passWith(label), false);
    assert.ok(syncs <= 40, `${syncs} syncs`);
  });

  it('does not wait for a requeue after a delay', async () => {
    assert.equal(await passWith(async () => requeueAfter(3_600_000)), true);
    assert.equal(syncs, 1);
  });

  it('retries failed syncs', async () => {
    const sync: SyncHandler = async () => {
      if (syncs < 3) throw new Error('not yet');
      return done();
    };
    assert.equal(await passWith(sync), true);
    assert.equal(syncs, 3);
  });

  it('ends and logs the failures if a sync keeps failing', async () => {
    const failing: SyncHandler = () => Promise.reject(new Error('never'));
    assert.equal(await passWith(failing), false);
    assert.match(
      String(
        simulation.lines.find(({ message }) => message === 'Something is left to do')?.fields[
          'failed'
        ],
      ),
      /^1$/,
    );
  });

  it('ends without convergence after ten failures', async () => {
    const sync: SyncHandler = async () => {
      if (syncs <= 10) throw new Error('not yet');
      return done();
    };
    assert.equal(await passWith(sync), false);
  });

  it('retries a sync that exceeded its timeout', async () => {
    const sync: SyncHandler = async (_, { signal }) => {
      if (syncs === 1) await simulation.time.sleep(3_600_000, signal);
      signal.throwIfAborted();
      return done();
    };
    assert.equal(await passWith(sync, { syncTimeoutMs: 5000 }), true);
    assert.equal(syncs, 2);
  });

  it('waits for a sync that was postponed', async () => {
    const sync: SyncHandler = async () => (syncs === 1 ? postpone(2000) : done());
    assert.equal(await passWith(sync), true);
    assert.equal(syncs, 2);
  });

  it('does not count reads and failed writes as writes', async () => {
    const sync: SyncHandler = async (_, { client }) => {
      await client.get(COUNTS, simulation.at);
      await client.list(COUNTS, {});
      await client.raw({ path: '/version' });
      const absent = { ...simulation.at, name: 'absent' };
      const patch = { type: 'merge', body: { metadata: { uid: 'x' } } } as const;
      const patched = client.patch(COUNTS, absent, patch, { fieldManager: 'test' });
      await assert.rejects(patched, { kind: 'notFound' });
      return done();
    };
    assert.equal(await passWith(sync), true);
    assert.equal(syncs, 1);
  });

  it('has not converged if it was stopped', async () => {
    const { log, lines } = recordingLogger();
    const pass = new SinglePass({ clock: simulation.time, log }, { isDryRun: false });
    const stop = new AbortController();
    const running = pass.run(stop.signal);
    await simulation.pass(150);
    stop.abort();
    await running;
    assert.deepEqual([pass.hasConverged, lines], [false, []]);
  });

  it('does not retry a terminal error', async () => {
    const terminal: SyncHandler = () => Promise.reject(new TerminalError('never'));
    assert.equal(await passWith(terminal), false);
    assert.equal(syncs, 1);
  });

  /** Creates a Pod, which no informer watches. */
  const createUnwatched: SyncHandler = async (_, { client }) => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: simulation.namespace, name: `unwatched-${syncs}` },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    };
    await client.create(PODS, pod, { fieldManager: 'test' });
    return done();
  };

  it('syncs an object again after a write to a resource without an informer', async () => {
    const once: SyncHandler = (key, context) =>
      syncs === 1 ? createUnwatched(key, context) : Promise.resolve(done());
    assert.equal(await passWith(once), true);
    assert.equal(syncs, 2);
  });

  it('ends without convergence after 20 syncs that create objects', async () => {
    assert.equal(await passWith(createUnwatched), false);
    assert.equal(syncs, 20);
  });

  it('syncs an object again after a write, when the cache contains it', async () => {
    const once: SyncHandler = (key, context) =>
      syncs === 1 ? label(key, context) : Promise.resolve(done());
    assert.equal(await passWith(once), true);
    assert.ok(syncs >= 2);
  });
});
