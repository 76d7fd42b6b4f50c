import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import { CONFIG_MAPS, JOBS, NAMESPACES, NODES, SERVICES } from '../../../src/api/builtin.ts';
import type { ConfigMap, Job, Namespace, Service } from '../../../src/api/builtin.ts';
import { controllerReference } from '../../../src/api/metadata.ts';
import { keyOf } from '../../../src/api/object-key.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import type { SharedInformer } from '../../../src/cache/shared-informer.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { OwnedObjects } from '../../../src/manager/owned-objects.ts';
import type { OwnedDraft } from '../../../src/manager/owned-object.ts';
import type { OwnedKindOptions } from '../../../src/manager/owned-objects.ts';
import { SyncError } from '../../../src/workqueue/outcome.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { Logger } from '../../../src/util/logger.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import type { LogLine } from '../../support/recording-logger.ts';

const NAMESPACE = 'default';

function configMap(name: string, data: Record<string, string>): OwnedDraft<ConfigMap> {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
}

function job(name: string, image: string): OwnedDraft<Job> {
  const containers = [{ name: 'main', image }];
  const template = { spec: { restartPolicy: 'Never' as const, containers } };
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: { template } };
}

describe('Owned objects', () => {
  let clock: FakeClock;
  let client: HttpClient;
  let writes: string[];
  let log: Logger;
  let lines: LogLine[];
  let owner: Service;
  let configMaps: SharedInformer<ConfigMap>;
  let jobs: SharedInformer<Job>;
  let namespaces: SharedInformer<Namespace>;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    clock = new FakeClock();
    const server = new ApiServer({ clock });
    writes = [];
    ({ log, lines } = recordingLogger([], 2));
    client = new HttpClient({
      clock,
      server: 'https://test',
      handler: (request) => {
        if (request.method !== 'GET') writes.push(`${request.method} ${nameOf(request)}`);
        return server.handler(request);
      },
    });
    const informers = new InformerSet(client, { clock });
    configMaps = informers.for(CONFIG_MAPS);
    jobs = informers.for(JOBS);
    namespaces = informers.for(NAMESPACES);
    const abort = new AbortController();
    const running = informers.run(abort.signal);
    stop = async () => {
      abort.abort();
      await clock.advance(1000);
      await running;
    };
    owner = await client.create(SERVICES, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: NAMESPACE, name: 'shop' },
      spec: { ports: [{ port: 80 }] },
    });
    writes.length = 0;
  });
  afterEach(() => stop());

  const nameOf = ({ path, body }: { path: string; body?: string | Uint8Array | undefined }) => {
    const [last = ''] = path.split('?')[0]?.split('/').slice(-1) ?? [];
    const named: unknown = JSON.parse(String(body ?? '{}'));
    return last.endsWith('s') ? (named as OwnedDraft).metadata.name : last;
  };
  const ownedBy = (options: OwnedKindOptions<ConfigMap, Service> = {}) =>
    new OwnedObjects(SERVICES, 'shop-controller').add(configMaps, options);
  /** Waits until the caches are current, and ensures `desired`. */
  const ensure = async (
    owned: OwnedObjects<Service>,
    ...desired: Parameters<OwnedObjects['ensure']>[2]
  ) => {
    await clock.advance(100);
    const outcomes = await owned.ensure(
      { client, signal: new AbortController().signal, log },
      owner,
      desired,
    );
    return outcomes.map(({ kind }) => kind);
  };
  const live = (name: string) => client.get(CONFIG_MAPS, { namespace: NAMESPACE, name });
  const edit = (name: string, body: object) =>
    client.patch(CONFIG_MAPS, { namespace: NAMESPACE, name }, { type: 'merge', body });

  it('in a Namespace of the list that is being deleted are not written', async () => {
    const node = await client.create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'a' },
    });
    const owned = new OwnedObjects(NODES, 'shop-controller').add(namespaces).add(configMaps);
    const terminating = new Set<string>();
    const ensureAll = async () => {
      await clock.advance(100);
      const context = { client, signal: new AbortController().signal, terminating };
      const outcomes = await owned.ensure(context, node, [
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } },
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'team', name: 'a' } },
      ]);
      return outcomes.map(({ kind }) => kind);
    };
    assert.deepEqual(await ensureAll(), ['created', 'created']);
    assert.equal(terminating.size, 0);
    await client.delete(NAMESPACES, { name: 'team' });
    await client.delete(CONFIG_MAPS, { namespace: 'team', name: 'a' });
    writes.length = 0;
    assert.deepEqual(await ensureAll(), ['terminating']);
    assert.deepEqual([...terminating], ['Namespace "team"']);
    assert.deepEqual(writes, []);
  });

  it('of several kinds are created with the reference to their owner beside others, and listed', async () => {
    const owned = ownedBy().add(jobs);
    const other = { apiVersion: 'v1', kind: 'Pod', name: 'other', uid: 'other' };
    const a = configMap('a', { x: '1' });
    const desired = [
      { ...a, metadata: { ...a.metadata, ownerReferences: [other] } },
      job('b', 'busybox'),
    ];
    assert.deepEqual(await ensure(owned, ...desired), ['created', 'created']);
    const references = [other, controllerReference(owner)];
    assert.deepEqual((await live('a')).metadata.ownerReferences, references);
    writes.length = 0;
    assert.deepEqual(await ensure(owned, ...desired), ['unchanged', 'unchanged']);
    assert.deepEqual(writes, []);
    assert.deepEqual(
      owned.of(jobs, owner).map(({ metadata }) => metadata.name),
      ['b'],
    );
  });

  it('are logged when they are created, updated and deleted', async () => {
    const owned = ownedBy({ prune: true });
    await ensure(owned, configMap('a', { x: '1' }));
    await ensure(owned, configMap('a', { x: '1' }));
    await ensure(owned, configMap('a', { x: '2' }));
    await ensure(owned);
    assert.deepEqual(
      lines.map(({ message, fields }) => `${message} ${String(fields['object'])}`),
      ['Created', 'Updated', 'Deleted'].map((verb) => `${verb} ConfigMap default/a`),
    );
  });

  it('that were changed are changed back, and keep what others added', async () => {
    const owned = ownedBy();
    await ensure(owned, configMap('a', { x: '1' }));
    await edit('a', { data: { x: '2', y: '3' } });
    assert.deepEqual(await ensure(owned, configMap('a', { x: '1' })), ['updated']);
    assert.deepEqual((await live('a')).data, { x: '1', y: '3' });
  });

  it('lose fields that are no longer desired, also if the program was restarted', async () => {
    const first = ownedBy();
    await ensure(first, configMap('a', { x: '1', old: '1', older: '1' }));
    assert.deepEqual(await ensure(first, configMap('a', { x: '1', old: '1' })), ['updated']);
    assert.deepEqual((await live('a')).data, { x: '1', old: '1' });
    const restarted = ownedBy();
    assert.deepEqual(await ensure(restarted, configMap('a', { x: '1' })), ['updated']);
    assert.deepEqual((await live('a')).data, { x: '1' });
    assert.deepEqual(await ensure(ownedBy(), configMap('a', { x: '1' })), ['unchanged']);
    writes.length = 0;
    const keeping = ownedBy({ removeFields: false });
    assert.deepEqual(await ensure(keeping, configMap('a', {})), ['unchanged']);
    assert.deepEqual(writes, []);
  });

  it('that are no longer desired are deleted if they are pruned', async () => {
    const all = [configMap('a', {}), configMap('b', {}), configMap('kept', {})];
    await ensure(ownedBy(), ...all);
    await client.create(CONFIG_MAPS, {
      ...configMap('other', {}),
      metadata: { namespace: NAMESPACE, name: 'other' },
    });
    await ensure(ownedBy(), configMap('a', {}));
    writes.length = 0;
    const prune = ownedBy({
      prune: ({ metadata }, { spec }) => metadata.name !== 'kept' && spec?.ports?.[0]?.port === 80,
    });
    await ensure(prune, configMap('a', {}));
    assert.deepEqual(
      writes.filter((write) => write.startsWith('DELETE')),
      ['DELETE b'],
    );
    await ensure(ownedBy({ prune: true }));
    const left = (await client.list(CONFIG_MAPS, { namespace: NAMESPACE })).items;
    assert.deepEqual(
      left.map(({ metadata }) => metadata.name).filter((name) => name !== 'kube-root-ca.crt'),
      ['other'],
    );
  });

  it('are not pruned by another call in the same sync, which throws before it sends a request', async () => {
    const pruning = ownedBy({ prune: true });
    const other = new OwnedObjects(SERVICES, 'other-controller').add(configMaps, { prune: true });
    for (const second of [pruning, other]) {
      const context = { client, signal: new AbortController().signal, ensured: new Set<string>() };
      await pruning.ensure(context, owner, [configMap('a', {})]);
      await clock.advance(100);
      writes.length = 0;
      const ensured = second.ensure(context, owner, [configMap('b', {})]);
      await assert.rejects(ensured, /ConfigMap "default\/a".* in one call/);
      assert.deepEqual(writes, []);
      // A list with the object, and a list of another sync, can be ensured.
      await second.ensure(context, owner, [configMap('a', {})]);
    }
    writes.length = 0;
    await ensure(pruning, configMap('b', {}));
    assert.deepEqual(writes, ['POST b', 'DELETE a']);
  });

  it('that are exact lose the members that others added', async () => {
    const owned = ownedBy({ exact: ['data', 'binaryData'] });
    const labelled = { ...configMap('a', { x: '1' }), binaryData: undefined };
    await ensure(owned, labelled);
    await ensure(owned, labelled);
    const added = { data: { y: '2' }, binaryData: { z: 'AA==' }, metadata: { labels: { l: 'm' } } };
    await edit('a', added);
    assert.deepEqual(await ensure(owned, labelled), ['updated']);
    const { data, binaryData, metadata } = await live('a');
    assert.deepEqual([data, binaryData, metadata.labels], [{ x: '1' }, undefined, { l: 'm' }]);
    writes.length = 0;
    assert.deepEqual(await ensure(owned, labelled), ['unchanged']);
    assert.deepEqual(writes, []);
  });

  it('are all written if the server rejects one, and the error names each of those', async () => {
    const owned = ownedBy({ prune: true });
    const { signal } = new AbortController();
    await owned.ensure({ client, signal }, owner, [configMap('old', {})]);
    await clock.advance(0);
    writes.length = 0;
    const rejection = owned.ensure({ client, signal }, owner, [
      configMap('a', { 'no key!': '' }),
      configMap('b', {}),
      { ...configMap('c', {}), metadata: { name: 'c', resourceVersion: '1' } },
    ]);
    await assert.rejects(rejection, (error: unknown) => {
      assert.ok(isApiError(error, 'invalid'), 'as the first');
      assert.match(error.message, /ConfigMap "a": .*; ConfigMap "c": /);
      return true;
    });
    assert.deepEqual(
      writes,
      ['POST a', 'POST b', 'POST c'],
      'prunes nothing that they may replace',
    );
  });

  it('of a kind that is not updated are only created, by default Jobs', async () => {
    const owned = new OwnedObjects(SERVICES, 'shop-controller')
      .add(jobs)
      .add(configMaps, { update: false });
    await ensure(owned, configMap('a', { x: '1' }), job('b', 'busybox'));
    writes.length = 0;
    const changed = [configMap('a', { x: '2' }), job('b', 'alpine')];
    assert.deepEqual(await ensure(owned, ...changed), ['unchanged', 'unchanged']);
    assert.deepEqual(writes, []);
  });

  it('are adopted if they have no controller, the rule accepts them, and the owner exists', async () => {
    const metadata = { namespace: NAMESPACE, name: 'a', labels: { app: 'shop' } };
    await client.create(CONFIG_MAPS, { ...configMap('a', {}), metadata });
    const desired = configMap('a', { x: '1' });
    const isCollision = (error: unknown) =>
      error instanceof SyncError && error.reason === 'ErrResourceExists';
    await assert.rejects(ensure(ownedBy(), desired, configMap('b', {})), isCollision);
    // The other objects are ensured.
    await live('b');
    const rejecting = ownedBy({ adopt: ({ metadata }) => metadata.labels?.['app'] === 'store' });
    await assert.rejects(ensure(rejecting, desired), isCollision);
    const adopting = ownedBy({ adopt: ({ metadata }) => metadata.labels?.['app'] === 'shop' });
    const { name } = owner.metadata;
    await client.delete(SERVICES, { namespace: NAMESPACE, name });
    await assert.rejects(ensure(adopting, desired), isCollision);
    const [, releases] = adopting.watches();
    const enqueued = async () => releases?.map(await live('a'));
    assert.deepEqual(await enqueued(), [keyOf(owner)], 'waits for the name');
    const { apiVersion, kind, spec } = owner;
    const draft = { metadata: { namespace: NAMESPACE, name }, spec: { ports: spec?.ports ?? [] } };
    owner = await client.create(SERVICES, { apiVersion, kind, ...draft });
    assert.deepEqual(await ensure(adopting, desired), ['updated']);
    const adopted = await live('a');
    assert.deepEqual(adopted.metadata.ownerReferences, [controllerReference(owner)]);
    assert.deepEqual([adopted.data, adopted.metadata.labels], [{ x: '1' }, { app: 'shop' }]);
    assert.deepEqual(await enqueued(), [], 'has the name');
  });

  it('are left to the garbage collector if their owner is being deleted', async () => {
    owner = {
      ...owner,
      metadata: { ...owner.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    };
    assert.deepEqual(await ensure(ownedBy({ prune: true }), configMap('a', {})), []);
    assert.deepEqual(writes, []);
  });

  it('are rejected if their kind was not added, or the owner cannot own them', async () => {
    await assert.rejects(ensure(ownedBy(), job('b', 'busybox')), /no informer of batch\/v1 Job/);
    const metadata = { name: 'a', namespace: 'kube-system' };
    const elsewhere = { ...configMap('a', {}), metadata };
    await assert.rejects(ensure(ownedBy(), elsewhere), /"shop" cannot own configmaps "a"/);
    const nodes = new InformerSet(client, { clock }).for(NODES);
    const owned = new OwnedObjects(SERVICES, 'shop-controller').add(nodes);
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec: {} };
    await assert.rejects(ensure(owned, node), /cannot own nodes "n"/);
  });
});
