import assert from 'node:assert/strict';
import { test } from 'node:test';
import { APPLY, Api, COUNTS, PODS, apiWithCounts, count, pod } from '../api-client.ts';

test('the creator of an object owns its defaults, but not the fields that admission adds', async () => {
  const api = new Api();
  const { metadata, spec } = (await api.post(PODS, pod('web'))).body;
  const owned = metadata.managedFields[0].fieldsV1['f:spec'];
  assert.equal(spec.tolerations.length, 2);
  for (const field of ['f:tolerations', 'f:priority', 'f:preemptionPolicy']) {
    assert.equal(field in owned, false, field);
  }
  assert.deepEqual(owned['f:schedulerName'], {});
});

test('the zero values of Go structs have no owner', async () => {
  const api = new Api();
  const { metadata } = (await api.post(PODS, pod('web', { labels: { app: 'web' } }))).body;
  const { 'f:spec': spec, 'f:metadata': meta } = metadata.managedFields[0].fieldsV1;
  assert.deepEqual(meta, { 'f:labels': { '.': {}, 'f:app': {} } });
  assert.equal('.' in spec, false);
  assert.deepEqual(
    Object.keys(spec['f:containers']).map((key) => key.slice(0, 2)),
    ['k:'],
  );
});

test('a custom object is created with all its members', async () => {
  const api = await apiWithCounts();
  const { metadata } = (await api.post(COUNTS, count('web'))).body;
  assert.deepEqual(metadata.managedFields[0].fieldsV1['f:spec']['.'], {});
});

test('an apply that creates an object owns the applied fields only', async () => {
  const api = new Api();
  const { kind, apiVersion, metadata, spec } = pod('web');
  const applied = { kind, apiVersion, metadata, spec };
  const reply = await api.patch(`${PODS}/web?fieldManager=me`, applied, APPLY);
  assert.equal(reply.status, 201);
  const [{ manager, fieldsV1 }] = reply.body.metadata.managedFields;
  assert.equal(manager, 'me');
  assert.deepEqual(Object.keys(fieldsV1['f:spec']), ['f:containers']);
});
