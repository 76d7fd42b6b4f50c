import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { skipBefore } from '../support/skip.ts';
import type { Json } from './api.ts';
import { APPLY, Api, assertRejected, JSON_PATCH, MERGE, STRATEGIC } from './api.ts';
import {
  configMap,
  configMaps,
  CRDS,
  GROUP,
  pod,
  pods,
  widget,
  widgetCrd,
  widgets,
} from './objects.ts';

let api: Api;
let space: string;
let path: string;

before(async () => {
  api = await Api.start();
  await api.install(
    widgetCrd(GROUP, ({ spec }: Json) => {
      const [current] = spec.versions;
      const old = { ...current, storage: false, deprecated: true };
      spec.versions.push({ ...old, name: 'v1beta1' });
      spec.versions.push({ ...old, name: 'v1alpha1', deprecationWarning: 'go away' });
    }),
  );
  space = await api.namespace();
  path = configMaps(space);
  await api.made(api.post(path, configMap('a')));
  await api.made(api.post(widgets(space), widget('a')));
});

after(() => api.close());

test('an empty dryRun is invalid and writes nothing', async () => {
  const rejection = (kind: string) => ({
    code: 422,
    reason: 'Invalid',
    message: `${kind}.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported values: "All"`,
  });
  assertRejected(await api.post(`${path}?dryRun=`, configMap('dry')), rejection('CreateOptions'));
  assert.equal((await api.get(`${path}/dry`)).status, 404);
  assertRejected(await api.patch(`${path}/a?dryRun=`, { data: {} }), rejection('PatchOptions'));
  assertRejected(await api.delete(`${path}/a?dryRun=`), rejection('DeleteOptions'));
  assert.equal((await api.get(`${path}/a`)).status, 200);
});

test('a create rejects a resourceVersion, except in a dry run', async () => {
  const versioned = (name: string, resourceVersion: string) =>
    configMap(name, {}, { resourceVersion });
  const { status, body } = await api.post(path, versioned('versioned', '5'));
  assert.deepEqual(
    [status, body.message],
    [500, 'resourceVersion should not be set on objects to be created'],
  );
  const dry = await api.made(api.post(`${path}?dryRun=All`, versioned('versioned', '5')));
  assert.equal(dry.metadata.resourceVersion, '5');
  assert.equal((await api.post(path, versioned('zero', '0'))).status, 201);
});

test('a timeout must be a duration, except for a watch', async () => {
  for (const url of [path, '/api', '/healthz', '/none']) {
    assertRejected(await api.get(`${url}?timeout=invalid`), {
      code: 400,
      reason: 'BadRequest',
      message: 'invalid timeout specified in the request URL - time: invalid duration "invalid"',
    });
  }
  assert.match(
    (await api.get(`${path}?timeout=5`)).body.message,
    /time: missing unit in duration "5"$/,
  );
  for (const timeout of ['', '0', '1s', '1h30m']) {
    assert.equal((await api.get(`${path}?timeout=${timeout}`)).status, 200, timeout);
  }
  assert.equal((await api.watch(`${path}?timeout=x`)).status, 200);
});

test('a path with an empty segment does not exist', async () => {
  for (const url of [
    '/api/v1//namespaces',
    '/api//v1/namespaces',
    path.replace('/conf', '//conf'),
  ]) {
    const { status, body } = await api.get(url);
    assert.deepEqual([status, body.kind], [404, 'Status'], url);
  }
  for (const url of ['//api/v1/namespaces', '/apis//apps', '//']) {
    const { status, text } = await api.get(url);
    assert.deepEqual([status, text], [404, '404 page not found\n'], url);
  }
  for (const url of ['/api/', '/apis/', '/apis/apps/', '/api/v1/', '/version/', `${path}/`]) {
    assert.equal((await api.get(url)).status, 200, url);
  }
  const { status, body } = await api.get('/api/v1/namespaces//configmaps');
  assert.deepEqual([status, body.kind], [200, 'ConfigMapList']);
});

test('health endpoints have a path for each check and list the checks', async () => {
  for (const endpoint of ['healthz', 'livez', 'readyz']) {
    assert.equal((await api.get(`/${endpoint}/none`)).status, 404);
    assert.equal((await api.get(`/${endpoint}/ping/x`)).status, 404);
    for (const check of ['ping', 'log', 'etcd']) {
      assert.equal((await api.get(`/${endpoint}/${check}`)).text, 'ok');
    }
    const { text } = await api.get(`/${endpoint}?verbose&exclude=ping`);
    assert.match(text, /^\[\+\]ping excluded: ok\n\[\+\]log ok\n/);
    assert.ok(text.includes('\n[+]poststarthook/crd-informer-synced ok\n'), text);
    assert.ok(text.endsWith(`\n${endpoint} check passed\n`), text);
  }
  assert.equal((await api.get('/readyz/shutdown')).status, 200);
  assert.equal((await api.get('/livez/shutdown')).status, 404);
});

test('a watch can be requested by its legacy path', async () => {
  const inSpace = `watch/namespaces/${space}`;
  for (const url of [
    `/api/v1/${inSpace}/configmaps/a`,
    `/api/v1/${inSpace}/configmaps?fieldSelector=metadata.name=a`,
    `/apis/${GROUP}/v1/${inSpace}/widgets/a`,
    `/apis/${GROUP}/v1/${inSpace}/widgets`,
  ]) {
    const watching = await api.watch(url);
    assert.deepEqual([watching.status, await watching.nextInShort(1)], [200, ['ADDED a']], url);
  }
  const other = await api.watch(`/api/v1/${inSpace}/configmaps/none?timeoutSeconds=1`);
  assert.deepEqual(await other.rest(), []);
});

test('a legacy watch has the rules of a list, and its name must fit its field selector', async () => {
  const maps = `/api/v1/watch/namespaces/${space}/configmaps`;
  const wrongName = "fieldSelector metadata.name doesn't match requested name";
  for (const [url, code, message] of [
    [`${maps}/a?fieldSelector=metadata.name=b`, 400, wrongName],
    [`${maps}/a?fieldSelector=metadata.namespace=b`, 400, wrongName],
    [`${maps}/a?fieldSelector=a`, 400, "invalid selector: 'a'; can't understand 'a'"],
    [`${maps}?sendInitialEvents=true`, 422, 'sendInitialEvents is forbidden for list'],
    [`${maps}?resourceVersionMatch=Exact`, 422, 'forbidden unless resourceVersion is provided'],
    ['/api/v1/watch/configmaps/a', 404, 'the server could not find the requested resource'],
    ['/api/v1/watch/componentstatuses', 404, 'the server could not find the requested resource'],
    ['/api/v1/componentstatuses?watch=1', 405, 'watch is not supported on resources of kind'],
  ] as const) {
    const { status, body } = await api.get(url);
    assert.equal(status, code, url);
    assert.ok(body.message.includes(message), `${url}: ${body.message}`);
  }
  const labelled = await api.watch(
    `${maps}?allowWatchBookmarks=true&continue=x&labelSelector=of=legacy`,
  );
  await api.made(api.post(path, configMap('b', {}, { labels: { of: 'legacy' } })));
  assert.deepEqual(await labelled.nextInShort(1), ['ADDED b'], 'there is no bookmark before');
});

test('a path that ends after the verb of a legacy path cannot be interpreted', async () => {
  for (const url of [
    '/api/v1/watch',
    '/apis/apps/v1/watch/',
    '/apis/none/v1/watch?a=b',
    '/api/v1/proxy',
  ]) {
    const { status, text } = await api.get(url);
    const problem = `failed to create RequestInfo: unable to determine kind and namespace from url, ${url}`;
    assert.deepEqual([status, text], [500, `Internal Server Error: "${url}": ${problem}\n`]);
  }
});

test('a proxy needs a target', skipBefore(37), async () => {
  const base = `/api/v1/namespaces/${space}`;
  await api.made(
    api.post(`${base}/services`, { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } }),
  );
  for (const [url, code, message] of [
    [`${base}/services/none/proxy`, 503, 'no endpoints available for service "none"'],
    [`${base}/services/none/proxy/a/b?c=d`, 503, 'no endpoints available for service "none"'],
    [`${base}/services/none:http/proxy/`, 503, 'no endpoints available for service "none"'],
    [`${base}/services/https:none:443/proxy/`, 404, 'services "none" not found'],
    [`${base}/services/s:80/proxy/`, 503, 'no endpoints available for service "s"'],
    [`${base}/services/s:81/proxy/`, 503, 'no service port 81 found for service "s"'],
    [`${base}/services/ftp:s:80/proxy/`, 400, 'invalid service request "ftp:s:80"'],
    [`${base}/pods/none:80/proxy/a`, 404, 'pods "none" not found'],
    [`${base}/pods/a:b:c:d/proxy/`, 400, 'invalid pod request "a:b:c:d"'],
    ['/api/v1/nodes/none:80/proxy/a', 404, 'nodes "none" not found'],
  ] as const) {
    for (const method of ['GET', 'POST'] as const) {
      const { status, body } = await api.send(method, url, method === 'GET' ? undefined : {});
      assert.deepEqual([status, body.message], [code, message], url);
    }
  }
});

test('a finalizer of a built-in kind is a standard name or has a domain', async () => {
  const withFinalizers = (...finalizers: string[]) => configMap('finalized', {}, { finalizers });
  const rejected = await api.post(path, withFinalizers('ex.com/a', 'foo'));
  assertRejected(rejected, {
    code: 422,
    reason: 'Invalid',
    message:
      'ConfigMap "finalized" is invalid: metadata.finalizers[1]: Invalid value: "foo": name is neither a standard finalizer name nor is it fully qualified',
  });
  await api.made(api.post(path, withFinalizers('ex.com/a', 'orphan')));
  const update = { metadata: { finalizers: ['foo'] } };
  assert.equal((await api.patch(`${path}/finalized`, update, MERGE)).status, 422);
});

test('each response of a deprecated version has a warning', async () => {
  const warningOf = async (version: string, rest: string) => {
    const url = widgets(space).replace('/v1/', `/${version}/`);
    const { headers } = rest === 'watch' ? await api.watch(url) : await api.get(`${url}${rest}`);
    return headers['warning'];
  };
  for (const rest of ['', '/a', '/none', 'watch']) {
    assert.equal(
      await warningOf('v1beta1', rest),
      `299 - "${GROUP}/v1beta1 Widget is deprecated; use ${GROUP}/v1 Widget"`,
    );
    assert.equal(await warningOf('v1alpha1', rest), '299 - "go away"');
    assert.equal(await warningOf('v1', rest), undefined);
  }
  const { status, headers } = await api.post('/api/v1/namespaces/default/endpoints', {
    subsets: 1,
  });
  assert.equal(status, 400);
  assert.match(headers['warning'] ?? '', /^299 - "v1 Endpoints is deprecated/);
});

test('duplicate keys of YAML, applies and patches are warnings, or errors if validation is strict', async () => {
  const yaml =
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: twice\ndata:\n  a: "1"\n  a: "2"\n';
  const patched = '{"data":{"a":"1","a":"2"}}';
  const cases: [string, string, string, string, RegExp, number][] = [
    ['POST', path, 'application/yaml', yaml, /line 7: key .*a.* already set in map/, 400],
    ['PATCH', `${path}/twice`, APPLY, yaml, /line 7: key .*a.* already set in map/, 400],
    ['PATCH', `${path}/a`, MERGE, patched, /duplicate field .*data\.a/, 422],
    ['PATCH', `${path}/a`, STRATEGIC, patched, /duplicate field .*data\.a/, 422],
  ];
  for (const [method, url, type, body, message, strict] of cases) {
    const send = (validation: string) =>
      api.send(
        method as 'POST',
        `${url}?dryRun=All&fieldManager=one&fieldValidation=${validation}`,
        body,
        { 'content-type': type },
      );
    const warned = await send('Warn');
    assert.equal(warned.body.data.a, '2', type);
    assert.match(warned.headers['warning'] ?? '', message, type);
    assert.equal((await send('Ignore')).headers['warning'], undefined, type);
    const refused = await send('Strict');
    assert.equal(refused.status, strict, type);
    assert.match(refused.body.message, message, type);
  }
});

test('YAML has the booleans and numbers of YAML 1.1', async () => {
  const yaml = (fields: string) =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: old\n${fields}`;
  const apply = (fields: string) =>
    api.send('PATCH', `${path}/old?dryRun=All&fieldManager=one`, yaml(fields), {
      'content-type': APPLY,
    });
  assert.equal((await apply('immutable: yes\n')).body.immutable, true);
  assert.deepEqual((await apply('data:\n  on: a\n  b: 1:30\n')).body.data, {
    true: 'a',
    b: '1:30',
  });
  assert.equal((await apply('data:\n  a: off\n')).status, 500);
});

test('YAML has aliases and merge keys; aliases that expand to too much are refused', async () => {
  const send = (fields: string) =>
    api.send(
      'POST',
      `${path}?dryRun=All&fieldValidation=Strict`,
      `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: alias\n${fields}`,
      { 'content-type': 'application/yaml' },
    );
  const aliased = '  labels: &l {x: "y"}\n  annotations: *l\ndata:\n  <<: [*l, {a: b}]\n  c: d\n';
  const { metadata, data } = await api.made(send(aliased));
  assert.deepEqual([metadata.labels, metadata.annotations], [{ x: 'y' }, { x: 'y' }]);
  assert.deepEqual(data, { x: 'y', a: 'b', c: 'd' });
  const [first, ...more] = 'abcdefgh'.split('');
  const lists = more.map(
    (name, at) => `${name}: &${name} [${`*${[first, ...more][at]},`.repeat(9)}]`,
  );
  const { status } = await send([`${first}: &${first} [x]`, ...lists, ''].join('\n'));
  assert.ok(status >= 400 && status < 500, String(status));
});

test('a patch that does not fit is refused with the code of its type', async () => {
  const send = (type: string, patch: unknown) =>
    api.send('PATCH', `${path}/a?dryRun=All`, JSON.stringify(patch), { 'content-type': type });
  const cases: [string, unknown, number][] = [
    [JSON_PATCH, null, 200],
    [JSON_PATCH, [{ op: 'add', value: 1 }], 422],
    [JSON_PATCH, [{ op: 'add', path: 'x', value: 1 }], 422],
    [JSON_PATCH, [{ op: 'copy', path: '/data' }], 422],
    [JSON_PATCH, ['x'], 400],
    [JSON_PATCH, [{ op: 'replace', path: '/metadata', value: '1' }], 422],
    [JSON_PATCH, [{ op: 'remove', path: '/metadata' }], 400],
    [STRATEGIC, null, 200],
    [STRATEGIC, { data: 'x' }, 422],
    [STRATEGIC, { metadata: { '$setElementOrder/finalizers': 'x' } }, 500],
  ];
  for (const [type, patch, code] of cases) {
    const { status, body } = await send(type, patch);
    assert.equal(status, code, `${JSON.stringify(patch)}: ${body.message}`);
  }
  const { body } = await send(STRATEGIC, { data: 'x' });
  assert.match(body.message, /Invalid value: "map\[data:x\]": cannot restore map from string$/);
  assert.equal((await send('text/plain', {})).body.message, '415: Unsupported Media Type');
});

test('zero values that Go omits are not stored, and belong to no manager', async () => {
  const { status, body } = await api.post(`${path}?dryRun=All`, configMap('empty', {}));
  assert.equal(status, 201);
  assert.deepEqual([body.data, body.metadata.managedFields], [undefined, undefined]);
  const nulls = configMap('empty', { a: null }, { annotations: { a: null } });
  const texts = await api.post(`${path}?dryRun=All`, nulls);
  assert.deepEqual([texts.body.data, texts.body.metadata.annotations], [{ a: '' }, { a: '' }]);
  const container = { name: 'main', image: 'image', command: [], tty: false };
  const pod = await api.post(`/api/v1/namespaces/${space}/pods?dryRun=All`, {
    metadata: { name: 'zero' },
    spec: { hostNetwork: false, nodeSelector: {}, volumes: [], containers: [container] },
  });
  assert.equal(pod.status, 201);
  const { spec } = pod.body;
  assert.deepEqual([spec.hostNetwork, spec.nodeSelector], [undefined, undefined]);
  assert.deepEqual([spec.containers[0].command, spec.containers[0].tty], [undefined, undefined]);
  const fields = JSON.stringify(pod.body.metadata.managedFields);
  assert.doesNotMatch(fields, /f:hostNetwork|f:nodeSelector|f:command|f:tty/);
});

test('an image without a name and credentials that are not JSON are invalid', async () => {
  const pod = (image: string) => ({
    metadata: { name: 'blank' },
    spec: { containers: [{ name: 'main', image }] },
  });
  for (const image of [' ', 'image ']) {
    const { status, body } = await api.post(
      `/api/v1/namespaces/${space}/pods?dryRun=All`,
      pod(image),
    );
    assert.deepEqual([status, body.details.causes[0].field], [422, 'spec.containers[0].image']);
  }
  for (const text of ['{bad', '[1]']) {
    const { status, body } = await api.post(`/api/v1/namespaces/${space}/secrets?dryRun=All`, {
      metadata: { name: 'credentials' },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(text).toString('base64') },
    });
    assert.deepEqual([status, body.details.causes[0].field], [422, 'data[.dockerconfigjson]']);
  }
});

test('other verbs of a legacy watch, of exec and of the version are not allowed', async () => {
  const pods = `/api/v1/namespaces/${space}/pods`;
  for (const [method, url, code] of [
    ['POST', `/api/v1/watch/namespaces/${space}/configmaps`, 405],
    ['DELETE', `/api/v1/watch/namespaces/${space}/configmaps`, 405],
    ['POST', '/version', 405],
    ['GET', `${pods}/none/exec`, 404],
    ['PUT', `${pods}/none/exec`, 405],
    ['POST', '/apis', 200],
  ] as const) {
    const { status } = await api.send(method, url, method === 'GET' ? undefined : {});
    assert.equal(status, code, `${method} ${url}`);
  }
});

test('a connection to a Pod needs its container and its node', async () => {
  const pods = `/api/v1/namespaces/${space}/pods`;
  const containers = ['one', 'two'].map((name) => ({ name, image: 'nginx' }));
  const initContainers = [{ name: 'first', image: 'nginx' }];
  await api.made(
    api.post(pods, { metadata: { name: 'waiting' }, spec: { containers, initContainers } }),
  );
  const choice = 'choose one of: [first one two]';
  for (const [url, message] of [
    ['exec?command=ls', `a container name must be specified for pod waiting, ${choice}`],
    ['exec?command=ls&container=none', 'container none is not valid for pod waiting'],
    ['exec?command=ls&container=one', 'pod waiting does not have a host assigned'],
    ['attach?container=two', 'pod waiting does not have a host assigned'],
    ['portforward', 'pod waiting does not have a host assigned'],
  ] as const) {
    const { body } = await api.get(`${pods}/waiting/${url}`);
    assert.deepEqual([body.code, body.reason, body.message], [400, 'BadRequest', message], url);
  }
});

test('a connection to a Pod needs a node with an address', async () => {
  const pods = `/api/v1/namespaces/${space}/pods`;
  const node = `no-address-${space}`;
  const containers = [{ name: 'one', image: 'nginx' }];
  await api.made(
    api.post(pods, { metadata: { name: 'bound' }, spec: { containers, nodeName: node } }),
  );
  for (const url of ['exec?command=ls&stdout=1', 'attach?stdout=1', 'portforward']) {
    const { status, body } = await api.get(`${pods}/bound/${url}`);
    assert.deepEqual([status, body.message], [404, `pods "${node}" not found`], url);
  }
  await api.made(api.post('/api/v1/nodes', { metadata: { name: node } }));
  for (const url of ['exec?command=ls&stdout=1', 'attach?stdout=1', 'portforward']) {
    const { status, body } = await api.post(`${pods}/bound/${url}`, {});
    const message = 'no preferred addresses found; known addresses: []';
    assert.deepEqual([status, body.message], [500, message], url);
  }
  await api.delete(`/api/v1/nodes/${node}`);
});

test('the body of a deletion replaces the options of its query', async () => {
  await api.made(api.post(path, configMap('both')));
  assert.equal((await api.delete(`${path}/both?dryRun=All`, {})).status, 200);
  assert.equal((await api.get(`${path}/both`)).status, 404);
});

test('options of a deletion in the query have a precondition and are parsed', async () => {
  assert.equal((await api.delete(`${path}/a?uid=other`)).status, 409);
  const reply = await api.delete(`${path}/a?gracePeriodSeconds=x`);
  assert.equal(reply.body.message, 'strconv.ParseInt: parsing "x": invalid syntax');
  const { body } = await api.delete(`${path}/a`, { orphanDependents: 'x' });
  assert.equal(
    body.message,
    'json: cannot unmarshal string into Go struct field DeleteOptions.orphanDependents of type bool',
  );
});

test('a deletion of a collection has a limit', async () => {
  const home = configMaps(await api.namespace());
  for (const name of ['a', 'b']) {
    await api.made(api.post(home, configMap(name, {}, { labels: { of: 'us' } })));
  }
  const { items, metadata } = await api.made(api.delete(`${home}?limit=1&labelSelector=of`));
  assert.ok(metadata.continue);
  assert.deepEqual(
    items.map(({ metadata }: Json) => metadata.name),
    ['a'],
  );
  assert.equal((await api.get(`${home}/b`)).status, 200);
});

test('a path of the server itself does not end with a slash', async () => {
  for (const url of ['/healthz/', '/readyz/?verbose', '/openapi/v3/']) {
    assert.equal((await api.get(url)).status, 404, url);
  }
  assert.equal((await api.get('/readyz/poststarthook/rbac/bootstrap-roles')).status, 200);
});

test('a watch with a negative timeout ends at once', async () => {
  const watching = await api.watch(`${path}?timeoutSeconds=-1`);
  assert.equal(watching.status, 200);
  await watching.rest();
});

test('clients find the key that signs tokens of ServiceAccounts', async () => {
  const { body } = await api.get('/.well-known/openid-configuration');
  assert.match(body.jwks_uri, /\/openid\/v1\/jwks$/);
  const { keys } = JSON.parse((await api.get('/openid/v1/jwks', 'application/jwk-set+json')).text);
  assert.deepEqual([keys.length, keys[0].use], [1, 'sig']);
  assert.equal((await api.get('/openid/v1/jwks')).status, 406);
  assert.equal((await api.post('/openid/v1/jwks', {})).status, 405);
});

test('the networks of a Node are those of its first one, and do not change', async () => {
  const nodes = '/api/v1/nodes';
  const node = (spec: Json) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'strict' },
    spec,
  });
  const refused: readonly (readonly [Json, RegExp])[] = [
    [{ podCIDR: 'x' }, /^spec\.podCIDRs\[0\]: .*must be a valid CIDR/],
    [{ podCIDR: '10.1.2.3/24' }, /must not have bits set beyond the prefix length/],
    [{ podCIDRs: ['10.1.0.0/24', '10.2.0.0/24'] }, /no more than one CIDR for each IP family/],
  ];
  for (const [spec, message] of refused) {
    const { status, body } = await api.post(`${nodes}?dryRun=All`, node(spec));
    assert.equal(status, 422);
    assert.match(body.message.replace('Node "strict" is invalid: ', ''), message);
  }
  const { spec } = await api.made(api.post(nodes, node({ podCIDR: '10.1.0.0/24' })));
  assert.deepEqual(spec.podCIDRs, ['10.1.0.0/24']);
  const changed = await api.patch(`${nodes}/strict`, { spec: { podCIDR: '10.2.0.0/24' } });
  assert.match(changed.body.message, /may not change podCIDR except from "" to valid$/);
});

test('a Secret has empty values, and values that are base64', async () => {
  const secret = (data: Json) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'values' },
    data,
  });
  const secrets = `/api/v1/namespaces/${space}/secrets?dryRun=All`;
  assert.deepEqual((await api.made(api.post(secrets, secret({ a: '' })))).data, { a: '' });
  const lines = await api.made(api.post(secrets, secret({ a: 'YWJj\r\nZGU=\n', b: 'YR==' })));
  assert.deepEqual(lines.data, { a: 'YWJjZGU=', b: 'YQ==' });
  const { body } = await api.post(secrets, secret({ a: 'x!' }));
  assert.match(body.message, /cannot be handled as a Secret: illegal base64 data at input byte 1$/);
  const number = await api.post(secrets, { ...secret({ a: 5 }), unknown: 1 });
  assert.match(number.body.message, /number into Go struct field Secret\.data of type \[\]uint8$/);
  assert.equal(number.headers['warning'], undefined);
});

test('a time in metadata has the form of RFC 3339', async () => {
  const { status, body } = await api.post(path, configMap('time', {}, { creationTimestamp: 'x' }));
  assert.equal(status, 400);
  assert.match(body.message, /parsing time "x" as .*: cannot parse "x" as "2006"$/);
});

test('a value of the wrong type is reported before other errors, also if the write would drop it', async () => {
  const secrets = `/api/v1/namespaces/${space}/secrets`;
  const decoding = (kind: string, why: string) => ({
    code: 400,
    reason: 'BadRequest',
    message: `${kind} in version "v1" cannot be handled as a ${kind}: ${why}`,
  });
  const field = 'json: cannot unmarshal number into Go struct field';
  assertRejected(
    await api.post(secrets, { metadata: { name: 'a' }, data: { a: '!' }, stringData: { a: 'x' } }),
    decoding('Secret', 'illegal base64 data at input byte 0'),
  );
  assertRejected(
    await api.post(`/api/v1/namespaces/${space}/pods`, { ...pod('a'), status: { hostIP: 5 } }),
    decoding('Pod', `${field} PodStatus.status.hostIP of type string`),
  );
  // YAML 1.1 reads `n` as false.
  const spec = { ...pod('a').spec, nodeName: false };
  assertRejected(
    await api.post(`/api/v1/namespaces/${space}/pods`, { ...pod('a'), spec }),
    decoding(
      'Pod',
      'json: cannot unmarshal bool into Go struct field PodSpec.spec.nodeName of type string',
    ),
  );
  const wrong = decoding('ConfigMap', `${field} ConfigMap.data of type string`);
  const existing = configMap('a', { a: 5 });
  assertRejected(await api.post(path, existing), wrong);
  assertRejected(await api.post(`${path}?fieldValidation=Strict`, { ...existing, b: 1 }), wrong);
  const elsewhere = configMap('b', { a: 5 }, { namespace: 'elsewhere' });
  assertRejected(await api.post(path, elsewhere), wrong);
});

test('the first value of the wrong type is named by its Go type', async () => {
  const at = (plural: string) => `/api/v1/namespaces/${space}/${plural}`;
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${space}/leases`;
  const container = { name: 'a', image: 'a' };
  const ofPod = (spec: Json) => ({ ...pod('a'), spec: { ...pod('a').spec, ...spec } });
  const field = 'json: cannot unmarshal';
  const time = 'parsing time "x" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "x" as "2006"';
  const cases: [path: string, body: Json, why: string][] = [
    [
      at('pods'),
      ofPod({ restartPolicy: 5 }),
      'PodSpec.spec.restartPolicy of type v1.RestartPolicy',
    ],
    [
      at('pods'),
      ofPod({ containers: [{ ...container, resources: { requests: 5 } }] }),
      'ResourceRequirements.spec.containers.resources.requests of type v1.ResourceList',
    ],
    [
      at('persistentvolumeclaims'),
      { metadata: { name: 'a' }, spec: { accessModes: 5 } },
      'PersistentVolumeClaimSpec.spec.accessModes of type []v1.PersistentVolumeAccessMode',
    ],
    [at('configmaps'), configMap('a', {}, { uid: 5 }), 'ObjectMeta.metadata.uid of type types.UID'],
    [
      at('pods'),
      ofPod({ priority: 1.5 }),
      'json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32',
    ],
    [
      at('configmaps'),
      { data: { a: 5 }, metadata: { name: 'a', labels: 5 } },
      'ConfigMap.data of type string',
    ],
    [leases, { metadata: { name: 'a', labels: 5 }, spec: { renewTime: 'x' } }, time],
    [
      leases,
      { metadata: { name: 'a' }, spec: { renewTime: {} } },
      `${field} object into Go struct field LeaseSpec.spec.renewTime of type string`,
    ],
    // Names of embedded structs are part of the path.
    [
      at('pods'),
      ofPod({ containers: [{ ...container, livenessProbe: { httpGet: { port: true } } }] }),
      `${field} bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32`,
    ],
    [
      leases,
      { metadata: { name: 'a' }, spec: { leaseDurationSeconds: {} } },
      `${field} object into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32`,
    ],
  ];
  for (const [path, body, why] of cases) {
    const reply = await api.post(path, body);
    assert.equal(reply.status, 400);
    const whole = why === time || why.startsWith('json:');
    const expected = whole ? why : `${field} number into Go struct field ${why}`;
    assert.equal(reply.body.message.split(/: (.*)/s)[1], expected);
  }
  await api.made(api.post(at('secrets'), { metadata: { name: 'types' } }));
  const patch = (body: Json, type?: string) => api.patch(`${at('secrets')}/types`, body, type);
  assert.match(
    (await patch({ type: 5 }, STRATEGIC)).body.message,
    /: cannot convert int64 to v1\.SecretType$/,
  );
  assert.match(
    (await patch({ metadata: 'x' }, STRATEGIC)).body.message,
    /: cannot restore struct from: string$/,
  );
  assert.match(
    (await patch({ metadata: { labels: 5 }, data: { a: 5 } })).body.message,
    /number into Go struct field Secret\.data of type \[\]uint8$/,
  );
});

test('a number with a fraction or an exponent is no integer, whatever its value', async () => {
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${space}/leases`;
  const lease = (name: string, seconds: string) =>
    `{"metadata":{"name":"${name}"},"spec":{"leaseDurationSeconds":${seconds}}}`;
  await api.made(api.post(leases, JSON.parse(lease('number', '1'))));
  const patch = `{"spec":{"leaseDurationSeconds":1.0}}`;
  for (const number of ['1.0', '1e2', '0.0', '1e400', '9223372036854775808']) {
    const reply = await api.post(leases, lease('refused', number));
    assert.equal(reply.status, 400);
    const why = `json: cannot unmarshal number ${number} into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32`;
    assert.equal(reply.body.message.split(/: (.*)/s)[1], why);
  }
  const at = `${leases}/number`;
  assert.equal((await api.send('PUT', at, lease('number', '1.0'))).status, 400);
  assert.match(
    (await api.patch(at, patch)).body.message,
    /leaseDurationSeconds.*:1\.0}}": json: cannot unmarshal number 1\.0 /,
  );
  // The converter of strategic merge patches has numbers without their texts.
  assert.equal((await api.patch(at, patch, STRATEGIC)).status, 200);
  const data = '{"metadata":{"name":"number"},"revision":1,"data":{"a":[1.0]}}';
  const revisions = `/apis/apps/v1/namespaces/${space}/controllerrevisions`;
  assert.deepEqual((await api.made(api.post(revisions, data))).data, { a: [1] });
  const quota = '{"metadata":{"name":"number"},"spec":{"hard":{"pods":1e1}}}';
  const quotas = `/api/v1/namespaces/${space}/resourcequotas`;
  assert.equal((await api.made(api.post(quotas, quota))).spec.hard.pods, '10');
});

test('a list is null when it is read if it was empty and Go does not omit it', async () => {
  const slices = `/apis/discovery.k8s.io/v1/namespaces/${space}/endpointslices`;
  const slice = { metadata: { name: 'lists' }, addressType: 'IPv4', endpoints: [], ports: [] };
  const { endpoints, ports, metadata } = await api.made(api.post(slices, slice));
  assert.deepEqual([endpoints, ports], [null, null]);
  // The client owns the list that it has sent.
  assert.deepEqual(Object.keys(metadata.managedFields[0].fieldsV1), [
    'f:addressType',
    'f:endpoints',
    'f:ports',
  ]);
  const nodes = '/apis/storage.k8s.io/v1/csinodes';
  for (const drivers of [[], null]) {
    const reply = await api.post(`${nodes}?dryRun=All`, {
      metadata: { name: 'lists' },
      spec: { drivers },
    });
    assert.deepEqual(reply.body.spec, { drivers: null });
  }
  const template = { spec: { ...pod('a').spec, restartPolicy: 'Never' } };
  const job = { metadata: { name: 'lists' }, spec: { template, podFailurePolicy: {} } };
  const jobs = `/apis/batch/v1/namespaces/${space}/jobs`;
  assert.deepEqual((await api.made(api.post(jobs, job))).spec.podFailurePolicy, { rules: null });
});

test('an item that is null has the zero value of its type', async () => {
  const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
  const role = {
    metadata: { name: `${space}-null` },
    aggregationRule: { clusterRoleSelectors: [null] },
  };
  const { aggregationRule } = await api.made(api.post(roles, role));
  assert.deepEqual(aggregationRule, { clusterRoleSelectors: [{}] });
  await api.made(api.delete(`${roles}/${space}-null`));
  const port = { httpGet: { port: null } };
  const spec = { containers: [{ name: 'a', image: 'a', livenessProbe: port }] };
  const reply = await api.post(`/api/v1/namespaces/${space}/pods`, {
    metadata: { name: 'null' },
    spec,
  });
  assert.match(reply.body.message, /httpGet\.port: Invalid value: 0: must be between 1 and 65535/);
});

test('a built-in kind without its apiVersion has no name after a patch', async () => {
  const unnamed = {
    code: 400,
    reason: 'BadRequest',
    message: 'the name of the object (a based on URL) was undeterminable: name must be provided',
  };
  const reply = await api.patch(`${path}/a`, { apiVersion: null });
  assertRejected(reply, unnamed);
  assert.equal(
    reply.headers['warning'],
    ['data', 'metadata'].map((name) => String.raw`299 - "unknown field \"${name}\""`).join(', '),
  );
  assertRejected(
    await api.patch(`${path}/a`, [{ op: 'remove', path: '/apiVersion' }], JSON_PATCH),
    unnamed,
  );
});

test('an apply that creates needs a name, and its resourceVersion must be a number', async () => {
  const { metadata: _metadata, ...nameless } = configMap('new');
  assertRejected(await api.apply(`${path}/new`, 'a', nameless), {
    code: 400,
    reason: 'BadRequest',
    message: 'the name of the object (new based on URL) was undeterminable: name must be provided',
  });
  assert.equal((await api.apply(`${path}/a`, 'a', nameless)).status, 200);
  const outdated = configMap('new', {}, { resourceVersion: 'x' });
  assertRejected(await api.apply(`${path}/new`, 'a', outdated), {
    code: 500,
    message: 'strconv.ParseUint: parsing "x": invalid syntax',
  });
});

test('unknown fields of a Scale are reported, also if the scaled object does not exist', async () => {
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'b' }, more: 1 };
  const paths = [
    `${widgets(space)}/b/scale`,
    `/apis/apps/v1/namespaces/${space}/deployments/b/scale`,
  ];
  for (const at of paths) {
    const { status, headers } = await api.put(at, scale);
    assert.deepEqual(
      [status, headers['warning']],
      [404, String.raw`299 - "unknown field \"more\""`],
    );
  }
  const patched = await api.patch(`${widgets(space)}/a/scale`, { spec: { color: 'x' } });
  assert.equal(patched.headers['warning'], String.raw`299 - "unknown field \"spec.color\""`);
});

test('a patch names the decoder of malformed base64 if it is converted from maps', async () => {
  const secrets = `/api/v1/namespaces/${space}/secrets`;
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'decoded' } };
  await api.made(api.post(secrets, secret));
  const data = { a: '!' };
  const merged = await api.patch(`${secrets}/decoded`, { data }, STRATEGIC);
  assert.equal(merged.status, 422);
  assert.match(
    merged.body.message,
    /: error decoding from json: illegal base64 data at input byte 0$/,
  );
  const applied = await api.apply(`${secrets}/decoded`, 'one', { ...secret, data });
  assert.equal(applied.status, 500);
  assert.match(
    applied.body.message,
    /: error decoding from json: illegal base64 data at input byte 0$/,
  );
});

test('times of a Lease have six digits after the second', async () => {
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${space}/leases`;
  const lease = (renewTime: string) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'a' },
    spec: { renewTime },
  });
  const why = (end: string) =>
    `parsing time "2020-01-01T00:00:00${end}Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "${end}Z" as ".000000"`;
  for (const end of ['', '.5']) {
    const { status, body } = await api.post(leases, lease(`2020-01-01T00:00:00${end}Z`));
    const message = `Lease in version "v1" cannot be handled as a Lease: ${why(end)}`;
    assert.deepEqual([status, body.message], [400, message]);
  }
  const exact = '2020-01-01T00:00:00.123456Z';
  assert.equal((await api.made(api.post(leases, lease(exact)))).spec.renewTime, exact);
  const applied = await api.apply(
    `${leases}/a`,
    'one',
    lease('2020-01-01T00:00:00Z'),
    '&force=true',
  );
  assert.equal(applied.status, 500);
  assert.match(
    applied.body.message,
    /^failed to convert new object \(\S*\/a; coordination\.k8s\.io\/v1, Kind=Lease\) to proper version: unable to convert unstructured object to coordination\.k8s\.io\/v1, Kind=Lease: parsing time /,
  );
});

test('a Role without rules has null rules', async () => {
  const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${space}/roles`;
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'a' },
  };
  assert.equal((await api.made(api.post(roles, role))).rules, null);
  const empty = await api.made(api.put(`${roles}/a`, { ...role, rules: [] }));
  assert.deepEqual([empty.rules, (await api.get(`${roles}/a`)).body.rules], [null, null]);
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
  assert.equal((await api.apply(`${roles}/a`, 'one', { ...role, rules })).status, 200);
});

test(
  'fields of valid objects that are deprecated or have no effect get warnings',
  skipBefore(37),
  async () => {
    const warned = async (object: Json, texts: readonly string[]) => {
      const [group, version] = object.apiVersion.includes('/')
        ? object.apiVersion.split('/')
        : ['', 'v1'];
      const root = group === '' ? '/api' : `/apis/${group}`;
      const plural = `${object.kind.toLowerCase()}${object.kind.endsWith('s') ? 'es' : 's'}`;
      const place = plural === 'persistentvolumes' ? '' : `namespaces/${space}/`;
      const list = `${root}/${version}/${place}${plural}?dryRun=All`;
      const { status, text, headers } = await api.post(list, object);
      assert.equal(status, 201, text);
      const headed = texts.map((each) => `299 - "${each.replaceAll('"', String.raw`\"`)}"`);
      assert.deepEqual(headers['warning']?.split(/, (?=299)/), headed);
    };
    const named = (apiVersion: string, kind: string, rest: Json) => ({
      apiVersion,
      kind,
      metadata: { name: 'warned' },
      ...rest,
    });
    const term = (key: string) => ({
      nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'Exists' }] }],
    });
    const invalid =
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    const [container] = pod('x').spec.containers;
    const env = ['a', 'b', '$(A)c'].map((value) => ({ name: 'A', value }));
    const ports = [{ containerPort: 80, name: 'web' }];
    const spec = {
      nodeSelector: { 'beta.kubernetes.io/os': 'linux' },
      terminationGracePeriodSeconds: -1,
      imagePullSecrets: [{ name: 's' }, { name: 's' }],
      containers: [
        { ...container, env, ports, resources: { requests: { memory: '100m' } } },
        { ...container, name: 'other', ports },
      ],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: term('beta.kubernetes.io/arch'),
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 1,
              preference: { matchExpressions: [{ key: 'a', operator: 'In', values: ['-'] }] },
            },
          ],
        },
      },
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'failure-domain.beta.kubernetes.io/zone',
          whenUnsatisfiable: 'DoNotSchedule',
        },
      ],
    };
    const inSpec = (path: string) => [
      `${path}.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`,
      `${path}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead`,
      `${path}.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]: - is invalid, ${invalid}`,
      `${path}.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
      `${path}.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod`,
      `${path}.imagePullSecrets[1].name: duplicate name "s"`,
      `${path}.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer`,
      `${path}.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`,
      `${path}.containers[1].ports[0]: duplicate port definition with ${path}.containers[0].ports[0]`,
      `${path}.containers[1].ports[0]: duplicate port name "web" with ${path}.containers[0].ports[0], services and probes that select ports by name will use ${path}.containers[0].ports[0]`,
      `${path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`,
    ];
    await warned(named('v1', 'Pod', { spec }), inSpec('spec').slice(0, -1));
    const labels = { a: 'x' };
    const template = { metadata: { labels }, spec };
    await warned(
      named('apps/v1', 'Deployment', { spec: { selector: { matchLabels: labels }, template } }),
      inSpec('spec.template.spec'),
    );
    const dotted = pod('a.b');
    await warned(dotted, [
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    ]);
    const port = { ports: [{ port: 80 }] };
    const volume = {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Recycle',
      nodeAffinity: { required: term('beta.kubernetes.io/os') },
    };
    await warned(
      named('v1', 'PersistentVolume', { spec: { ...volume, hostPath: { path: '/tmp/a' } } }),
      [
        'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
        'spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead',
      ],
    );
    await warned(
      named('v1', 'PersistentVolume', {
        spec: {
          ...volume,
          persistentVolumeReclaimPolicy: 'Retain',
          nodeAffinity: undefined,
          storageos: { volumeName: 'a' },
        },
      }),
      ['spec.storageOS: deprecated in v1.22, non-functional in v1.25+'],
    );
    await warned(named('v1', 'Service', { spec: { ...port, externalName: 'a.example.com' } }), [
      'spec.externalName is ignored when spec.type is not "ExternalName"',
    ]);
    const headless = { ...port, clusterIP: 'None', sessionAffinity: 'ClientIP' };
    await warned(named('v1', 'Service', { spec: headless }), [
      'spec.SessionAffinity is ignored for headless services',
    ]);
    const data = { 'tls.crt': 'eA==', 'tls.key': 'eA==' };
    await warned(named('v1', 'Secret', { type: 'kubernetes.io/tls', data }), [
      'tls: failed to find any PEM data in certificate input',
    ]);
    await warned(widget('w', { color: 'red' }, { finalizers: ['b.c', 'a', 'example.com/x'] }), [
      'metadata.finalizers: "a": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers',
      'metadata.finalizers: "b.c": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers',
    ]);
  },
);

test('quantities are stored as Go writes them, and amounts of resources are rounded up to thousandths', async () => {
  const space = await api.namespace();
  const stored = async (amount: Json) => {
    const draft = pod('q');
    draft.spec.containers[0].resources = { limits: { cpu: amount } };
    draft.spec.volumes = [{ name: 'v', emptyDir: { sizeLimit: amount } }];
    const { spec } = await api.made(api.post(`${pods(space)}?dryRun=All`, draft));
    return [spec.containers[0].resources.limits.cpu, spec.volumes[0].emptyDir.sizeLimit];
  };
  for (const [given, ...expected] of [
    ['+1', '+1', '+1'],
    ['5.', '5.', '5.'],
    ['00012', '00012', '00012'],
    ['1.0', '1', '1'],
    [1.5, '1500m', '1500m'],
    ['1e400', '10e399', '10e399'],
    ['9Ei', '9223372036854775807', '9223372036854775807'],
    ['1n', '1m', '1n'],
    [null, '0', undefined],
  ]) {
    assert.deepEqual(await stored(given), expected, String(given));
  }
  // Thousandths are counted in 64 bits.
  const quotas = `/api/v1/namespaces/${space}/resourcequotas?dryRun=All`;
  for (const [amount, status] of [
    ['1Ei', 422],
    ['9223372036854776', 422],
    ['1E', 201],
    ['1Pi', 201],
    ['9223372036854775807', 201],
    ['1500m', 422],
  ]) {
    const quota = { metadata: { name: 'q' }, spec: { hard: { pods: amount } } };
    assert.equal((await api.post(quotas, quota)).status, status, String(amount));
  }
  for (const [given, problem] of [
    ['1K', "unable to parse quantity's suffix"],
    [true, 'quantities must match the regular expression'],
  ]) {
    const draft = pod('q');
    draft.spec.containers[0].resources = { limits: { cpu: given } };
    const { status, body } = await api.post(pods(space), draft);
    assert.equal(status, 400);
    assert.ok(body.message.includes(`cannot be handled as a Pod: ${problem}`), body.message);
  }
});

test('a number out of the range of its field cannot be decoded', async () => {
  const space = await api.namespace();
  for (const [field, value, found] of [
    [
      'priority',
      1e10,
      'number 10000000000 into Go struct field PodSpec.spec.priority of type int32',
    ],
    ['priority', 'high', 'string into Go struct field PodSpec.spec.priority of type int32'],
    [
      'activeDeadlineSeconds',
      1.5,
      'number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64',
    ],
  ] as const) {
    const draft = pod('range');
    draft.spec[field] = value;
    assertRejected(await api.post(pods(space), draft), {
      code: 400,
      reason: 'BadRequest',
      message: `Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal ${found}`,
    });
  }
});

test('the error of a value in a map names the fields on its path', async () => {
  const crd = widgetCrd('typed.example.com', ({ spec }) => {
    const { properties } = spec.versions[0].schema.openAPIV3Schema;
    properties.spec.properties['a.b'] = { type: 'object', properties: { c: { type: ['string'] } } };
  });
  const { status, body } = await api.post(CRDS, crd);
  assert.equal(status, 400);
  assert.match(
    body.message,
    /cannot unmarshal array into Go struct field JSONSchemaProps\.spec\.versions\.schema\.openAPIV3Schema(\.properties){3}\.type of type string$/,
  );
});
