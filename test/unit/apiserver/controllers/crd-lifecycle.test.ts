import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Json } from '../api-client.ts';
import { Api, COUNTS, CRDS, apiWithCounts, count, countCrd } from '../api-client.ts';

const CRD = `${CRDS}/counts.demo.mark8s.io`;

function condition(crd: Json, type: string): Json {
  return crd.status.conditions.find((each: Json) => each.type === type);
}

describe('a new CRD', () => {
  test('has accepted names and is established and served at once', async () => {
    const api = new Api();
    const watch = await api.watch(CRDS);
    const created = await api.post(CRDS, countCrd());
    assert.equal(created.status, 201);
    assert.deepEqual(created.body.status.storedVersions, ['v1']);
    assert.deepEqual(await watch.said(), [
      'ADDED counts.demo.mark8s.io',
      'MODIFIED counts.demo.mark8s.io',
    ]);
    const { body } = await api.get(CRD);
    assert.equal(condition(body, 'NamesAccepted').status, 'True');
    assert.deepEqual(condition(body, 'Established'), {
      type: 'Established',
      status: 'True',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      reason: 'InitialNamesAccepted',
      message: 'the initial names have been accepted',
    });
    assert.deepEqual(body.status.acceptedNames, {
      plural: 'counts',
      singular: 'count',
      kind: 'Count',
      listKind: 'CountList',
      shortNames: ['ct'],
    });
    assert.equal((await api.get(COUNTS)).status, 200);
    await watch.stop();
  });

  test('that is invalid is rejected', async () => {
    const api = new Api();
    const misnamed = countCrd((crd) => (crd.metadata.name = 'other'));
    const { status, body } = await api.post(CRDS, misnamed);
    assert.equal(status, 422);
    assert.match(
      body.message,
      /metadata.name: Invalid value: "other": must be spec.names.plural\+"."\+spec.group/,
    );
    assert.equal((await api.get(COUNTS)).status, 404);
  });

  test('waits while another CRD has its kind, and gets it when that CRD is deleted', async () => {
    const api = await apiWithCounts();
    const rival = countCrd((crd) => {
      crd.metadata.name = 'tallies.demo.mark8s.io';
      crd.spec.names = { plural: 'tallies', singular: 'tally', kind: 'Count', shortNames: ['ct'] };
    });
    await api.post(CRDS, rival);
    const path = `${CRDS}/tallies.demo.mark8s.io`;
    const waiting = (await api.get(path)).body;
    assert.equal(condition(waiting, 'NamesAccepted').status, 'False');
    assert.equal(condition(waiting, 'NamesAccepted').reason, 'ListKindConflict');
    assert.match(condition(waiting, 'NamesAccepted').message, /"CountList" is already in use/);
    assert.equal(condition(waiting, 'Established').status, 'False');
    const tallies = COUNTS.replace('counts', 'tallies');
    assert.equal((await api.get(tallies)).status, 404);
    await api.delete(CRD);
    assert.equal(condition((await api.get(path)).body, 'Established').status, 'True');
    assert.equal((await api.get(tallies)).status, 200);
  });
});

describe('a changed CRD', () => {
  async function change(api: Api, edit: (crd: Json) => void): Promise<void> {
    const { body } = await api.get(CRD);
    edit(body);
    const reply = await api.put(CRD, body);
    assert.equal(reply.status, 200, reply.body.message);
  }

  test('applies at once, also to stored objects', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    const { resourceVersion } = (await api.get(`${COUNTS}/web`)).body.metadata;
    await change(api, (crd) => {
      const { properties } = crd.spec.versions[0].schema.openAPIV3Schema.properties.spec;
      delete properties.count;
      properties.mode = { type: 'string', default: 'fast' };
      delete crd.spec.versions[0].subresources.scale;
    });
    const { body } = await api.get(`${COUNTS}/web`);
    assert.deepEqual(body.spec, { name: 'nginx', mode: 'fast' });
    assert.equal(body.metadata.resourceVersion, resourceVersion, 'it was read, not written');
  });

  test('ends its watches, unless nothing changed', async () => {
    const api = await apiWithCounts();
    const watch = await api.watch(COUNTS);
    await change(api, (crd) => (crd.metadata.labels = { a: 'b' }));
    await watch.said();
    assert.equal(watch.ended, false);
    await change(api, (crd) => (crd.spec.versions[0].additionalPrinterColumns = undefined));
    await watch.said();
    assert.equal(watch.ended, true);
  });

  test('serves new versions of the same objects and drops old ones', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    await change(api, (crd) => {
      const [v1] = crd.spec.versions;
      crd.spec.versions = [
        { ...v1, storage: false },
        { ...v1, name: 'v2' },
      ];
    });
    const v2 = COUNTS.replace('v1', 'v2');
    const { body } = await api.get(`${v2}/web`);
    assert.equal(body.apiVersion, 'demo.mark8s.io/v2');
    assert.equal((await api.get(`${COUNTS}/web`)).body.apiVersion, 'demo.mark8s.io/v1');
    assert.deepEqual((await api.get(CRD)).body.status.storedVersions, ['v1', 'v2']);
    await change(api, (crd) => (crd.spec.versions[0].served = false));
    assert.equal((await api.get(`${COUNTS}/web`)).status, 404);
    assert.equal((await api.get(`${v2}/web`)).status, 200);
  });
});

describe('a deleted CRD', () => {
  test('deletes its objects and is no longer served', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    const crds = await api.watch(`${CRDS}?resourceVersion=${api.server.revision}`);
    const { body } = await api.delete(CRD);
    assert.equal(condition(body, 'Terminating').status, 'True');
    assert.deepEqual(body.metadata.finalizers, ['customresourcecleanup.apiextensions.k8s.io']);
    assert.deepEqual(await crds.said(), [
      'MODIFIED counts.demo.mark8s.io',
      'DELETED counts.demo.mark8s.io',
    ]);
    assert.equal((await api.get(COUNTS)).status, 404);
    assert.equal((await api.get('/apis/demo.mark8s.io')).status, 404);
    await crds.stop();
  });

  test('has no objects when it is created again', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    await api.delete(CRD);
    await api.post(CRDS, countCrd());
    assert.deepEqual((await api.get(COUNTS)).body.items, []);
    assert.equal((await api.post(COUNTS, count('web'))).status, 201);
  });

  test('waits for objects with finalizers, and rejects new objects', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, { ...count('web'), metadata: { name: 'web', finalizers: ['a.io/x'] } });
    await api.delete(CRD);
    const refused = await api.post(COUNTS, count('late'));
    assert.equal(refused.status, 403);
    assert.match(
      refused.body.message,
      /create not allowed while custom resource definition is terminating/,
    );
    assert.ok((await api.get(`${COUNTS}/web`)).body.metadata.deletionTimestamp);
    assert.equal((await api.get(CRD)).status, 200);
    await api.patch(`${COUNTS}/web`, { metadata: { finalizers: null } });
    assert.equal((await api.get(CRD)).status, 404);
    assert.equal((await api.get(COUNTS)).status, 404);
  });
});
