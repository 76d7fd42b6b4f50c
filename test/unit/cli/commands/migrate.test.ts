import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  CUSTOM_RESOURCE_DEFINITIONS,
} from '../../../../src/api/builtin.ts';
import type { CustomResourceDefinition } from '../../../../src/api/builtin.ts';
import type { Draft, UnstructuredObject } from '../../../../src/api/object.ts';
import type { Resource } from '../../../../src/api/resource.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import type { ApiServerOptions } from '../../../../src/apiserver/api-server-options.ts';
import { migrateIn } from '../../../../src/cli/commands/migrate.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../../src/util/http.ts';

const NAME = 'boxes.example.com';
const WEBHOOK = 'https://localhost/convert';

const box = (version: string, namespaced = false): Resource<UnstructuredObject> => ({
  group: 'example.com',
  version,
  plural: 'boxes',
  kind: 'Box',
  namespaced,
});

function crd(storage: string, scope: 'Cluster' | 'Namespaced'): Draft<CustomResourceDefinition> {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: NAME },
    spec: {
      group: 'example.com',
      scope,
      names: { plural: 'boxes', kind: 'Box', shortNames: ['bx'] },
      versions: ['v1', 'v2'].map((name) => ({
        name,
        served: true,
        storage: name === storage,
        schema: {
          openAPIV3Schema: { type: 'object', properties: { size: { type: 'integer' } } },
        },
      })),
      conversion: {
        strategy: 'Webhook',
        webhook: { clientConfig: { url: WEBHOOK }, conversionReviewVersions: ['v1'] },
      },
    },
  };
}

/** A server with objects that are stored in v1, and a CRD that stores v2. */
async function boxes({
  names = ['a', 'b', 'c'],
  scope = 'Cluster',
  ...options
}: { names?: string[]; scope?: 'Cluster' | 'Namespaced' } & ApiServerOptions = {}) {
  const clock = new FakeClock();
  const server = new ApiServer({
    clock,
    ...options,
    webhooks: {
      [WEBHOOK]: ({ desiredAPIVersion, objects }) => {
        const annotations = { 'converted-to': String(desiredAPIVersion) };
        return {
          result: { status: 'Success' },
          convertedObjects: (objects as UnstructuredObject[]).map((object) =>
            Object.assign({}, object, {
              apiVersion: desiredAPIVersion,
              metadata: { ...object.metadata, annotations },
            }),
          ),
        };
      },
    },
  });
  const clientOver = (handler: HttpHandler) =>
    new HttpClient({ handler, server: 'in-process', clock });
  const client = clientOver(server.handler);
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd('v1', scope));
  const namespaced = scope === 'Namespaced';
  for (const name of names) {
    await client.create(box('v1', namespaced), {
      apiVersion: 'example.com/v1',
      kind: 'Box',
      metadata: { name, ...(namespaced && { namespace: 'default' }) },
      size: 1,
    });
  }
  const store = async (version: string) => {
    await client.patch(
      CUSTOM_RESOURCE_DEFINITIONS,
      { name: NAME },
      { type: 'merge', body: { spec: { versions: crd(version, scope).spec?.versions } } },
    );
  };
  await store('v2');
  const printed: string[] = [];
  const warned: string[] = [];
  return {
    server,
    client,
    printed,
    warned,
    store,
    clock,
    clientOver,
    migrate: ({ name = 'boxes', dryRun = false, by = client } = {}) =>
      migrateIn(by, name, dryRun, {
        print: (text) => printed.push(text),
        warn: (text) => warned.push(text),
        signal: new AbortController().signal,
        clock,
        pageSize: 10,
      }),
    storedVersions: async () =>
      (await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name: NAME })).status?.storedVersions,
    /** Returns the names of the objects that are not stored in v2. */
    outdated: async () => {
      const { items } = await client.list(box('v1', namespaced));
      return items
        .filter(({ metadata }) => metadata.annotations?.['converted-to'] !== 'example.com/v1')
        .map(({ metadata }) => metadata.name)
        .toSorted();
    },
  };
}

describe('crd-controller migrate', () => {
  test('rewrites all objects in the storage version and prunes the stored versions', async () => {
    for (const [name, scope] of [
      ['bx', 'Cluster'],
      ['Box', 'Namespaced'],
      ['boxes.example.com', 'Namespaced'],
    ] as const) {
      const { migrate, storedVersions, outdated, printed, client } = await boxes({ scope });
      const before = await client.list(box('v2', scope === 'Namespaced'));
      assert.deepEqual(await outdated(), ['a', 'b', 'c']);
      assert.equal(await migrate({ name }), 0);
      assert.deepEqual(await outdated(), []);
      assert.deepEqual(await storedVersions(), ['v2']);
      const after = await client.list(box('v2', scope === 'Namespaced'));
      const specs = (list: typeof before) =>
        list.items.map(({ size, metadata }) => [metadata.name, metadata.generation, size]);
      assert.deepEqual(specs(after), specs(before));
      assert.match(printed.join('\n'), /Rewrote 3 objects; 0 were up to date; 0 changed/);
    }
  });

  test('does nothing if it has run before', async () => {
    const { migrate, server, printed } = await boxes();
    assert.equal(await migrate(), 0);
    const methods: string[] = [];
    server.faults.beforeRequest(({ method }) => void methods.push(method));
    printed.length = 0;
    assert.equal(await migrate(), 0);
    assert.deepEqual(new Set(methods), new Set(['GET']));
    assert.deepEqual(printed, [`${NAME}: all objects are stored in v2; nothing to do`]);
  });

  test('stores nothing in a dry run', async () => {
    const { migrate, outdated, storedVersions, printed } = await boxes();
    assert.equal(await migrate({ dryRun: true }), 0);
    assert.deepEqual(await outdated(), ['a', 'b', 'c']);
    assert.deepEqual(await storedVersions(), ['v1', 'v2']);
    assert.match(printed.join('\n'), /would remove v1/);
  });

  test('counts objects that others write, delete and create meanwhile as done', async () => {
    const { migrate, server, client, outdated, storedVersions, printed } = await boxes({
      names: ['a', 'b', 'c', 'e'],
    });
    await client.patch(box('v2'), { name: 'e' }, { type: 'merge', body: { size: 2 } });
    const remove = server.faults.afterRequest(async ({ info }) => {
      if (info?.verb !== 'list' || info.resource !== 'boxes') return;
      remove();
      await client.patch(box('v2'), { name: 'a' }, { type: 'merge', body: { size: 2 } });
      await client.delete(box('v2'), { name: 'b' });
      await client.create(box('v1'), {
        apiVersion: 'example.com/v1',
        kind: 'Box',
        metadata: { name: 'd' },
      });
    });
    assert.equal(await migrate(), 0);
    assert.deepEqual(await outdated(), []);
    assert.deepEqual(await storedVersions(), ['v2']);
    assert.match(printed.join('\n'), /Rewrote 1 object; 1 were up to date; 2 changed meanwhile/);
  });

  test('lists again if the list expires between two pages, and prints its progress', async () => {
    const names = Array.from({ length: 21 }, (_, at) => `n${at}`);
    const { migrate, server, outdated, printed } = await boxes({ names });
    server.faults.failNext(
      ({ method, path }) => method === 'GET' && path.includes('continue='),
      410,
    );
    assert.equal(await migrate(), 0);
    assert.deepEqual(await outdated(), []);
    assert.match(printed.join('\n'), /16 of 21 objects done\nRewrote 21 objects/);
  });

  test('keeps the stored versions if a write fails, and rewrites the other objects', async () => {
    const { migrate, server, outdated, storedVersions, warned } = await boxes();
    server.faults.failNext({ method: 'PATCH', name: 'b' }, 500);
    assert.equal(await migrate(), 1);
    assert.deepEqual(await outdated(), ['b']);
    assert.deepEqual(await storedVersions(), ['v1', 'v2']);
    assert.match(warned.join('\n'), /^Error: b: .*\nError: 1 object could not be rewritten/);
    assert.equal(await migrate(), 0);
    assert.deepEqual(await storedVersions(), ['v2']);
  });

  test('keeps the stored versions if the storage version changes meanwhile', async () => {
    const { migrate, server, store, storedVersions } = await boxes();
    const remove = server.faults.afterRequest(async ({ info }) => {
      if (info?.verb !== 'patch' || info.name !== 'c') return;
      remove();
      await store('v1');
      await store('v2');
    });
    await assert.rejects(migrate(), /changed during the migration.*Run the command again/);
    assert.deepEqual(await storedVersions(), ['v1', 'v2']);
  });

  test('waits until the server stores objects in the storage version', async () => {
    const { migrate, server, store, clientOver, client, clock, outdated } = await boxes();
    await store('v1');
    const stale = JSON.stringify(await client.raw({ path: '/apis/example.com/v2' }));
    await store('v2');
    let staleResponses = 3;
    const by = clientOver((request) =>
      request.path === '/apis/example.com/v2' && staleResponses-- > 0
        ? Promise.resolve({ status: 200, headers: {}, body: Readable.from([Buffer.from(stale)]) })
        : server.handler(request),
    );
    const migration = migrate({ by });
    await clock.advance(2000);
    assert.deepEqual(await outdated(), ['a', 'b', 'c']);
    await clock.advance(1000);
    assert.equal(await migration, 0);
    assert.deepEqual(await outdated(), []);
  });

  test('names the missing rule, before the first write', async () => {
    const { migrate, clientOver, outdated, server, client } = await boxes();
    const by = clientOver((request) =>
      server.handler({ ...request, headers: { ...request.headers, 'impersonate-user': 'jane' } }),
    );
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'migration' } };
    const rules = [
      {
        apiGroups: ['apiextensions.k8s.io'],
        resources: ['customresourcedefinitions'],
        verbs: ['get'],
      },
      { apiGroups: ['example.com'], resources: ['boxes'], verbs: ['list', 'patch'] },
    ];
    await client.create(CLUSTER_ROLES, { ...role, kind: 'ClusterRole', rules });
    await client.create(CLUSTER_ROLE_BINDINGS, {
      ...role,
      kind: 'ClusterRoleBinding',
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'migration' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' }],
    });
    await assert.rejects(
      migrate({ by }),
      /ClusterRole of the user: \{apiGroups: \["apiextensions.k8s.io"\], resources: \["customresourcedefinitions\/status"\], verbs: \["patch"\]\}/,
    );
    assert.deepEqual(await outdated(), ['a', 'b', 'c']);
  });

  test('rejects kinds that are unknown or built in', async () => {
    const { migrate } = await boxes({ names: [] });
    await assert.rejects(migrate({ name: 'circles' }), /the server has no resource circles/);
    await assert.rejects(
      migrate({ name: 'pods' }),
      /pods is not defined by a CustomResourceDefinition/,
    );
  });
});
