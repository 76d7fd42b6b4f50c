import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COUNTS, PODS, apiWithCounts, count, pod } from './api-client.ts';

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
});
