import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTarget, requestInfo } from '../../../../src/apiserver/request/request-info.ts';
import type { HttpRequest } from '../../../../src/util/http.ts';

function read(method: HttpRequest['method'], path: string): string | undefined {
  const info = requestInfo(method, parseTarget(path));
  if (!info) return undefined;
  const { verb, group, version, resource, namespace, name, subresource } = info;
  return [verb, group, version, resource, namespace, name, subresource]
    .map((part) => part ?? '-')
    .join(' ');
}

test('a resource path has group, version, resource, namespace, name and subresource', () => {
  const cases: [HttpRequest['method'], string, string | undefined][] = [
    ['GET', '/api/v1/pods', 'list  v1 pods - - -'],
    ['GET', '/api/v1/pods?watch=true', 'watch  v1 pods - - -'],
    ['GET', '/api/v1/pods?watch=1', 'watch  v1 pods - - -'],
    ['GET', '/api/v1/pods?watch=false', 'list  v1 pods - - -'],
    ['GET', '/api/v1/pods?watch=0', 'list  v1 pods - - -'],
    ['GET', '/api/v1/namespaces', 'list  v1 namespaces - - -'],
    ['GET', '/api/v1/namespaces/a', 'get  v1 namespaces - a -'],
    ['PUT', '/api/v1/namespaces/a/status', 'update  v1 namespaces - a status'],
    ['PUT', '/api/v1/namespaces/a/finalize', 'update  v1 namespaces - a finalize'],
    ['GET', '/api/v1/namespaces/a/pods', 'list  v1 pods a - -'],
    ['GET', '/api/v1/namespaces/a/pods/b?watch=true', 'get  v1 pods a b -'],
    ['POST', '/api/v1/namespaces/a/pods', 'create  v1 pods a - -'],
    ['DELETE', '/api/v1/namespaces/a/pods', 'deletecollection  v1 pods a - -'],
    ['DELETE', '/api/v1/namespaces/a/pods/b', 'delete  v1 pods a b -'],
    [
      'PATCH',
      '/apis/apps/v1/namespaces/a/deployments/b/scale',
      'patch apps v1 deployments a b scale',
    ],
    ['GET', '/apis/demo.io/v1/namespaces/status/widgets', 'list demo.io v1 widgets status - -'],
    ['GET', '/api/v1/namespaces/a/pods/b/log/c', 'get  v1 pods a b log'],
    ['DELETE', '/api/v1/proxy/namespaces/a/pods/b/c', 'proxy  v1 pods a b -'],
    ['GET', '/apis/apps/v1', undefined],
    ['GET', '/version', undefined],
    ['GET', '/', undefined],
  ];
  for (const [method, path, expected] of cases) assert.equal(read(method, path), expected, path);
});

test('segments are decoded, and a malformed escape is a bad request', () => {
  assert.equal(read('GET', '/api/v1/namespaces/a/pods/b%20c'), 'get  v1 pods a b c -');
  assert.throws(() => parseTarget('/api/v1/pods/%zz'), /invalid URL escape/);
});
