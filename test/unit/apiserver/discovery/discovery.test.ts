import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compareVersions } from '../../../../src/apiserver/objects/registry.ts';
import type { Json } from '../api-client.ts';
import { Api, CRDS, apiWithCounts, countCrd } from '../api-client.ts';

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

describe('discovery', () => {
  test('serves groups, versions and resources', async () => {
    const api = await apiWithCounts();
    assert.deepEqual((await api.get('/api')).body.versions, ['v1']);
    const groups = (await api.get('/apis')).body.groups;
    const names = groups.map(({ name }: Json) => name);
    assert.deepEqual([names[0], names.at(-1)], ['apiregistration.k8s.io', 'demo.mark8s.io']);
    for (const name of ['apps', 'batch', 'demo.mark8s.io', 'events.k8s.io', 'networking.k8s.io']) {
      assert.ok(names.includes(name), name);
    }
    assert.deepEqual((await api.get('/apis/demo.mark8s.io')).body, {
      kind: 'APIGroup',
      apiVersion: 'v1',
      name: 'demo.mark8s.io',
      versions: [{ groupVersion: 'demo.mark8s.io/v1', version: 'v1' }],
      preferredVersion: { groupVersion: 'demo.mark8s.io/v1', version: 'v1' },
    });
    const { resources } = (await api.get('/apis/demo.mark8s.io/v1')).body;
    assert.deepEqual(
      resources.map(({ name, kind, verbs }: Json) => `${name} ${kind} ${verbs.join(',')}`),
      [
        'counts Count delete,deletecollection,get,list,patch,create,update,watch',
        'counts/status Count get,patch,update',
        'counts/scale Scale get,patch,update',
      ],
    );
    assert.deepEqual(resources[0].shortNames, ['ct']);
    assert.equal(resources[2].group, 'autoscaling');
    const core = new Set((await api.get('/api/v1')).body.resources.map(({ name }: Json) => name));
    for (const name of ['pods', 'pods/binding', 'namespaces/finalize', 'events']) {
      assert.ok(core.has(name), name);
    }
    assert.equal((await api.get('/apis/nothing.io')).status, 404);
    assert.equal((await api.get('/apis/apps/v7')).status, 404);
  });

  test('serves the aggregated form on request', async () => {
    const api = await apiWithCounts();
    const { headers, body } = await api.get('/apis', {
      accept: `${AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json`,
    });
    assert.equal(headers['content-type'], AGGREGATED);
    const group = body.items.find(({ metadata }: Json) => metadata.name === 'demo.mark8s.io');
    const [resource] = group.versions[0].resources;
    assert.equal(resource.resource, 'counts');
    assert.equal(resource.scope, 'Namespaced');
    assert.deepEqual(resource.responseKind, {
      group: 'demo.mark8s.io',
      version: 'v1',
      kind: 'Count',
    });
    assert.deepEqual(
      resource.subresources.map(({ subresource }: Json) => subresource),
      ['status', 'scale'],
    );
    const core = (await api.get('/api', { accept: AGGREGATED })).body;
    assert.equal(core.items[0].metadata.name, undefined);
    assert.equal((await api.get('/apis')).body.kind, 'APIGroupList');
  });

  test('follows CRDs at once, and so does OpenAPI', async () => {
    const api = new Api();
    const index = async () => Object.keys((await api.get('/openapi/v3')).body.paths);
    assert.ok(!(await index()).includes('apis/demo.mark8s.io/v1'));
    await api.post(CRDS, countCrd());
    assert.ok((await index()).includes('apis/demo.mark8s.io/v1'));
    const document = await api.get('/openapi/v3/apis/demo.mark8s.io/v1');
    const { etag = '' } = document.headers;
    assert.ok(document.body.paths['/apis/demo.mark8s.io/v1/counts']);
    const same = await api.get('/openapi/v3/apis/demo.mark8s.io/v1', { 'if-none-match': etag });
    assert.equal(same.status, 304);
    await api.delete(`${CRDS}/counts.demo.mark8s.io`);
    assert.ok(!(await index()).includes('apis/demo.mark8s.io/v1'));
  });

  test('prefers versions in the order of Kubernetes', () => {
    const versions = ['v1alpha1', 'foo1', 'v2', 'v10', 'v1beta2', 'v1', 'v11alpha2', 'v1beta10'];
    assert.deepEqual(versions.sort(compareVersions), [
      'v10',
      'v2',
      'v1',
      'v1beta10',
      'v1beta2',
      'v11alpha2',
      'v1alpha1',
      'foo1',
    ]);
  });
});

describe('the server itself', () => {
  test('serves health, version and paths', async () => {
    const api = new Api();
    for (const path of ['/healthz', '/livez', '/readyz', '/readyz/ping']) {
      const { status, text } = await api.get(path);
      assert.equal(status, 200);
      assert.equal(text, 'ok');
    }
    assert.match((await api.get('/version')).body.gitVersion, /^v1\.\d+\.\d+/);
    const older = await new Api({ kubernetesVersion: '1.35' }).get('/version');
    assert.match(older.body.gitVersion, /^v1\.35\.0/);
    assert.equal(older.body.minor, '35');
    assert.ok((await api.get('/')).body.paths.includes('/apis/apps/v1'));
  });
});
