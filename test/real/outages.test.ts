import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { isApiError, isExpired } from '../../src/api/api-error.ts';
import { NAMESPACES } from '../../src/api/builtin.ts';
import type { DeepReadonly, KubernetesObject } from '../../src/api/object.ts';
import { TcpProxy } from '../support/chaos/tcp-proxy.ts';
import { CONFIG_MAPS } from '../support/config-maps.ts';
import type { ConfigMap } from '../support/config-maps.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { listen } from '../support/ear.ts';
import type { Ear } from '../support/ear.ts';
import { needsReal } from '../support/needs-real.ts';
import { WireWorld } from '../support/wire-world.ts';

const skip = needsReal('kube-apiserver and etcd to end');

describe(
  'given a real control plane whose processes end by SIGKILL',
  { skip, timeout: 240_000 },
  () => {
    let plane: ControlPlane;
    let processes: NonNullable<ControlPlane['processes']>;
    let world: WireWorld;
    /** Stop what the story has started, the latest first. */
    let ends: (() => Promise<unknown>)[] = [];

    before(async () => {
      plane = await startControlPlane();
      assert.ok(plane.processes);
      ({ processes } = plane);
    });
    after(() => plane.close());
    beforeEach(async () => {
      world = await WireWorld.create(plane);
    });
    afterEach(async () => {
      for (const end of ends.splice(0).toReversed()) await end();
      await world.end();
    });

    /** Hears of the ConfigMaps in the world's namespace, from `server`. */
    const listenIn = async (server: string = plane.config.server) => {
      const ear = await listen(
        { ...plane.config, server },
        CONFIG_MAPS,
        world.namespace,
        revisionOf,
      );
      ends.push(ear.stop);
      return ear;
    };

    const create = (name: string) =>
      plane.client.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace: world.namespace, name },
        data: { revision: '0' },
      });
    const at = (name: string) => ({ namespace: world.namespace, name });
    /** Done twice it is done once: what is there already changes nothing. */
    const change = (name: string, revision = 1) =>
      plane.client.patch(CONFIG_MAPS, at(name), {
        type: 'merge',
        body: { data: { revision: String(revision) } },
      });
    const remove = (name: string) => plane.client.delete(CONFIG_MAPS, at(name));

    const untilHeard = async ({ heard }: Ear<ConfigMap>, line: string) => {
      try {
        await world.until(`hearing "${line}"`, async () => heard.includes(line));
      } catch (cause) {
        throw new Error(`heard no "${line}" but ${heard.join(', ')}`, { cause });
      }
    };

    /** All `differences` and nothing else, in any order: a list tells of deletions first. */
    const assertHeard = (ear: Ear<ConfigMap>, differences: readonly string[]) =>
      assert.deepEqual(ear.heard.toSorted(), differences.toSorted());

    /** The mirror is what the server has, to the resourceVersion. */
    const assertMirrors = async ({ informer }: Ear<ConfigMap>) => {
      const { items } = await plane.client.list(CONFIG_MAPS, { namespace: world.namespace });
      assert.deepEqual(statesOf(informer.lister.list()), statesOf(items));
    };

    /** It has heard `differences`, of which `add new` is the last, and hears what comes next. */
    const assertHearsOn = async (ear: Ear<ConfigMap>, differences: readonly string[]) => {
      await untilHeard(ear, 'add new');
      assertHeard(ear, differences);
      await change('calm');
      await untilHeard(ear, 'update calm: 0 to 1');
      assertHeard(ear, [...differences, 'update calm: 0 to 1']);
      await assertMirrors(ear);
    };

    const found = (...names: string[]) => names.map((name) => `found ${name}`);

    it('kube-apiserver is killed and comes back: the informer goes on and hears each change once', async () => {
      for (const name of ['calm', 'eve', 'one', 'two', 'gone']) await create(name);
      const ear = await listenIn();

      await change('eve');
      await processes.crash('kube-apiserver');
      await world.until('it has noticed', async () => ear.informer.progress.phase === 'waiting');
      await processes.restart('kube-apiserver');
      await change('one');
      await remove('gone');
      await change('two');
      await create('new');

      await assertHearsOn(ear, [
        ...found('calm', 'eve', 'one', 'two', 'gone'),
        'update eve: 0 to 1',
        'update one: 0 to 1',
        'update two: 0 to 1',
        'delete gone',
        'add new',
      ]);
    });

    it('etcd is killed and comes back: the informer hears each change once, also one asked for meanwhile', async () => {
      for (const name of ['calm', 'eve', 'tried', 'one', 'gone']) await create(name);
      const ear = await listenIn();

      await change('eve');
      await processes.crash('etcd');
      const tried = change('tried').catch((error: unknown) => {
        if (!isPassing(error)) throw error;
      });
      await processes.restart('etcd');
      await tried;
      await world.until('kube-apiserver has found etcd again', async () => {
        try {
          await plane.client.get(NAMESPACES, { name: world.namespace });
          await change('tried');
          return true;
        } catch (error) {
          if (isPassing(error)) return false;
          throw error;
        }
      });
      await change('one');
      await remove('gone');
      await create('new');

      await assertHearsOn(ear, [
        ...found('calm', 'eve', 'tried', 'one', 'gone'),
        'update eve: 0 to 1',
        'update tried: 0 to 1',
        'update one: 0 to 1',
        'delete gone',
        'add new',
      ]);
    });

    it('cut off until nobody remembers where it was, the informer lists anew and hears the differences', async () => {
      const proxy = await TcpProxy.start(Number(new URL(plane.config.server).port));
      ends.push(() => proxy.close());
      for (const name of ['calm', 'one', 'gone']) await create(name);
      const ear = await listenIn(`https://127.0.0.1:${proxy.port}`);
      const { lastListMs = Infinity } = ear.informer.progress;

      proxy.shut();
      await create('passing');
      await change('one');
      await change('one', 2);
      await remove('gone');
      await remove('passing');
      await create('new');
      await plane.expireHistory?.();
      // It would answer from its watch cache, which remembers more than etcd.
      await processes.crash('kube-apiserver');
      await processes.restart('kube-apiserver');
      await assertForgotten(ear);
      assertHeard(ear, found('calm', 'one', 'gone'));
      proxy.open();

      await untilHeard(ear, 'add new');
      await untilHeard(ear, 'update one: 0 to 2');
      assert.ok((ear.informer.progress.lastListMs ?? 0) > lastListMs, 'it has listed');
      await assertHearsOn(ear, [
        ...found('calm', 'one', 'gone'),
        'delete gone',
        'update one: 0 to 2',
        'add new',
      ]);
    });

    /** The server answers 410 to who goes on from where the informer is. */
    const assertForgotten = async ({ informer }: Ear<ConfigMap>) => {
      const events = await plane.client.watch(CONFIG_MAPS, {
        namespace: world.namespace,
        resourceVersion: informer.lastSyncResourceVersion,
        timeoutSeconds: 5,
      });
      for await (const event of events) {
        assert.ok(event.type === 'error' && isExpired(event.error), JSON.stringify(event));
        return;
      }
      assert.fail('The server still knows');
    };
  },
);

function revisionOf(object: DeepReadonly<KubernetesObject & Pick<ConfigMap, 'data'>>) {
  return object.data?.revision;
}

function statesOf(objects: readonly DeepReadonly<KubernetesObject>[]): string[] {
  return objects
    .map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`)
    .toSorted();
}

/** What kube-apiserver says while it has no etcd. */
function isPassing(error: unknown): boolean {
  return isApiError(error, 'internal', 'unavailable', 'timeout', 'tooManyRequests', 'unreachable');
}
