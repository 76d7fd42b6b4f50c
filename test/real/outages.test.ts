import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { isApiError, isExpired } from '../../src/api/api-error.ts';
import { CONFIG_MAPS, NAMESPACES } from '../../src/api/builtin.ts';
import type { DeepReadonly, KubernetesObject } from '../../src/api/object.ts';
import { TcpProxy } from '../support/chaos/tcp-proxy.ts';
import type { ConfigMap } from '../../src/api/builtin.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { recordInformer } from '../support/recorded-informer.ts';
import type { RecordedInformer } from '../support/recorded-informer.ts';
import { needsReal } from '../support/skip.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

const skip = needsReal('kube-apiserver and etcd to end');

describe('A real control plane whose processes end by SIGKILL', { skip, timeout: 240_000 }, () => {
  let plane: ControlPlane;
  let processes: NonNullable<ControlPlane['processes']>;
  let cluster: TlsCluster;
  /** Functions that stop what the test has started; the last one is called first. */
  let ends: (() => Promise<unknown>)[] = [];

  before(async () => {
    plane = await startControlPlane();
    assert.ok(plane.processes);
    ({ processes } = plane);
  });
  after(() => plane.close());
  beforeEach(async () => {
    cluster = await TlsCluster.create(plane);
  });
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
    await cluster.end();
  });

  /** Starts an informer of the ConfigMaps in the namespace of the test. */
  const startInformer = async (server: string = plane.config.server) => {
    const recorded = await recordInformer(
      { ...plane.config, server },
      CONFIG_MAPS,
      cluster.namespace,
      revisionOf,
    );
    ends.push(recorded.stop);
    return recorded;
  };

  const create = (name: string) =>
    plane.client.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: cluster.namespace, name },
      data: { revision: '0' },
    });
  const at = (name: string) => ({ namespace: cluster.namespace, name });
  /** An idempotent change: repeating it does not change the object. */
  const change = (name: string, revision = 1) =>
    plane.client.patch(CONFIG_MAPS, at(name), {
      type: 'merge',
      body: { data: { revision: String(revision) } },
    });
  const remove = (name: string) => plane.client.delete(CONFIG_MAPS, at(name));

  const untilReceived = async ({ received }: RecordedInformer<ConfigMap>, line: string) => {
    try {
      await cluster.until(`receiving "${line}"`, async () => received.includes(line));
    } catch (cause) {
      throw new Error(`did not receive "${line}" but ${received.join(', ')}`, { cause });
    }
  };

  /** Asserts that exactly `differences` were received, in any order: a relist reports deletions first. */
  const assertReceived = (recorded: RecordedInformer<ConfigMap>, differences: readonly string[]) =>
    assert.deepEqual(recorded.received.toSorted(), differences.toSorted());

  /** Asserts that the cache equals the state of the server, including resourceVersions. */
  const assertCacheIsCurrent = async ({ informer }: RecordedInformer<ConfigMap>) => {
    const { items } = await plane.client.list(CONFIG_MAPS, { namespace: cluster.namespace });
    assert.deepEqual(statesOf(informer.lister.list()), statesOf(items));
  };

  /** Asserts that `differences`, of which `add new` is the last, and later changes are received. */
  const assertReceivesChanges = async (
    recorded: RecordedInformer<ConfigMap>,
    differences: readonly string[],
  ) => {
    await untilReceived(recorded, 'add new');
    assertReceived(recorded, differences);
    await change('calm');
    await untilReceived(recorded, 'update calm: 0 to 1');
    assertReceived(recorded, [...differences, 'update calm: 0 to 1']);
    await assertCacheIsCurrent(recorded);
  };

  const found = (...names: string[]) => names.map((name) => `found ${name}`);

  it('the informer resumes after a crash of kube-apiserver and receives each change once', async () => {
    for (const name of ['calm', 'eve', 'one', 'two', 'gone']) await create(name);
    const recorded = await startInformer();

    await change('eve');
    await processes.crash('kube-apiserver');
    await cluster.until(
      'the informer has detected the failure',
      async () => recorded.informer.progress.phase === 'waiting',
    );
    await processes.restart('kube-apiserver');
    await change('one');
    await remove('gone');
    await change('two');
    await create('new');

    await assertReceivesChanges(recorded, [
      ...found('calm', 'eve', 'one', 'two', 'gone'),
      'update eve: 0 to 1',
      'update one: 0 to 1',
      'update two: 0 to 1',
      'delete gone',
      'add new',
    ]);
  });

  it('the informer receives each change once after a crash of etcd, also one requested during the outage', async () => {
    for (const name of ['calm', 'eve', 'tried', 'one', 'gone']) await create(name);
    const recorded = await startInformer();

    await change('eve');
    await processes.crash('etcd');
    const tried = change('tried').catch((error: unknown) => {
      if (!isTransient(error)) throw error;
    });
    await processes.restart('etcd');
    await tried;
    await cluster.until('kube-apiserver has found etcd again', async () => {
      try {
        await plane.client.get(NAMESPACES, { name: cluster.namespace });
        await change('tried');
        return true;
      } catch (error) {
        if (isTransient(error)) return false;
        throw error;
      }
    });
    await change('one');
    await remove('gone');
    await create('new');

    await assertReceivesChanges(recorded, [
      ...found('calm', 'eve', 'tried', 'one', 'gone'),
      'update eve: 0 to 1',
      'update tried: 0 to 1',
      'update one: 0 to 1',
      'delete gone',
      'add new',
    ]);
  });

  it('the informer lists again and receives the differences if the history was compacted while it was disconnected', async () => {
    const proxy = await TcpProxy.start(Number(new URL(plane.config.server).port));
    ends.push(() => proxy.close());
    for (const name of ['calm', 'one', 'gone']) await create(name);
    const recorded = await startInformer(`https://127.0.0.1:${proxy.port}`);
    const { lastListMs = Infinity } = recorded.informer.progress;

    proxy.shut();
    await create('passing');
    await change('one');
    await change('one', 2);
    await remove('gone');
    await remove('passing');
    await create('new');
    await plane.expireHistory?.();
    // kube-apiserver would answer from its watch cache, which keeps more history than etcd.
    await processes.crash('kube-apiserver');
    await processes.restart('kube-apiserver');
    await assertCompacted(recorded);
    assertReceived(recorded, found('calm', 'one', 'gone'));
    proxy.open();

    await untilReceived(recorded, 'add new');
    await untilReceived(recorded, 'update one: 0 to 2');
    assert.ok(
      (recorded.informer.progress.lastListMs ?? 0) > lastListMs,
      'the informer has listed again',
    );
    await assertReceivesChanges(recorded, [
      ...found('calm', 'one', 'gone'),
      'delete gone',
      'update one: 0 to 2',
      'add new',
    ]);
  });

  /** Asserts that the server answers 410 to a watch from the informer's resourceVersion. */
  const assertCompacted = async ({ informer }: RecordedInformer<ConfigMap>) => {
    const events = await plane.client.watch(CONFIG_MAPS, {
      namespace: cluster.namespace,
      resourceVersion: informer.lastSyncResourceVersion,
      timeoutSeconds: 5,
    });
    for await (const event of events) {
      assert.ok(event.type === 'error' && isExpired(event.error), JSON.stringify(event));
      return;
    }
    assert.fail('The server still has');
  };
});

function revisionOf(object: DeepReadonly<KubernetesObject & Pick<ConfigMap, 'data'>>) {
  return object.data?.revision;
}

function statesOf(objects: readonly DeepReadonly<KubernetesObject>[]): string[] {
  return objects
    .map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`)
    .toSorted();
}

/** Returns whether kube-apiserver answers this while etcd is unavailable. */
function isTransient(error: unknown): boolean {
  return isApiError(error, 'internal', 'unavailable', 'timeout', 'tooManyRequests', 'unreachable');
}
