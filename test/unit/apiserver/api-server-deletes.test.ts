import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  Api,
  CONFIG_MAPS,
  COUNTS,
  PODS,
  apiWithCounts,
  configMap,
  count,
  pod,
} from './api-client.ts';

describe('delete', () => {
  test('answers with a Status for most kinds and with the object for some', async () => {
    const api = await apiWithCounts();
    const { uid } = (await api.post(COUNTS, count('web'))).body.metadata;
    const custom = await api.delete(`${COUNTS}/web`);
    assert.equal(custom.status, 200);
    assert.deepEqual(custom.body, {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'web', group: 'demo.mark8s.io', kind: 'counts', uid },
    });
    await api.post(PODS, pod('web'));
    assert.equal((await api.delete(`${PODS}/web`)).body.kind, 'Pod');
    assert.equal((await api.delete(`${PODS}/web`)).status, 404);
  });

  test('checks the preconditions', async () => {
    const api = await apiWithCounts();
    const { uid, resourceVersion } = (await api.post(COUNTS, count('web'))).body.metadata;
    const other = await api.delete(`${COUNTS}/web`, { preconditions: { uid: 'other' } });
    assert.equal(other.status, 409);
    assert.match(
      other.body.message,
      /^Operation cannot be fulfilled on Count.demo.mark8s.io "web": the UID in the precondition \(other\) does not match the UID in record/,
    );
    const stale = await api.delete(`${COUNTS}/web`, { preconditions: { resourceVersion: '1' } });
    assert.equal(stale.status, 409);
    const exact = await api.delete(`${COUNTS}/web`, { preconditions: { uid, resourceVersion } });
    assert.equal(exact.status, 200);
  });

  test('waits for finalizers: marks the object first, and removes it with the last one', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, {
      ...count('web'),
      metadata: { name: 'web', finalizers: ['a.io/x', 'b.io/y'] },
    });
    const watch = await api.watch(`${COUNTS}?resourceVersion=${api.server.revision}`);
    const marked = await api.delete(`${COUNTS}/web`);
    assert.equal(marked.body.kind, 'Count');
    assert.equal(marked.body.metadata.deletionTimestamp, '2026-01-01T00:00:00Z');
    assert.equal(marked.body.metadata.deletionGracePeriodSeconds, 0);
    assert.equal(marked.body.metadata.generation, 2);
    const revision = api.server.revision;
    await api.delete(`${COUNTS}/web`);
    assert.equal(api.server.revision, revision, 'deleting again changes nothing');

    const one = await api.patch(`${COUNTS}/web`, { metadata: { finalizers: ['b.io/y'] } });
    assert.equal(one.status, 200);
    const added = await api.patch(`${COUNTS}/web`, {
      metadata: { finalizers: ['b.io/y', 'c.io/z'] },
    });
    assert.equal(added.status, 422);
    const last = await api.patch(`${COUNTS}/web`, { metadata: { finalizers: null } });
    assert.equal(last.status, 200);
    assert.equal((await api.get(`${COUNTS}/web`)).status, 404);
    assert.deepEqual(await watch.said(), ['MODIFIED web', 'MODIFIED web', 'DELETED web']);
    await watch.stop();
  });

  test('adds the finalizer of garbage collection if the propagation policy requires it', async () => {
    const api = await apiWithCounts();
    for (const [policy, finalizer] of [
      ['Foreground', 'foregroundDeletion'],
      ['Orphan', 'orphan'],
    ]) {
      await api.post(COUNTS, count(`web-${finalizer?.toLowerCase()}`));
      const path = `${COUNTS}/web-${finalizer?.toLowerCase()}`;
      const { body } = await api.delete(path, { propagationPolicy: policy });
      assert.deepEqual(body.metadata.finalizers, [finalizer]);
    }
    await api.post(COUNTS, count('plain'));
    const odd = await api.delete(`${COUNTS}/plain?propagationPolicy=Maybe`);
    assert.equal(odd.status, 422);
    assert.equal((await api.delete(`${COUNTS}/plain?propagationPolicy=Background`)).status, 200);
    assert.equal((await api.get(`${COUNTS}/plain`)).status, 404);
  });

  test('gives a scheduled Pod its grace period, which can be shortened, also to zero', async () => {
    const api = new Api();
    await api.post(PODS, pod('web'));
    const target = { apiVersion: 'v1', kind: 'Node', name: 'n' };
    await api.post(`${PODS}/web/binding`, { metadata: { name: 'web' }, target });

    const first = (await api.delete(`${PODS}/web`)).body.metadata;
    assert.equal(first.deletionGracePeriodSeconds, 30);
    assert.equal(first.deletionTimestamp, '2026-01-01T00:00:30Z');
    const longer = (await api.delete(`${PODS}/web`, { gracePeriodSeconds: 60 })).body.metadata;
    assert.equal(longer.deletionGracePeriodSeconds, 30);
    const shorter = (await api.delete(`${PODS}/web`, { gracePeriodSeconds: 5 })).body.metadata;
    assert.equal(shorter.deletionGracePeriodSeconds, 5);
    assert.equal(shorter.deletionTimestamp, '2026-01-01T00:00:05Z');
    assert.equal((await api.get(`${PODS}/web`)).status, 200);
    assert.equal((await api.delete(`${PODS}/web`, { gracePeriodSeconds: 0 })).status, 200);
    assert.equal((await api.get(`${PODS}/web`)).status, 404);
  });

  test('deletes a Pod without a node at once', async () => {
    const api = new Api();
    await api.post(PODS, pod('web'));
    await api.delete(`${PODS}/web`);
    assert.equal((await api.get(`${PODS}/web`)).status, 404);
  });

  test('keeps the object in a dry run', async () => {
    const api = new Api();
    await api.post(CONFIG_MAPS, configMap('a'));
    assert.equal((await api.delete(`${CONFIG_MAPS}/a?dryRun=All`)).status, 200);
    assert.equal((await api.delete(`${CONFIG_MAPS}/a`, { dryRun: ['All'] })).status, 200);
    assert.equal((await api.get(`${CONFIG_MAPS}/a`)).status, 200);
  });
});

describe('deletecollection', () => {
  test('deletes the selected objects and returns them', async () => {
    const api = new Api();
    for (const name of ['a', 'b', 'c']) {
      await api.post(CONFIG_MAPS, {
        ...configMap(name),
        metadata: { name, labels: { keep: String(name === 'b') } },
      });
    }
    const { body } = await api.delete(`${CONFIG_MAPS}?labelSelector=keep%3Dfalse`);
    assert.equal(body.kind, 'ConfigMapList');
    assert.equal(body.items.length, 2);
    const left = await api.get(CONFIG_MAPS);
    assert.deepEqual(
      left.body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
      ['b'],
    );
    assert.equal((await api.delete('/api/v1/configmaps')).status, 405);
  });
});

describe('namespaces', () => {
  test('the initial ones exist at the start, and those of the system cannot be deleted', async () => {
    const api = new Api();
    const { body } = await api.get('/api/v1/namespaces');
    assert.deepEqual(
      body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
      ['default', 'kube-node-lease', 'kube-public', 'kube-system'],
    );
    const refused = await api.delete('/api/v1/namespaces/default');
    assert.equal(refused.status, 403);
    assert.equal(
      refused.body.message,
      'namespaces "default" is forbidden: this namespace may not be deleted',
    );
  });

  test('a deleted one rejects new objects and is removed when it is finalized', async () => {
    const api = new Api();
    await api.post('/api/v1/namespaces', { metadata: { name: 'team' } });
    const { body } = await api.delete('/api/v1/namespaces/team');
    assert.equal(body.status.phase, 'Terminating');
    const refused = await api.post(CONFIG_MAPS.replace('default', 'team'), configMap('a'));
    assert.equal(refused.status, 403);
    assert.equal(refused.body.details.causes[0].reason, 'NamespaceTerminating');
    assert.match(
      refused.body.message,
      /^configmaps "a" is forbidden: unable to create new content in namespace team because it is being terminated$/,
    );
    const finalized = await api.put('/api/v1/namespaces/team/finalize', {
      ...body,
      spec: { finalizers: [] },
    });
    assert.equal(finalized.status, 200);
    assert.equal((await api.get('/api/v1/namespaces/team')).status, 404);
  });
});
