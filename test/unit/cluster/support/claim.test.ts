import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { PODS, REPLICA_SETS } from '../../../../src/api/builtin.ts';
import { controllerOf } from '../../../../src/api/metadata.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { claim, claimable, mapToClaimants } from '../../../../src/cluster/support/claim.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

const LABELS = { app: 'web' };
const template = {
  metadata: { labels: LABELS },
  spec: { containers: [{ name: 'app', image: 'nginx' }] },
};

/** A ReplicaSet in two namespaces, and a Pod without an owner in one of them. */
async function newOrphan(context: TestContext) {
  const clock = new FakeClock();
  const { handler } = new ApiServer({ clock });
  const client = new HttpClient({ handler, server: 'https://test', clock });
  const createSet = (namespace: string) =>
    client.create(REPLICA_SETS, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'web', namespace, finalizers: ['example.com/hold'] },
      spec: { selector: { matchLabels: LABELS }, template },
    });
  const owner = await createSet('default');
  await createSet('kube-public');
  const { metadata, spec } = template;
  const at = { name: 'orphan', namespace: 'default' };
  await client.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, ...at },
    spec,
  });
  const informers = new InformerSet(client, { clock });
  const owned = claimable({ informers }, PODS);
  const owners = informers.for(REPLICA_SETS);
  const stop = new AbortController();
  const running = informers.run(stop.signal);
  context.after(async () => {
    stop.abort();
    await clock.advance(1000);
    await running;
  });
  await clock.advance(100);
  const orphan = () => client.get(PODS, at);
  const patch = async (metadata: object) => {
    await client.patch(PODS, at, { type: 'merge', body: { metadata } });
    await clock.advance(100);
  };
  /** Claims for the ReplicaSet as the cache of its controller has it. */
  const claimed = (metadata: object = {}) => {
    const claimant = { ...owner, metadata: { ...owner.metadata, ...metadata } };
    const options = { owner: claimant, ownerResource: REPLICA_SETS, owned };
    return claim({ client, signal: stop.signal }, options);
  };
  return { client, owner, owners, orphan, patch, claimed };
}

test('an owner adopts a Pod that its selector matches', async (context) => {
  const { owner, owners, orphan, claimed } = await newOrphan(context);
  assert.deepEqual(mapToClaimants(owners)(await orphan()), ['default/web']);
  assert.equal((await claimed()).length, 1);
  assert.equal(controllerOf(await orphan())?.uid, owner.metadata.uid);
});

test('an owner adopts no Pod that is being deleted', async (context) => {
  const { client, orphan, patch, claimed } = await newOrphan(context);
  await patch({ finalizers: ['example.com/hold'] });
  await client.delete(PODS, (await orphan()).metadata);
  await patch({ labels: { ...LABELS, more: 'yes' } });
  assert.deepEqual(await claimed(), []);
  assert.equal(controllerOf(await orphan()), undefined);
});

test('an owner that is being deleted keeps a Pod that its selector no longer matches', async (context) => {
  const { owner, orphan, patch, claimed } = await newOrphan(context);
  await claimed();
  await patch({ labels: { app: 'other' } });
  const deleted = { deletionTimestamp: owner.metadata.creationTimestamp };
  assert.equal((await claimed(deleted)).length, 1);
  assert.equal(controllerOf(await orphan())?.uid, owner.metadata.uid);
  assert.deepEqual(await claimed(), []);
  assert.equal(controllerOf(await orphan()), undefined);
});

for (const [what, isReplaced] of [
  ['is being deleted', false],
  ['was replaced', true],
] as const) {
  test(`an owner that ${what}, which its cache does not show, adopts nothing`, async (context) => {
    const { client, owner, orphan, claimed } = await newOrphan(context);
    await client.delete(REPLICA_SETS, owner.metadata);
    if (isReplaced) {
      const body = { metadata: { finalizers: [] } };
      await client.patch(REPLICA_SETS, owner.metadata, { type: 'merge', body });
      const { name, namespace } = owner.metadata;
      await client.create(REPLICA_SETS, { ...owner, metadata: { name, namespace } });
    }
    assert.deepEqual(await claimed(), []);
    assert.equal(controllerOf(await orphan()), undefined);
  });
}
