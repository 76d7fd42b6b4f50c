import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json, Reply } from './api.ts';
import { Api, JSON_PATCH, STRATEGIC, assertRejected } from './api.ts';
import {
  configMap,
  configMaps,
  deployment,
  deployments,
  pods,
  widget,
  widgetCrd,
  widgets,
} from './objects.ts';
import { skipBefore } from '../support/skip.ts';

let api: Api;
let space: string;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
  space = await api.namespace();
});

after(() => api.close());

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const PARTIAL = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
const OTHER_NAMESPACE =
  'the namespace of the provided object does not match the namespace sent on the request';

function assertNotFound({ status, text }: Reply): void {
  assert.equal(status, 404, text);
}

test(
  'a body is parsed before its object is looked up, and its kind is compared after that',
  skipBefore(37),
  async () => {
    const config = `${configMaps(space)}/absent`;
    assert.equal((await api.patch(config, '{')).body.message, 'invalid JSON patch');
    assertNotFound(await api.patch(config, [], JSON_PATCH));
    const other = { ...configMap('absent'), kind: 'Secret' };
    assertNotFound(await api.apply(`${pods(space)}/absent/status`, 'one', other));
    const gadget = { ...widget('absent'), kind: 'Gadget', metadata: { name: 'absent' } };
    assertNotFound(await api.put(`${widgets(space)}/absent`, gadget));
  },
);

test('the namespace of a body is compared before its name', async () => {
  const path = `${configMaps(space)}/placed`;
  await api.made(api.post(configMaps(space), configMap('placed')));
  const metadata = { name: 'other', namespace: 'other' };
  for (const reply of [
    await api.put(path, configMap('placed', {}, metadata)),
    await api.patch(path, { metadata }),
    await api.apply(path, 'one', configMap('placed', {}, metadata)),
  ]) {
    assertRejected(reply, { code: 400, reason: 'BadRequest', message: OTHER_NAMESPACE });
  }
});

test('a kind and an apiVersion must be texts', async () => {
  const why =
    "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string";
  const path = `${configMaps(space)}/typed`;
  await api.made(api.post(configMaps(space), configMap('typed')));
  const posted = await api.post(configMaps(space), { ...configMap('other'), apiVersion: 5 });
  assert.equal(posted.status, 400);
  assert.ok(posted.body.message.includes(why), posted.text);
  const patched = await api.patch(path, { apiVersion: 5 });
  assert.equal(patched.status, 422);
  assert.ok(patched.body.message.endsWith(why), patched.text);
  await api.made(api.post(widgets(space), widget('typed')));
  const other = await api.patch(`${widgets(space)}/typed`, { apiVersion: 'v9' });
  assert.match(other.body.message, /^Widget "typed" is invalid: apiVersion: /);
  const untyped = await api.patch(`${widgets(space)}/typed`, { kind: null });
  assert.equal(untyped.status, 422);
  assert.match(untyped.body.message, /Object 'Kind' is missing in/);
});

test('a patch to metadata that does not decode is refused with code 422', async () => {
  await api.made(api.post(widgets(space), widget('patched')));
  const { status, body } = await api.patch(`${widgets(space)}/patched`, {
    metadata: { finalizers: 'x' },
  });
  assert.equal(status, 422);
  assert.match(body.message, /: json: cannot unmarshal string into Go struct field ObjectMeta\./);
});

test('a strict patch is refused for a value of another type before an unknown field', async () => {
  await api.made(api.post(configMaps(space), configMap('strict')));
  const path = `${configMaps(space)}/strict?fieldValidation=Strict`;
  const { body } = await api.patch(path, { immutable: 'x', unknown: 1 });
  assert.match(body.message, /of type bool$/);
});

test('a malformed time is reported before values of other types', async () => {
  const reply = await api.post(`/apis/coordination.k8s.io/v1/namespaces/${space}/leases`, {
    metadata: { name: 'times' },
    spec: { holderIdentity: 5, renewTime: 'x' },
  });
  assertRejected(reply, {
    code: 400,
    reason: 'BadRequest',
    message:
      /: parsing time "x" as "2006-01-02T15:04:05\.000000Z07:00": cannot parse "x" as "2006"$/,
  });
});

test('an apply with a malformed time of creation fails with code 500, unless of a custom resource', async () => {
  const custom = widget('times', undefined, { creationTimestamp: 'x' });
  await api.made(api.apply(`${widgets(space)}/times`, 'one', custom));
  const applied = configMap('times', {}, { creationTimestamp: 'x' });
  const { status, body } = await api.apply(`${configMaps(space)}/times`, 'one', applied);
  assert.equal(status, 500);
  assert.match(body.message, /^failed to convert new object .*: parsing time "x" as /);
});

test('times and lists that Go always writes are null', async () => {
  await api.made(
    api.post(pods(space), {
      metadata: { name: 'times' },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    }),
  );
  const status = { conditions: [{ type: 'Own', status: 'True' }] };
  const pod = await api.made(api.patch(`${pods(space)}/times/status`, { status }));
  assert.deepEqual(pod.status.conditions, [
    { type: 'Own', status: 'True', lastProbeTime: null, lastTransitionTime: null },
  ]);
  const conditions = pod.metadata.managedFields.at(-1).fieldsV1['f:status']['f:conditions'];
  assert.deepEqual(Object.keys(conditions['k:{"type":"Own"}']), [
    '.',
    'f:lastProbeTime',
    'f:lastTransitionTime',
    'f:status',
    'f:type',
  ]);
  const event = await api.made(
    api.post(`/api/v1/namespaces/${space}/events`, {
      metadata: { name: 'times' },
      involvedObject: { namespace: space },
    }),
  );
  assert.deepEqual(
    [event.eventTime, event.firstTimestamp, event.lastTimestamp],
    [null, null, null],
  );
  const slices = `/apis/discovery.k8s.io/v1/namespaces/${space}/endpointslices`;
  const slice = await api.made(
    api.post(slices, { metadata: { name: 'ports' }, addressType: 'IPv4', endpoints: [] }),
  );
  assert.equal(slice.ports, null);
});

test('empty lists of metadata, and of rows of kinds without own columns, are null', async () => {
  const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${space}/roles`;
  assert.equal((await api.get(roles, PARTIAL)).body.items, null);
  assert.equal((await api.get(roles, TABLE)).body.rows, null);
  const none = '?labelSelector=absent%3Dyes';
  assert.deepEqual((await api.get(`${configMaps(space)}${none}`, TABLE)).body.rows, []);
  assert.deepEqual((await api.get(`${widgets(space)}${none}`, TABLE)).body.rows, []);
});

test(
  'errors in the metadata of custom resources are repeated at an update',
  skipBefore(37),
  async () => {
    await api.made(api.post(widgets(space), widget('repeated')));
    const metadata = { labels: { a: '-' }, uid: 'x' };
    const { body } = await api.patch(`${widgets(space)}/repeated`, { metadata });
    const fields = ['labels', 'uid', 'labels', 'uid', 'labels'];
    assert.deepEqual(
      body.details.causes.map(({ field }: Json) => field),
      fields.map((field) => `metadata.${field}`),
    );
  },
);

test('the managers of an object are tracked as it was sent', async () => {
  const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${space}/roles`;
  const role = (rules?: Json) => ({ metadata: { name: 'tracked' }, rules });
  const managers = ({ metadata }: Json) =>
    metadata.managedFields.map(({ manager, fieldsV1 }: Json) => [manager, fieldsV1]);
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
  const put = (manager: string, wanted: Json) =>
    api.made(api.put(`${roles}/tracked?fieldManager=${manager}`, role(wanted)));
  await put('one', rules);
  await put('two', []);
  const emptied = await put('three', []);
  assert.equal(emptied.rules, null);
  // An empty list is stored as null, so that it differs when it is sent again.
  assert.deepEqual(managers(emptied), [['three', { 'f:rules': {} }]]);
  const untyped = await api.made(
    api.post(widgets(space), { ...widget('untyped'), status: { size: 'x' } }),
  );
  assert.equal(untyped.metadata.managedFields, undefined);
  const services = `/api/v1/namespaces/${space}/services`;
  const service = (type: string) => ({
    metadata: { name: 'tracked' },
    spec: { type, ports: [{ port: 80 }] },
  });
  await api.made(api.post(services, service('ClusterIP')));
  const opened = await api.made(api.put(`${services}/tracked`, service('NodePort')));
  const [{ fieldsV1 }] = opened.metadata.managedFields;
  assert.equal(fieldsV1['f:spec']['f:clusterIP'], undefined);
  const port = fieldsV1['f:spec']['f:ports']['k:{"port":80,"protocol":"TCP"}'];
  assert.deepEqual(Object.keys(port), ['.', 'f:port', 'f:protocol', 'f:targetPort']);
});

test('a write of a Scale moves replicas that an update owns to an entry of their own', async () => {
  const path = `${widgets(space)}/scaled`;
  await api.made(api.post(widgets(space), widget('scaled', { color: 'red', size: 2 })));
  await api.made(api.patch(`${path}/scale`, { spec: { replicas: 2 } }));
  const { metadata } = (await api.get(path)).body;
  const entries = metadata.managedFields.map(({ time, fieldsV1, subresource }: Json) => [
    time !== undefined,
    subresource,
    Object.keys(fieldsV1['f:spec']),
  ]);
  assert.deepEqual(entries, [
    [false, undefined, ['f:size']],
    [true, undefined, ['.', 'f:color']],
  ]);
});

test('a write of the status creates a missing Service, which has no address', async () => {
  const services = `/api/v1/namespaces/${space}/services`;
  const service = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { ports: [{ port: 80 }] },
    status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } },
  });
  assertNotFound(await api.patch(`${services}/put/status`, { status: {} }));
  const put = await api.put(`${services}/put/status`, service('put'));
  const applied = await api.apply(`${services}/applied/status`, 'one', service('applied'));
  for (const { status, body } of [put, applied]) {
    assert.equal(status, 201);
    assert.deepEqual(body.status, { loadBalancer: {} });
    assert.equal(body.spec.clusterIP, undefined);
    assert.deepEqual(body.metadata.managedFields[0].fieldsV1, {
      'f:status': { 'f:loadBalancer': { 'f:ingress': {} } },
    });
  }
  const given = { ...service('given'), spec: { clusterIP: 'None', ports: [{ port: 80 }] } };
  assertRejected(await api.put(`${services}/given/status`, given), {
    code: 422,
    reason: 'Invalid',
    message: 'Service "given" is invalid: spec.clusterIPs: Required value',
  });
  const changed = await api.made(
    api.patch(`${services}/put`, { metadata: { labels: { a: 'b' } } }),
  );
  assert.equal(changed.spec.clusterIP, undefined);
});

test('addresses of a Service are validated, alone when it is written', async () => {
  const services = `/api/v1/namespaces/${space}/services`;
  const NO_ADDRESS =
    'Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  const rejected = (reply: Reply, field: string) =>
    assertRejected(reply, {
      code: 422,
      reason: 'Invalid',
      message: /is invalid/,
      causes: [[field, NO_ADDRESS]],
    });
  const metadata = { name: 'addressed' };
  const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] };
  const wrong = { metadata, spec: { ...spec, clusterIP: 'x', ports: [] } };
  rejected(await api.post(services, wrong), 'spec.clusterIPs[0]');
  await api.made(api.post(services, { metadata, spec }));
  rejected(await api.put(`${services}/addressed`, wrong), 'spec.clusterIPs[0]');
  const ingress = async (ip: string) => {
    const status = { loadBalancer: { ingress: [{ ip }] } };
    return await api.patch(`${services}/addressed/status`, { status });
  };
  rejected(await ingress('x'), 'status.loadBalancer.ingress[0].ip');
  const { status } = await api.made(ingress('192.0.2.1'));
  assert.deepEqual(status.loadBalancer.ingress, [{ ip: '192.0.2.1', ipMode: 'VIP' }]);
});

test('an apply of an object as an integer or string is refused by validation', async () => {
  const group = 'ports.example.com';
  const crd = widgetCrd(group);
  const { properties } = crd.spec.versions[0].schema.openAPIV3Schema.properties.spec;
  properties.port = { 'x-kubernetes-int-or-string': true };
  await api.install(crd);
  const applied = { ...widget('port', { color: 'red', port: {} }), apiVersion: `${group}/v1` };
  const path = `${widgets(space, group)}/port`;
  const { status, text } = await api.apply(path, 'one', applied);
  assert.equal(status, 422, text);
});

test(
  'a container that loses its image gets the pull policy of an image with a tag',
  skipBefore(37),
  async () => {
    const pod = { metadata: { name: 'image' }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    await api.made(api.post(pods(space), pod));
    const containers = [{ name: 'c' }];
    const { body } = await api.put(`${pods(space)}/image`, { ...pod, spec: { containers } });
    assert.deepEqual(
      body.details.causes.map(({ field }: Json) => field),
      ['spec.containers[0].image', 'spec'],
    );
  },
);

test('a strategic merge patch of a Scale does not change its kind', async () => {
  await api.made(api.post(deployments(space), deployment('scaled')));
  const path = `${deployments(space)}/scaled/scale`;
  const { kind } = await api.made(api.patch(path, { kind: 'Other' }, STRATEGIC));
  assert.equal(kind, 'Scale');
});
