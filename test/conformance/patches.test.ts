import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Api, assertRejected, JSON_PATCH, STRATEGIC } from './api.ts';
import { configMap, configMaps, GROUP, pod, pods, widget, widgetCrd, widgets } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
  space = await api.namespace();
  await api.made(api.post(configMaps(space), configMap('a')));
});

after(() => api.close());

let space: string;

const WENT_WRONG = 'the server rejected our request due to an error in our request';

test('a merge patch merges objects, replaces lists, and removes null fields', async () => {
  const at = `${widgets(space)}/a`;
  const draft = widget('a', {
    color: 'red',
    size: 5,
    tags: ['x', 'y'],
    labels: { a: '1', b: '2' },
  });
  await api.made(api.post(widgets(space), draft));
  const patch = { spec: { size: null, tags: ['z'], labels: { a: null, c: '3' } } };
  const { spec } = await api.made(api.patch(at, patch));
  // Removed fields get their defaults.
  assert.deepEqual(spec, { color: 'red', size: 1, tags: ['z'], labels: { b: '2', c: '3' } });
});

test('a merge patch must be an object', async () => {
  const at = `${configMaps(space)}/a`;
  assertRejected(await api.patch(at, 'null'), {
    code: 400,
    reason: 'BadRequest',
    message: 'Invalid JSON Patch',
  });
  assertRejected(await api.patch(at, [1]), {
    code: 400,
    reason: 'BadRequest',
    message:
      'error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
  });
  assertRejected(await api.patch(at, '{bad'), {
    code: 400,
    reason: 'BadRequest',
    // The second form is that of servers before Kubernetes 1.37.
    message: /^(invalid JSON patch$|error decoding patch: invalid character 'b')/,
  });
});

test('a JSON patch applies its operations in order', async () => {
  const at = `${widgets(space)}/b`;
  await api.made(api.post(widgets(space), widget('b', { color: 'red', size: 5 })));
  const patch = [
    { op: 'test', path: '/spec/color', value: 'red' },
    { op: 'replace', path: '/spec/size', value: 7 },
    { op: 'add', path: '/spec/tags', value: ['x'] },
    { op: 'add', path: '/spec/tags/-', value: 'y' },
    { op: 'add', path: '/spec/tags/0', value: 'w' },
    { op: 'move', from: '/spec/tags/2', path: '/spec/tags/0' },
    { op: 'copy', from: '/spec/color', path: '/spec/note' },
    { op: 'remove', path: '/spec/tags/1' },
  ];
  const { spec } = await api.made(api.patch(at, patch, JSON_PATCH));
  assert.deepEqual(spec, { color: 'red', size: 7, tags: ['y', 'x'], note: 'red' });
});

test('a JSON patch that fails changes nothing', async () => {
  for (const [collection, draft] of [
    [widgets(space), widget('c')],
    [configMaps(space), configMap('c')],
  ]) {
    const at = `${collection}/c`;
    const { metadata } = await api.made(api.post(collection, draft));
    for (const operation of [
      { op: 'test', path: '/metadata/name', value: 'other' },
      { op: 'remove', path: '/metadata/nothing' },
      { op: 'replace', path: '/nothing/here', value: 1 },
      { op: 'odd', path: '/metadata/labels' },
    ]) {
      const patch = [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }, operation];
      assertRejected(await api.patch(at, patch, JSON_PATCH), {
        code: 422,
        reason: 'Invalid',
        message: WENT_WRONG,
        details: {},
      });
    }
    assert.deepEqual((await api.get(at)).body.metadata, metadata);
  }
});

test('a JSON patch must be a list of operations', async () => {
  const at = `${configMaps(space)}/a`;
  assertRejected(await api.patch(at, { op: 'remove', path: '/data' }, JSON_PATCH), {
    code: 400,
    reason: 'BadRequest',
    message:
      'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
  });
  assertRejected(await api.patch(at, '[{', JSON_PATCH), {
    code: 400,
    reason: 'BadRequest',
    message: /^(invalid JSON patch|error decoding patch: unexpected end of JSON input)$/,
  });
});

test('a JSON patch has at most 10000 operations', async () => {
  const at = `${configMaps(space)}/a`;
  const operation = { op: 'test', path: '/kind', value: 'ConfigMap' };
  const patch = Array.from({ length: 10_001 }, () => operation);
  assertRejected(await api.patch(at, patch, JSON_PATCH), {
    code: 413,
    reason: 'RequestEntityTooLarge',
    message:
      'Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001',
  });
  assert.equal((await api.patch(at, patch.slice(1), JSON_PATCH)).status, 200);
});

test('a strategic merge patch merges lists by their keys', async () => {
  const at = `${pods(space)}/p`;
  await api.made(api.post(pods(space), pod('p')));
  const patch = { spec: { containers: [{ name: 'web', image: 'nginx:2' }] } };
  const { spec } = await api.made(api.patch(at, patch, STRATEGIC));
  assert.equal(spec.containers.length, 1);
  assert.equal(spec.containers[0].image, 'nginx:2');
  assert.equal(spec.containers[0].imagePullPolicy, 'Always');
});

test('an integer that its field cannot hold keeps its lowest bits, or is refused', async () => {
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${space}/leases`;
  const lease = (leaseDurationSeconds: number) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'wide' },
    spec: { leaseDurationSeconds },
  });
  const at = `${leases}/wide`;
  const applied = await api.made(api.apply(at, 'm', lease(2 ** 32 + 7)));
  assert.equal(applied.spec.leaseDurationSeconds, 7);
  const spec = { leaseDurationSeconds: 2 ** 32 + 9 };
  const patched = await api.made(api.patch(at, { spec }, STRATEGIC));
  assert.equal(patched.spec.leaseDurationSeconds, 9);
  // The largest number becomes the lowest int64, of which zero remains.
  const { status, body } = await api.apply(at, 'm', lease(1e19), '&force=true');
  assert.deepEqual([status, body.details.causes[0].field], [422, 'spec.leaseDurationSeconds']);
  assert.equal((await api.patch(at, { spec })).status, 422);
  assert.equal((await api.post(leases, lease(2 ** 32 + 7))).status, 400);
  assert.equal((await api.apply(at, 'm', lease(1.5), '&force=true')).status, 500);
});

test('a strategic merge patch has directives', async () => {
  const at = `${configMaps(space)}/directives`;
  await api.made(api.post(configMaps(space), configMap('directives', { a: '1', b: '2' })));
  const patch = { data: { $patch: 'replace', z: '1' } };
  assert.deepEqual((await api.made(api.patch(at, patch, STRATEGIC))).data, { z: '1' });
});

test('custom resources do not support strategic merge patches', async () => {
  await api.made(api.post(widgets(space), widget('strategic')));
  assertRejected(await api.patch(`${widgets(space)}/strategic`, { spec: {} }, STRATEGIC), {
    code: 415,
    reason: 'UnsupportedMediaType',
    message:
      'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
  });
});

test('the patched object is validated', async () => {
  const at = `${widgets(space)}/valid`;
  await api.made(api.post(widgets(space), widget('valid')));
  assertRejected(await api.patch(at, { spec: { color: '' } }), {
    code: 422,
    reason: 'Invalid',
    message: `Widget.${GROUP} "valid" is invalid: spec.color: Invalid value: "": spec.color in body should be at least 1 chars long`,
  });
  await api.made(api.post(configMaps(space), configMap('valid')));
  assertRejected(await api.patch(`${configMaps(space)}/valid`, { data: { a: 1 } }), {
    code: 422,
    reason: 'Invalid',
    message:
      /^ "" is invalid: patch: Invalid value: .*: json: cannot unmarshal number into Go struct field ConfigMap\.data of type string$/,
  });
});

test('force is rejected for other patches than apply', async () => {
  const at = `${widgets(space)}/forced`;
  await api.made(api.post(widgets(space), widget('forced')));
  assertRejected(await api.patch(`${at}?force=true`, {}), {
    code: 422,
    reason: 'Invalid',
    message:
      'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
  });
});

test('a JSON patch replaces an absent member', async () => {
  const at = `${configMaps(space)}/replaced`;
  await api.made(api.post(configMaps(space), configMap('replaced')));
  const patch = [{ op: 'replace', path: '/data/new', value: 'x' }];
  assert.equal((await api.made(api.patch(at, patch, JSON_PATCH))).data.new, 'x');
});

test('the type of a patch is checked first', async () => {
  const reply = await api.patch(`${widgets(space)}/missing?dryRun=x`, {}, STRATEGIC);
  assert.equal(reply.status, 415);
});

test('a strategic merge patch does not change the kind', async () => {
  const at = `${configMaps(space)}/kind`;
  await api.made(api.post(configMaps(space), configMap('kind')));
  assert.equal((await api.made(api.patch(at, { kind: 'Other' }, STRATEGIC))).kind, 'ConfigMap');
  const { status, body } = await api.patch(at, { apiVersion: 5 }, STRATEGIC);
  assert.deepEqual([status, body.details.causes[0].field], [422, 'patch']);
});

test('unknown fields of a patched built-in kind are reported in the order of its JSON', async () => {
  const at = configMaps(await api.namespace());
  await api.made(api.post(at, configMap('order')));
  const fields = ({ headers }: { headers: Readonly<Record<string, string>> }) =>
    [...(headers['warning'] ?? '').matchAll(/field \\"(.*?)\\"/g)].map(([, field]) => field);
  const members = { z: 1, metadata: { z: 1, b: 1 }, a: 1 };
  const sorted = ['a', 'metadata.b', 'metadata.z', 'z'];
  assert.deepEqual(fields(await api.patch(`${at}/order`, members)), sorted);
  assert.deepEqual(fields(await api.patch(`${at}/order`, members, STRATEGIC)), sorted);
  const metadata = { name: 'order', z: 1, b: 1 };
  const operations = Object.entries({ ...members, metadata }).map(([name, value]) => ({
    op: 'add',
    path: `/${name}`,
    value,
  }));
  assert.deepEqual(fields(await api.patch(`${at}/order`, operations, JSON_PATCH)), [
    'a',
    'metadata.z',
    'metadata.b',
    'z',
  ]);
  const wrong = [
    { op: 'add', path: '/immutable', value: 'x' },
    { op: 'add', path: '/data', value: 5 },
  ];
  const { body } = await api.patch(`${at}/order`, wrong, JSON_PATCH);
  assert.match(body.message, /number into Go struct field ConfigMap\.data of type/);
});
