import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import * as builtin from '../../src/api/builtin.ts';
import { apiVersionOf } from '../../src/api/resource.ts';
import { parseExposition } from '../support/exposition.ts';
import type { Json } from './api.ts';
import { Api } from './api.ts';
import { GROUP, widgetCrd } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
});

after(() => api.close());

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** Returns a resource without the fields that depend on the server. */
function plain({ storageVersionHash: _hash, verbs, ...resource }: Json): Json {
  return { ...resource, verbs: verbs.toSorted() };
}

async function resources(path: string): Promise<Map<string, Json>> {
  const { body } = await api.get(path);
  assert.equal(body.kind, 'APIResourceList');
  return new Map(body.resources.map((resource: Json) => [resource.name, plain(resource)]));
}

test('the core group has one version, and the address of the server', async () => {
  const { body } = await api.get('/api');
  const [{ serverAddress }] = body.serverAddressByClientCIDRs;
  assert.deepEqual(body, {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
  });
  // A kube-apiserver can advertise another address of its machine.
  assert.match(serverAddress, new RegExp(`^[\\w.-]+:${api.port}$`));
});

test('a group is listed with its versions and the preferred one', async () => {
  const version = { groupVersion: `${GROUP}/v1`, version: 'v1' };
  const group = { name: GROUP, versions: [version], preferredVersion: version };
  const { body } = await api.get('/apis');
  assert.deepEqual([body.kind, body.apiVersion], ['APIGroupList', 'v1']);
  assert.deepEqual(
    body.groups.find(({ name }: Json) => name === GROUP),
    group,
  );
  assert.deepEqual((await api.get(`/apis/${GROUP}`)).body, {
    kind: 'APIGroup',
    apiVersion: 'v1',
    ...group,
  });
});

test('a CRD is discovered with its names, verbs and subresources', async () => {
  const found = await resources(`/apis/${GROUP}/v1`);
  assert.deepEqual([...found.keys()].toSorted(), ['widgets', 'widgets/scale', 'widgets/status']);
  assert.deepEqual(found.get('widgets'), {
    name: 'widgets',
    singularName: 'widget',
    namespaced: true,
    kind: 'Widget',
    verbs: VERBS,
    shortNames: ['wd'],
  });
  assert.deepEqual(found.get('widgets/status'), {
    name: 'widgets/status',
    singularName: '',
    namespaced: true,
    kind: 'Widget',
    verbs: ['get', 'patch', 'update'],
  });
  assert.deepEqual(found.get('widgets/scale'), {
    name: 'widgets/scale',
    singularName: '',
    namespaced: true,
    group: 'autoscaling',
    version: 'v1',
    kind: 'Scale',
    verbs: ['get', 'patch', 'update'],
  });
});

test('the verbs of a CRD are in the order of a kube-apiserver', async () => {
  const { body } = await api.get(`/apis/${GROUP}/v1`);
  const { verbs } = body.resources.find(({ name }: Json) => name === 'widgets');
  assert.equal(verbs.join(), 'delete,deletecollection,get,list,patch,create,update,watch');
});

test('every built-in resource has a descriptor with its kind and scope', async () => {
  const descriptors = new Map(
    Object.values(builtin).map((each) => [`${apiVersionOf(each)} ${each.plural}`, each]),
  );
  const lists = await Promise.all(['/api', '/apis'].map((path) => api.get(path, AGGREGATED)));
  const groups = lists.flatMap(({ body }) => body.items);
  const resources = groups.flatMap(({ metadata, versions }: Json) =>
    /^[a-z]*$|[.]k8s[.]io$/.test(metadata?.name ?? '')
      ? versions.flatMap(({ version, resources }: Json) =>
          resources.map((resource: Json) => {
            const apiVersion = apiVersionOf({ group: metadata?.name ?? '', version });
            return [`${apiVersion} ${resource.resource}`, resource];
          }),
        )
      : [],
  );
  assert.ok(resources.length > 60);
  for (const [name, { responseKind, scope }] of resources) {
    const { kind, namespaced } = descriptors.get(name) ?? {};
    assert.deepEqual([name, kind, namespaced], [name, responseKind.kind, scope === 'Namespaced']);
  }
});

test('a resource has the hash of the version in which it is stored', async () => {
  const hashOf = async (path: string, resource: string) => {
    const { body } = await api.get(path);
    const found = body.resources.find(({ name }: Json) => name === resource);
    return found.storageVersionHash;
  };
  assert.equal(await hashOf(`/apis/${GROUP}/v1`, 'widgets'), 'ymGBWOX53mo=');
  assert.equal(await hashOf(`/apis/${GROUP}/v1`, 'widgets/status'), undefined);
  assert.equal(await hashOf('/api/v1', 'events'), 'r2yiGXH7wu8=');
  assert.equal(await hashOf('/apis/events.k8s.io/v1', 'events'), 'r2yiGXH7wu8=');
  assert.equal(await hashOf('/apis/authentication.k8s.io/v1', 'tokenreviews'), undefined);
});

test('built-in kinds are discovered in the same form', async () => {
  const core = await resources('/api/v1');
  assert.deepEqual(core.get('pods'), {
    name: 'pods',
    singularName: 'pod',
    namespaced: true,
    kind: 'Pod',
    verbs: VERBS,
    shortNames: ['po'],
    categories: ['all'],
  });
  assert.deepEqual(core.get('namespaces'), {
    name: 'namespaces',
    singularName: 'namespace',
    namespaced: false,
    kind: 'Namespace',
    verbs: VERBS.filter((verb) => verb !== 'deletecollection'),
    shortNames: ['ns'],
  });
  assert.deepEqual(core.get('pods/binding'), {
    name: 'pods/binding',
    singularName: '',
    namespaced: true,
    kind: 'Binding',
    verbs: ['create'],
  });
  assert.deepEqual(core.get('pods/eviction'), {
    name: 'pods/eviction',
    singularName: '',
    namespaced: true,
    group: 'policy',
    version: 'v1',
    kind: 'Eviction',
    verbs: ['create'],
  });
  assert.deepEqual((await resources('/apis/apps/v1')).get('deployments/scale'), {
    name: 'deployments/scale',
    singularName: '',
    namespaced: true,
    group: 'autoscaling',
    version: 'v1',
    kind: 'Scale',
    verbs: ['get', 'patch', 'update'],
  });
});

test('aggregated discovery needs two requests', async () => {
  const { headers, body } = await api.get('/apis', AGGREGATED);
  assert.equal(headers['content-type'], AGGREGATED);
  assert.deepEqual(
    [body.kind, body.apiVersion],
    ['APIGroupDiscoveryList', 'apidiscovery.k8s.io/v2'],
  );
  const { versions } = body.items.find(({ metadata }: Json) => metadata.name === GROUP);
  assert.equal(versions.length, 1);
  const [{ version, freshness, resources: found }] = versions;
  assert.deepEqual([version, freshness, found.length], ['v1', 'Current', 1]);
  const { subresources, ...widgets } = found[0];
  assert.deepEqual(plain(widgets), {
    resource: 'widgets',
    responseKind: { group: GROUP, version: 'v1', kind: 'Widget' },
    scope: 'Namespaced',
    singularResource: 'widget',
    verbs: VERBS,
    shortNames: ['wd'],
  });
  assert.deepEqual(
    new Map(subresources.map((each: Json) => [each.subresource, each.responseKind.kind])),
    new Map([
      ['status', 'Widget'],
      ['scale', 'Scale'],
    ]),
  );
  const core = (await api.get('/api', AGGREGATED)).body;
  assert.equal(core.items.length, 1);
  const [{ resources: inCore }] = core.items[0].versions;
  assert.ok(inCore.some(({ resource }: Json) => resource === 'configmaps'));
});

test('the server reports its version and its health', async () => {
  const { body } = await api.get('/version');
  for (const field of ['gitVersion', 'platform']) assert.equal(typeof body[field], 'string', field);
  const { major, minor } = body;
  assert.match(`${major}.${minor}`, /^1\.\d+$/);
  assert.deepEqual(
    [body.emulationMajor, body.emulationMinor, body.minCompatibilityMajor],
    [major, minor, major],
  );
  assert.equal(Number(body.minCompatibilityMinor), Number(minor) - 1);
  for (const path of ['/healthz', '/livez', '/readyz']) {
    const { status, text } = await api.get(path);
    assert.deepEqual([status, text], [200, 'ok']);
  }
});

test('OpenAPI contains the paths and the schema of a CRD', async () => {
  const index = await api.until('the document is served', async () => {
    const { paths } = JSON.parse((await api.get('/openapi/v3')).text);
    return paths[`apis/${GROUP}/v1`];
  });
  assert.match(
    index.serverRelativeURL,
    /^\/openapi\/v3\/apis\/conformance\.example\.com\/v1\?hash=\w+$/,
  );
  const { openapi, paths, components } = JSON.parse((await api.get(index.serverRelativeURL)).text);
  assert.match(openapi, /^3\.0/);
  const one = `/apis/${GROUP}/v1/namespaces/{namespace}/widgets/{name}`;
  const many = `/apis/${GROUP}/v1/namespaces/{namespace}/widgets`;
  for (const path of [many, one, `${one}/status`, `${one}/scale`, `/apis/${GROUP}/v1/widgets`]) {
    assert.ok(paths[path], path);
  }
  const actions = Object.fromEntries(
    ['get', 'put', 'patch', 'delete'].map((method) => [
      method,
      [paths[one][method].operationId, paths[one][method]['x-kubernetes-action']],
    ]),
  );
  assert.deepEqual(actions, {
    get: ['readConformanceExampleComV1NamespacedWidget', 'get'],
    put: ['replaceConformanceExampleComV1NamespacedWidget', 'put'],
    patch: ['patchConformanceExampleComV1NamespacedWidget', 'patch'],
    delete: ['deleteConformanceExampleComV1NamespacedWidget', 'delete'],
  });
  assert.equal(
    paths[many].delete.operationId,
    'deleteConformanceExampleComV1CollectionNamespacedWidget',
  );
  const schema = components.schemas['com.example.conformance.v1.Widget'];
  assert.deepEqual(schema['x-kubernetes-group-version-kind'], [
    { group: GROUP, kind: 'Widget', version: 'v1' },
  ]);
  assert.deepEqual(schema.properties.spec.properties.size, {
    type: 'integer',
    minimum: 0,
    maximum: 10,
    default: 1,
  });
  assert.equal((await api.get('/openapi/v3/apis/nope.example.com/v1')).status, 404);
});

test('/metrics/slis shows the results of health checks', async () => {
  await api.get('/readyz');
  const { text } = await api.get('/metrics/slis');
  for (const [name, labels] of [
    ['kubernetes_healthcheck', { name: 'etcd', type: 'readyz' }],
    ['kubernetes_healthchecks_total', { name: 'etcd', status: 'success', type: 'readyz' }],
  ] as const) {
    const found = parseExposition(text).find(
      (series) => series.name === name && isDeepStrictEqual(series.labels, labels),
    );
    assert.ok(Number(found?.value) >= 1, name);
  }
});

test('/metrics counts requests by verb, resource and code', async () => {
  const namespace = await api.namespace();
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  await api.made(api.post(path, { metadata: { name: 'counted' } }));
  await api.get('/api/v1/configmaps');
  const { text } = await api.get('/metrics');
  const requests = parseExposition(text).filter(({ name }) => name === 'apiserver_request_total');
  const common = { component: 'apiserver', group: '', resource: 'configmaps', version: 'v1' };
  for (const own of [
    { verb: 'POST', scope: 'resource', code: '201' },
    { verb: 'LIST', scope: 'cluster', code: '200' },
  ]) {
    const expected = { ...common, dry_run: '', subresource: '', ...own };
    assert.ok(requests.some(({ labels }) => isDeepStrictEqual(labels, expected)));
  }
  for (const metric of ['apiserver_longrunning_requests', 'apiserver_resource_objects']) {
    assert.match(text, new RegExp(`^# TYPE ${metric} gauge$`, 'm'));
  }
});
