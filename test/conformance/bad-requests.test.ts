import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { encodeBody, messageOfKind } from '../../src/apiserver/protobuf/protobuf-body.ts';
import { Api, assertRejected } from './api.ts';
import { configMap, configMaps, GROUP, pod, pods, widget, widgetCrd, widgets } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
  space = await api.namespace();
});

after(() => api.close());

const MEDIA_TYPES =
  'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml';
const NO_RESOURCE = 'the server could not find the requested resource';
const NO_METHOD = 'the server does not allow this method on the requested resource';
let space: string;

test('a body with a JSON syntax error is rejected with its position', async () => {
  for (const [path, kind] of [
    [configMaps(space), 'ConfigMap'],
    [widgets(space), 'Widget'],
  ] as const) {
    const start = `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: `;
    const syntaxErrors: [string, string][] = [
      ['{bad', "invalid character 'b' looking for beginning of object key string ({bad)"],
      ['{"a":1', 'unexpected end of JSON input ({"a":1)'],
      ['', 'unexpected end of JSON input (<empty>)'],
      ['{"a" 1}', 'invalid character \'1\' after object key ({"a" 1})'],
      ['{"a":x}', 'invalid character \'x\' looking for beginning of value ({"a":x})'],
      ['{"a":1 2}', 'invalid character \'2\' after object key:value pair ({"a":1 2})'],
      ['\ufeff{}', "invalid character 'ï' looking for beginning of value (efbbbf7b7d)"],
    ];
    for (const [body, message] of syntaxErrors) {
      const reply = await api.post(path, body);
      assertRejected(reply, { code: 400, reason: 'BadRequest', message: start + message });
    }
    assertRejected(await api.post(path, '[]'), {
      code: 400,
      reason: 'BadRequest',
      message: new RegExp(
        `^the object provided is unrecognized \\(must be of type ${kind}\\): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value `,
      ),
    });
  }
});

test('an object of another kind is rejected', async () => {
  assertRejected(await api.post(configMaps(space), pod('x')), {
    code: 400,
    reason: 'BadRequest',
    message: /^Pod in version "v1" cannot be handled as a ConfigMap: /,
  });
  assertRejected(await api.post(configMaps(space), { ...configMap('x'), apiVersion: 'v2' }), {
    code: 400,
    reason: 'BadRequest',
    message:
      /^ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme /,
  });
  assertRejected(await api.post(widgets(space), { ...widget('x'), kind: 'Gadget' }), {
    code: 422,
    reason: 'Invalid',
    message: `Gadget.${GROUP} "x" is invalid: kind: Invalid value: "Gadget": must be Widget`,
    details: {
      name: 'x',
      group: GROUP,
      kind: 'Gadget',
      causes: [
        {
          reason: 'FieldValueInvalid',
          message: 'Invalid value: "Gadget": must be Widget',
          field: 'kind',
        },
      ],
    },
  });
  for (const apiVersion of ['v1', `${GROUP}/v2`]) {
    assertRejected(await api.post(widgets(space), { ...widget('x'), apiVersion }), {
      code: 400,
      reason: 'BadRequest',
      message: `the API version in the data (${apiVersion}) does not match the expected API version (${GROUP}/v1)`,
    });
  }
});

test('the apiVersion of a built-in kind is a version with at most one group', async () => {
  const sent = (apiVersion: string) =>
    api.post(`${configMaps(space)}?dryRun=All`, { ...configMap('x'), apiVersion });
  for (const apiVersion of ['', '/', '/v1', 'v1'])
    assert.equal((await sent(apiVersion)).status, 201, apiVersion);
  for (const [apiVersion, message] of [
    [
      'a/b/c',
      /^the object provided is unrecognized .*: unexpected GroupVersion string: a\/b\/c \(/,
    ],
    ['/v2', /no kind "ConfigMap" is registered for version "v2" in scheme /],
    ['apps/', /in version "" cannot be handled as a ConfigMap: Object 'apiVersion' is missing in /],
    ['\u0000', /no kind "ConfigMap" is registered for version "\\x00" in scheme /],
  ] as const) {
    assertRejected(await sent(apiVersion), { code: 400, reason: 'BadRequest', message });
  }
});

test('a custom resource requires apiVersion and kind, a built-in kind does not', async () => {
  const { kind: _kind, ...kindless } = widget('x', { color: 'red' });
  assertRejected(await api.post(widgets(space), kindless), {
    code: 400,
    reason: 'BadRequest',
    message:
      /^the object provided is unrecognized \(must be of type Widget\): Object 'Kind' is missing in '/,
  });
  // Without strict decoding, the kind of the path is known.
  assertRejected(await api.post(`${widgets(space)}?fieldValidation=Ignore`, kindless), {
    code: 400,
    reason: 'BadRequest',
    message: /^Widget in version "v1" cannot be handled as a Widget: Object 'Kind' is missing in '/,
  });
  const bare = await api.post(`${configMaps(space)}?dryRun=All`, { metadata: { name: 'x' } });
  assert.deepEqual([bare.status, bare.body.kind, bare.body.apiVersion], [201, 'ConfigMap', 'v1']);
});

test('a value of the wrong type does not decode', async () => {
  assertRejected(await api.post(configMaps(space), configMap('x', { a: 1 })), {
    code: 400,
    reason: 'BadRequest',
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
  });
  for (const spec of [1.5, { securityContext: 1e2 }, { hostNetwork: 1.5 }, { containers: [1.5] }]) {
    assertRejected(await api.post(pods(space), { ...pod('x'), spec }), {
      code: 400,
      reason: 'BadRequest',
      message:
        /^Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into /,
    });
  }
  const labelled = widget('x', undefined, { labels: { a: 1 } });
  assertRejected(await api.post(widgets(space), labelled), {
    code: 400,
    reason: 'BadRequest',
    message:
      'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
  });
});

test('an unknown media type is rejected', async () => {
  for (const path of [configMaps(space), widgets(space)]) {
    const reply = await api.send('POST', path, 'x', { 'content-type': 'text/plain' });
    const { status, body } = reply;
    assert.deepEqual([status, body.reason, body.code], [415, 'UnsupportedMediaType', 415]);
    assert.ok(body.message.startsWith(MEDIA_TYPES), body.message);
  }
  const patched = await api.patch(`${widgets(space)}/x`, {}, 'text/plain');
  assert.deepEqual([patched.status, patched.body.reason], [415, 'UnsupportedMediaType']);
});

test('YAML is accepted', async () => {
  const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: "1"\n';
  const { status, body } = await api.send('POST', configMaps(space), yaml, {
    'content-type': 'application/yaml',
  });
  assert.deepEqual([status, body.data], [201, { a: '1' }]);
  assertRejected(
    await api.send('POST', configMaps(space), 'a: b: c\n', { 'content-type': 'application/yaml' }),
    {
      code: 400,
      reason: 'BadRequest',
      message: /^the object provided is unrecognized \(must be of type ConfigMap\): /,
    },
  );
});

test('the size of a body is limited', async () => {
  const large = configMap('large', { a: 'x'.repeat(3 * 1024 * 1024) });
  assertRejected(await api.post(configMaps(space), large), {
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: 'Request entity too large: limit is 3145728',
  });
});

test('the size of a stored object is limited, unless it is not stored', async () => {
  const large = (bytes: number) =>
    Object.assign(pod('large'), {
      spec: { containers: [{ name: 'web', image: 'nginx', args: ['x'.repeat(bytes)] }] },
    });
  const collection = pods(space);
  const tooLarge = { code: 500, message: 'etcdserver: request is too large', details: undefined };
  assertRejected(await api.post(collection, large(1_574_000)), tooLarge);
  assertRejected(await api.post(collection, large(2_200_000)), {
    code: 500,
    message:
      /^rpc error: code = ResourceExhausted desc = trying to send message larger than max \(2200\d{3} vs\. 2097152\)$/,
    details: undefined,
  });
  assert.equal((await api.post(`${collection}?dryRun=All`, large(2_200_000))).status, 201);
  const message = messageOfKind({ group: '', version: 'v1', kind: 'Pod' });
  assert.ok(message);
  for (const [type, body] of [
    ['application/yaml', JSON.stringify(large(1_574_000))],
    ['application/vnd.kubernetes.protobuf', encodeBody(large(1_574_000), message)],
  ] as const) {
    const reply = await api.send('POST', collection, body, { 'content-type': type });
    assertRejected(reply, tooLarge);
  }

  const keys = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`key-${at}`, 1]));
  const custom = (bytes: number) =>
    widget('large', { color: 'red', free: { ...keys, text: 'x'.repeat(bytes) } });
  assertRejected(await api.post(widgets(space), custom(1_573_000)), tooLarge);
  // Such an object is stored without managedFields if it is too large with them.
  const { status, body } = await api.post(widgets(space), custom(1_569_000));
  assert.deepEqual([status, body.metadata.managedFields], [201, undefined]);
  const change = { spec: { free: { more: 'x'.repeat(10_000) } } };
  assertRejected(await api.patch(`${widgets(space)}/large`, change), tooLarge);
});

test('an unsupported method is rejected', async () => {
  const collection = configMaps(space);
  const replies = [
    await api.post(`${collection}/x`, configMap('x')),
    await api.put(collection, configMap('x')),
    await api.patch(collection, {}),
    await api.post('/api/v1/configmaps', configMap('x')),
    await api.post('/api/v1', {}),
  ];
  for (const reply of replies) {
    assertRejected(reply, {
      code: 405,
      reason: 'MethodNotAllowed',
      message: NO_METHOD,
      details: {},
    });
  }
});

test('a write to a collection of custom resources without a name is rejected', async () => {
  for (const reply of [
    await api.put(widgets(space), widget('x')),
    await api.patch(widgets(space), {}),
  ]) {
    assertRejected(reply, { code: 400, reason: 'BadRequest', message: 'name must be provided' });
  }
  const everywhere = `/apis/${GROUP}/v1/widgets`;
  for (const reply of [
    await api.post(everywhere, widget('x')),
    await api.delete(everywhere),
    await api.get(`${everywhere}/x`),
  ]) {
    assert.deepEqual([reply.status, reply.text], [404, '404 page not found\n']);
  }
});

test('an unserved path is not found; the server answers with a Status for its own groups', async () => {
  for (const path of [
    '/api/v1/odd',
    `/api/v1/namespaces/${space}/odd`,
    '/apis/apps/v1/odd',
    '/api/v1/configmaps/x',
    `${configMaps(space)}/x/odd`,
    `/apis/apiextensions.k8s.io/v1/namespaces/${space}/customresourcedefinitions`,
  ]) {
    assertRejected(await api.get(path), {
      code: 404,
      reason: 'NotFound',
      message: NO_RESOURCE,
      details: {},
    });
  }
  for (const path of [
    `/apis/${GROUP}/v1/namespaces/${space}/odd`,
    `/apis/${GROUP}/v9/namespaces/${space}/widgets`,
    '/apis/odd.example.com/v1/widgets',
    '/apis/odd.example.com',
    '/odd',
  ]) {
    const { status, text } = await api.get(path);
    assert.deepEqual([status, text], [404, '404 page not found\n'], path);
  }
});

test('an unknown subresource of a custom resource is not found', async () => {
  assertRejected(await api.get(`${widgets(space)}/a/odd`), {
    code: 404,
    reason: 'NotFound',
    message: `widgets.${GROUP} "a" not found`,
    details: { name: 'a', group: GROUP, kind: 'widgets' },
  });
});

test('a lone surrogate is stored as U+FFFD', async () => {
  const text = String.raw`{"metadata":{"name":"surrogates"},"data":{"a":"\ud800\uD83D\ude00\udc00\\ud800"}}`;
  const { body } = await api.post(`${configMaps(space)}?dryRun=All`, text);
  assert.deepEqual(body.data, { a: '\ufffd\u{1f600}\ufffd\\ud800' });
});

test('an escape in YAML is a character', async () => {
  for (const [escape, status] of [
    ['\\uD800', 400],
    ['\\uD83D\\uDE00', 400],
    ['\\U00110000', 400],
    ['\\U0001F600', 201],
    ['\\\\uD800', 201],
  ] as const) {
    const body = `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { a: "${escape}" }`;
    const reply = await api.send('POST', `${configMaps(space)}?dryRun=All`, body, {
      'content-type': 'application/yaml',
    });
    assert.equal(reply.status, status, escape);
    if (status === 400) {
      assert.match(reply.body.message, /yaml: line 4: found invalid Unicode character escape code/);
    }
  }
});

test('a custom resource with unknown metadata is decoded strictly before it is compared with the path', async () => {
  const metadata = { name: 'x', color: 'red' };
  const why = 'strict decoding error: unknown field "metadata.color"';
  for (const [{ kind, ...version }, message] of [
    [{ kind: 'Widget' }, "Object 'apiVersion' is missing in 'object has no apiVersion field'"],
    [
      { kind: 'Gadget', apiVersion: `${GROUP}/v1` },
      `Gadget in version "v1" cannot be handled as a Gadget: ${why}`,
    ],
  ] as const) {
    const sent = { ...version, kind, metadata };
    const { status, body } = await api.post(`${widgets(space)}?fieldValidation=Strict`, sent);
    assert.deepEqual([status, body.message], [400, message]);
  }
});
