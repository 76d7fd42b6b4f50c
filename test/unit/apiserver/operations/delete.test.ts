import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PODS } from '../../../../src/api/builtin.ts';
import { BUILTIN_KINDS } from '../../../../src/apiserver/builtin/kinds.ts';
import { WebhookClient } from '../../../../src/apiserver/http/webhook-client.ts';
import { ServerCore } from '../../../../src/apiserver/server-core.ts';
import { ObjectStore } from '../../../../src/apiserver/storage/object-store.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { Deferred } from '../../../../src/util/deferred.ts';
import { Es256Key } from '../../../../src/util/es256-key.ts';
import { FakeClock, settle } from '../../../../src/util/fake-clock.ts';
import { Api, PODS as PATH } from '../api-client.ts';

const at = { namespace: 'default', name: 'web' };
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: at,
  spec: { containers: [{ name: 'main', image: 'nginx' }] },
};

test('clients see the end of a Pod without a node before it is removed', async () => {
  const clock = new FakeClock();
  const store = new ObjectStore({});
  const gaps: Deferred[] = [];
  const server = new ServerCore(
    { kinds: BUILTIN_KINDS, clock },
    {
      store,
      webhooks: new WebhookClient({ store, clock, functions: {} }),
      newTokenKey: () => new Es256Key('test', 'service account tokens'),
      betweenWrites: () => {
        const gap = new Deferred();
        gaps.push(gap);
        return gap.promise;
      },
    },
  );
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  await client.create(PODS, pod);
  const deletions = [client.delete(PODS, at), client.delete(PODS, at, { gracePeriodSeconds: 0 })];
  await settle();
  const { metadata } = await client.get(PODS, at);
  assert.equal(metadata.deletionGracePeriodSeconds, 0);
  gaps.pop()?.resolve();
  await deletions.pop();
  const { uid } = (await client.create(PODS, pod)).metadata;
  for (const gap of gaps) gap.resolve();
  await Promise.all(deletions);
  assert.equal((await client.get(PODS, at)).metadata.uid, uid, 'another Pod of the name is kept');
});

test('a grace period that is over leaves the kubelet one second', async () => {
  const api = new Api();
  await api.post(PATH, { ...pod, spec: { ...pod.spec, nodeName: 'node-1' } });
  await api.delete(`${PATH}/web`);
  await api.clock.advance(40_000);
  const { metadata } = (await api.delete(`${PATH}/web`, { gracePeriodSeconds: 20 })).body;
  assert.equal(metadata.deletionGracePeriodSeconds, 1);
  assert.equal(metadata.deletionTimestamp, '2026-01-01T00:00:40Z');
});
