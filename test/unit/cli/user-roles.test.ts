import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import type { Draft, KubernetesObject } from '../../../src/api/object.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { ATS } from '../../../src/api/generated/at.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { FOOS } from '../../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../../src/api/generated/web-app.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { crdOf } from '../../support/test-cluster.ts';
import { manifestsOf } from '../../support/roles.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../../src/api/builtin.ts';

const SPECS: readonly (readonly [resource: Resource, controller: string, spec: object])[] = [
  [COUNTS, 'count', { name: 'nginx', count: 1 }],
  [WEB_APPS, 'webapp', { version: '1.27', replicas: 1 }],
  [FOOS, 'foo', { deploymentName: 'x', replicas: 1 }],
  [ATS, 'at', { schedule: '2036-01-01T00:00:00Z', command: 'echo' }],
];
const AT = { namespace: 'default', name: 'x' };
const ROLES = manifestsOf('rbac/users/roles.yaml');

/** Returns the permitted requests. */
async function allowed(asked: Readonly<Record<string, () => Promise<unknown>>>): Promise<string[]> {
  const names: string[] = [];
  for (const [name, ask] of Object.entries(asked)) {
    try {
      await ask();
      names.push(name);
    } catch (error) {
      if (!isApiError(error, 'forbidden')) throw error;
    }
  }
  return names;
}

describe('the roles for users', () => {
  it('are a viewer and an editor for each kind, aggregated to view and edit', () => {
    const actual = ROLES.map(({ kind, metadata: { name, labels = {} } }) =>
      [kind, name, ...Object.keys(labels)].join(' '),
    );
    assert.deepEqual(
      actual.toSorted(),
      SPECS.flatMap(([, controller]) =>
        ['edit', 'view'].map(
          (verb) =>
            `ClusterRole crd-controller-${controller}-${verb === 'edit' ? 'editor' : 'viewer'} rbac.authorization.k8s.io/aggregate-to-${verb}`,
        ),
      ).toSorted(),
    );
  });

  for (const [resource, controller, spec] of SPECS) {
    it(`permit viewers of ${resource.plural} to read, and editors to write all but the status`, async () => {
      const clock = new FakeClock();
      const server = new ApiServer({
        clock,
        authenticate: true,
        users: ['viewer', 'editor'].map((name) => ({
          token: name,
          name,
          rules:
            ROLES.find(({ metadata }) => metadata.name === `crd-controller-${controller}-${name}`)
              ?.rules ?? [],
        })),
      });
      const clientOf = (token: string) =>
        new HttpClient({
          handler: (request) =>
            server.handler({
              ...request,
              headers: { ...request.headers, authorization: `Bearer ${token}` },
            }),
          server: 'https://here',
          clock,
        });
      await clientOf(server.token).create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(resource));
      const { group, version, kind } = resource;
      const draft: Draft<KubernetesObject & { spec: object }> = {
        apiVersion: `${group}/${version}`,
        kind,
        metadata: AT,
        spec,
      };
      const merge = (body: object) => ({ type: 'merge', body }) as const;
      const path = `/apis/${group}/${version}/namespaces/default/${resource.plural}/x`;
      const ask = (token: string) => {
        const client = clientOf(token);
        return allowed({
          create: () => client.create(resource, draft),
          list: () => client.list(resource, { namespace: 'default' }),
          get: () => client.get(resource, AT),
          patch: () => client.patch(resource, AT, merge({ metadata: { labels: { a: 'b' } } })),
          'patch status': () =>
            client.patch(resource, AT, merge({ status: {} }), { subresource: 'status' }),
          ...(resource !== ATS && {
            'get scale': () => client.raw({ method: 'GET', path: `${path}/scale` }),
          }),
          delete: () => client.delete(resource, AT),
        });
      };
      const scale = resource === ATS ? [] : ['get scale'];
      assert.deepEqual(await ask('editor'), ['create', 'list', 'get', 'patch', ...scale, 'delete']);
      await clientOf(server.token).create(resource, draft);
      assert.deepEqual(await ask('viewer'), ['list', 'get', ...scale]);
    });
  }
});
