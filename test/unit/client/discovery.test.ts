import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import { discover, serverVersion } from '../../../src/client/discovery.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { http1Transport } from '../../../src/client/transport/transport.ts';
import { sendJson, sendStatus, serve } from './server.ts';

/** A server that returns a document for each path, and otherwise 404. */
async function connect(t: TestContext, documents: Record<string, unknown>) {
  const seen: string[] = [];
  const { url } = await serve(t, (request, response) => {
    const path = String(request.url);
    seen.push(path);
    const document = documents[path];
    if (document === undefined) sendStatus(response, 503, 'ServiceUnavailable');
    else sendJson(response, document);
  });
  const transport = http1Transport({ server: url });
  t.after(() => transport.close());
  return { client: new HttpClient({ handler: transport.handle, server: url }), seen };
}

function aggregatedResource(plural: string, kind: string, more: object = {}): object {
  return {
    resource: plural,
    responseKind: { group: '', version: '', kind },
    scope: 'Namespaced',
    singularResource: kind.toLowerCase(),
    verbs: ['get', 'list'],
    ...more,
  };
}

const AGGREGATED = {
  '/api': {
    kind: 'APIGroupDiscoveryList',
    items: [
      {
        metadata: {},
        versions: [
          {
            version: 'v1',
            freshness: 'Current',
            resources: [
              aggregatedResource('pods', 'Pod', { shortNames: ['po'], categories: ['all'] }),
              aggregatedResource('nodes', 'Node', { scope: 'Cluster' }),
              aggregatedResource('events', 'Event', { shortNames: ['ev'] }),
            ],
          },
        ],
      },
    ],
  },
  '/apis': {
    kind: 'APIGroupDiscoveryList',
    items: [
      {
        metadata: { name: 'demo.mark8s.io' },
        versions: [
          {
            version: 'v1',
            resources: [
              aggregatedResource('counts', 'Count', {
                shortNames: ['ct'],
                subresources: [{ subresource: 'status' }, { subresource: 'scale' }],
              }),
            ],
          },
          { version: 'v1beta1', resources: [aggregatedResource('counts', 'Count')] },
        ],
      },
      {
        metadata: { name: 'events.k8s.io' },
        versions: [{ version: 'v1', resources: [aggregatedResource('events', 'Event')] }],
      },
      {
        metadata: { name: 'metrics.k8s.io' },
        versions: [{ version: 'v1', freshness: 'Stale' }],
      },
    ],
  },
};

const LEGACY = {
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/api/v1': {
    kind: 'APIResourceList',
    resources: [
      {
        name: 'pods',
        singularName: '',
        namespaced: true,
        kind: 'Pod',
        verbs: ['list'],
        shortNames: ['po'],
      },
      { name: 'pods/status', namespaced: true, kind: 'Pod', verbs: ['get'] },
      { name: 'nodes', singularName: 'node', namespaced: false, kind: 'Node', verbs: [] },
    ],
  },
  '/apis': {
    kind: 'APIGroupList',
    groups: [
      {
        name: 'demo.mark8s.io',
        versions: [
          { groupVersion: 'demo.mark8s.io/v1beta1' },
          { groupVersion: 'demo.mark8s.io/v1' },
        ],
        preferredVersion: { groupVersion: 'demo.mark8s.io/v1' },
      },
      { name: 'metrics.k8s.io', versions: [{ groupVersion: 'metrics.k8s.io/v1' }] },
    ],
  },
  '/apis/demo.mark8s.io/v1': {
    kind: 'APIResourceList',
    resources: [
      {
        name: 'counts',
        singularName: 'count',
        namespaced: true,
        kind: 'Count',
        shortNames: ['ct'],
        verbs: [],
      },
      { name: 'counts/scale', namespaced: true, kind: 'Scale', verbs: [] },
      { name: 'counts/status', namespaced: true, kind: 'Count', verbs: [] },
    ],
  },
  '/apis/demo.mark8s.io/v1beta1': {
    kind: 'APIResourceList',
    resources: [
      { name: 'counts', singularName: 'count', namespaced: true, kind: 'Count', verbs: [] },
    ],
  },
};

test('uses two requests with aggregated discovery', async (t) => {
  const { client, seen } = await connect(t, AGGREGATED);
  const { resources, failed } = await discover(client);
  assert.deepEqual(seen.toSorted(), ['/api', '/apis']);
  assert.deepEqual(
    resources.find(({ plural, version }) => plural === 'counts' && version === 'v1'),
    {
      group: 'demo.mark8s.io',
      version: 'v1',
      plural: 'counts',
      kind: 'Count',
      namespaced: true,
      singular: 'count',
      shortNames: ['ct'],
      categories: [],
      verbs: ['get', 'list'],
      subresources: ['status', 'scale'],
    },
  );
  assert.equal(resources.find(({ kind }) => kind === 'Node')?.namespaced, false);
  assert.deepEqual(failed, ['metrics.k8s.io/v1']);
});

test('requests each group of an older server, and reports groups that are not available', async (t) => {
  const { client } = await connect(t, LEGACY);
  const discovery = await discover(client);
  const { resources, failed } = discovery;
  assert.deepEqual(failed, ['metrics.k8s.io/v1']);
  assert.deepEqual(
    resources.map(({ group, version, plural }) => `${group}/${version}/${plural}`),
    ['/v1/pods', '/v1/nodes', 'demo.mark8s.io/v1/counts', 'demo.mark8s.io/v1beta1/counts'],
  );
  const counts = discovery.resolve('ct');
  assert.deepEqual(counts?.subresources, ['scale', 'status']);
  assert.deepEqual(discovery.resolve('pods')?.subresources, ['status']);
  assert.equal(discovery.resolve('pod')?.kind, 'Pod');
});

test('resolves every name that kubectl accepts', async (t) => {
  const { client } = await connect(t, AGGREGATED);
  const discovery = await discover(client);
  const found = (name: string) => {
    const resource = discovery.resolve(name);
    return resource && `${resource.group}/${resource.version}/${resource.plural}`;
  };
  for (const name of [
    'counts',
    'count',
    'Count',
    'CT',
    'ct.demo.mark8s.io',
    'counts.v1.demo.mark8s.io',
  ]) {
    assert.equal(found(name), 'demo.mark8s.io/v1/counts', name);
  }
  assert.equal(found('counts.v1beta1.demo.mark8s.io'), 'demo.mark8s.io/v1beta1/counts');
  assert.equal(found('events'), '/v1/events');
  assert.equal(found('events.events.k8s.io'), 'events.k8s.io/v1/events');
  for (const name of [
    '',
    'counter',
    'counts.demo',
    'counts.v2.demo.mark8s.io',
    'pods.demo.mark8s.io',
  ]) {
    assert.equal(found(name), undefined, name);
  }
});

test('reads the version of a server, and rejects other responses', async (t) => {
  const version = { major: '1', minor: '36', gitVersion: 'v1.36.1', platform: 'linux/amd64' };
  const { client } = await connect(t, { '/version': { ...version, goVersion: 'go1.26' } });
  assert.deepEqual(await serverVersion(client), version);
  const { client: untrusted } = await connect(t, {
    '/version': { name: 'other' },
    '/api': [],
    '/apis': [],
  });
  await assert.rejects(serverVersion(untrusted), (error) => isApiError(error, 'malformed'));
  await assert.rejects(discover(untrusted), (error) => isApiError(error, 'malformed'));
});
