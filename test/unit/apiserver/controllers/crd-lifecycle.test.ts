import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Json } from '../api-client.ts';
import { Api, COUNTS, CRDS, apiWithCounts, count, countCrd } from '../api-client.ts';

const CRD = `${CRDS}/counts.demo.mark8s.io`;

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
  test('has no objects when it is created again', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    await api.delete(CRD);
    await api.post(CRDS, countCrd());
    assert.deepEqual((await api.get(COUNTS)).body.items, []);
    assert.equal((await api.post(COUNTS, count('web'))).status, 201);
  });
});
