import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compareVersions } from '../../../../src/apiserver/objects/registry.ts';
import { Api, CRDS, countCrd } from '../api-client.ts';

describe('discovery', () => {
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
