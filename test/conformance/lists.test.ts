import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, assertRejected, namesIn } from './api.ts';
import { configMap, configMaps, GROUP, pod, pods, widget, widgetCrd, widgets } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
  space = await api.namespace();
  path = widgets(space);
  for (const [name, color, labels] of [
    ['a', 'red', { tier: 'x' }],
    ['b', 'blue', { tier: 'y' }],
    ['c', 'red', { tier: 'x' }],
    ['d', 'green', {}],
  ] as const) {
    await api.made(api.post(path, widget(name, { color }, { labels })));
  }
  await api.made(api.post(configMaps(space), configMap('a')));
});

after(() => api.close());

/** Path of the four Widgets. */
let path: string;
let space: string;

const query = (text: string) => `${path}?${text}`;
const selecting = (kind: 'label' | 'field', selector: string) =>
  query(`${kind}Selector=${encodeURIComponent(selector)}`);

test('a list has a kind, items and a resourceVersion', async () => {
  const { body } = await api.get(path);
  assert.deepEqual(
    [body.kind, body.apiVersion, namesIn(body)],
    ['WidgetList', `${GROUP}/v1`, ['a', 'b', 'c', 'd']],
  );
  assert.match(body.metadata.resourceVersion, /^[1-9]\d*$/);
  assert.deepEqual([body.items[0].kind, body.items[0].apiVersion], ['Widget', `${GROUP}/v1`]);
  const builtIn = (await api.get(configMaps(space))).body;
  assert.deepEqual([builtIn.kind, builtIn.items[0].kind], ['ConfigMapList', undefined]);
});

test('labels select', async () => {
  const selected: [string, string[]][] = [
    ['tier=x', ['a', 'c']],
    ['tier==x', ['a', 'c']],
    ['tier!=x', ['b', 'd']],
    ['tier in (x, y)', ['a', 'b', 'c']],
    ['tier notin (x)', ['b', 'd']],
    ['tier', ['a', 'b', 'c']],
    ['!tier', ['d']],
    ['tier=x,tier!=x', []],
    ['', ['a', 'b', 'c', 'd']],
  ];
  for (const [selector, names] of selected) {
    assert.deepEqual(namesIn((await api.get(selecting('label', selector))).body), names, selector);
  }
});

test('an invalid label selector is rejected', async () => {
  const refusals: [string, string][] = [
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['tier in (', "unable to parse requirement: found '', expected: ',', ')' or identifier"],
    ['=x', "found '=', expected: !, identifier, or 'end of string'"],
    ['tier=x y', "found 'y', expected: ',' or 'end of string'"],
  ];
  for (const [selector, message] of refusals) {
    const reply = await api.get(selecting('label', selector));
    assertRejected(reply, { code: 400, reason: 'BadRequest', message });
  }
});

test('the name, the namespace and the selectable fields of a CRD select', async () => {
  const selected: [string, string[]][] = [
    ['metadata.name=a', ['a']],
    ['metadata.name!=a', ['b', 'c', 'd']],
    [`metadata.namespace=${space}`, ['a', 'b', 'c', 'd']],
    ['metadata.namespace=default', []],
    ['spec.color=red', ['a', 'c']],
    ['spec.color!=red,metadata.name!=b', ['d']],
  ];
  for (const [selector, names] of selected) {
    assert.deepEqual(namesIn((await api.get(selecting('field', selector))).body), names, selector);
  }
});

test('other fields do not select', async () => {
  assertRejected(await api.get(selecting('field', 'spec.size=1')), {
    code: 400,
    reason: 'BadRequest',
    message: 'field label not supported: spec.size',
  });
  assertRejected(await api.get(`${configMaps(space)}?fieldSelector=data.v%3Dx`), {
    code: 400,
    reason: 'BadRequest',
    message: /field label not supported: data\.v|"data\.v" is not a known field selector/,
  });
});

test('a field selector that is malformed or not supported is rejected', async () => {
  for (const [path, selector, message] of [
    ['/api/v1/nodes', 'metadata.namespace=a', 'field label not supported: metadata.namespace'],
    ['/api/v1/nodes', 'b=x,a=x', 'field label not supported: a'],
    ['/api/v1/pods', 'a=b=c', 'invalid field selector: unescaped character in value: 61'],
    ['/api/v1/pods', 'a=\\b', 'invalid field selector: invalid escape sequence: \\b'],
    ['/api/v1/pods', 'a=b\\', 'invalid field selector: invalid escape sequence: \\'],
  ] as const) {
    const reply = await api.get(`${path}?fieldSelector=${encodeURIComponent(selector)}`);
    assertRejected(reply, { code: 400, reason: 'BadRequest', message });
  }
});

test('pods are selected by node, phase and policy', async () => {
  await api.made(api.post(pods(space), pod('p')));
  const selected: [string, string[]][] = [
    ['spec.nodeName=', ['p']],
    ['spec.nodeName=other', []],
    ['status.phase=Pending', ['p']],
    ['status.phase!=Running', ['p']],
    ['spec.restartPolicy=Always', ['p']],
    ['spec.schedulerName=default-scheduler', ['p']],
    ['status.podIP=', ['p']],
    ['status.podIPs=', ['p']],
    ['status.podIPs=192.0.2.1', []],
  ];
  for (const [selector, names] of selected) {
    const { body } = await api.get(`${pods(space)}?fieldSelector=${encodeURIComponent(selector)}`);
    assert.deepEqual(namesIn(body), names, selector);
  }
});

test('all pages show the same snapshot despite concurrent changes', async () => {
  const at = configMaps(await api.namespace());
  for (const name of ['a', 'b', 'c', 'd', 'e']) await api.made(api.post(at, configMap(name)));
  const first = (await api.get(`${at}?limit=2`)).body;
  assert.deepEqual(namesIn(first), ['a', 'b']);
  assert.equal(first.metadata.remainingItemCount, 3);

  await api.made(api.post(at, configMap('bb')));
  await api.made(api.delete(`${at}/c`));
  await api.made(api.patch(`${at}/d`, { data: { a: 'new' } }));

  const second = (await api.get(`${at}?limit=2&continue=${first.metadata.continue}`)).body;
  assert.deepEqual(namesIn(second), ['c', 'd']);
  assert.deepEqual(second.items[1].data, { a: '1' });
  assert.equal(second.metadata.remainingItemCount, 1);
  assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);

  const third = (await api.get(`${at}?limit=2&continue=${second.metadata.continue}`)).body;
  assert.deepEqual(namesIn(third), ['e']);
  assert.equal(third.metadata.continue, undefined);
  assert.equal(third.metadata.remainingItemCount, undefined);
});

test('pages of a selection do not report the remaining count', async () => {
  const { body } = await api.get(query('limit=1&labelSelector=tier'));
  assert.deepEqual(namesIn(body), ['a']);
  assert.ok(body.metadata.continue);
  assert.equal(body.metadata.remainingItemCount, undefined);
});

test('a full page continues if other objects follow, unless a name or a node selects', async () => {
  const at = pods(await api.namespace());
  const onNode = (name: string, nodeName: string) => {
    const { spec, ...rest } = pod(name, { labels: { a: name } });
    return { ...rest, spec: { ...spec, nodeName } };
  };
  for (const name of ['a', 'b', 'c'])
    await api.made(api.post(at, onNode(name, name === 'c' ? 'y' : 'x')));
  const pages: [string, boolean][] = [
    ['labelSelector=a=a', true],
    ['labelSelector=a=c', false],
    ['labelSelector=a=none', false],
    ['fieldSelector=spec.restartPolicy=Always', true],
    ['fieldSelector=metadata.name=a', false],
    ['fieldSelector=spec.nodeName=y', false],
    ['fieldSelector=spec.nodeName=x', true],
    ['fieldSelector=spec.nodeName=x,metadata.name!=b', true],
  ];
  for (const [selector, continues] of pages) {
    const { body } = await api.get(`${at}?limit=1&${selector}`);
    assert.equal(body.metadata.continue !== undefined, continues, selector);
  }
});

test('a label selector with an invalid key or value is rejected with the reason', async () => {
  for (const [selector, why] of [
    ['A_b/c=d', '<nil>: Invalid value: "A_b/c": prefix part a lowercase RFC 1123 subdomain'],
    ['x/y/z', '<nil>: Invalid value: "x/y/z": a valid label key must consist of'],
    [`a in (b,${'a'.repeat(64)})`, `values[0][a]: Invalid value: "${'a'.repeat(64)}": must be no`],
  ] as const) {
    const { status, body } = await api.get(query(`labelSelector=${encodeURIComponent(selector)}`));
    assert.equal(status, 400, selector);
    assert.ok(body.message.startsWith(`unable to parse requirement: ${why}`), body.message);
  }
});

test('an unknown continue token is rejected', async () => {
  const { body } = await api.get(query('limit=2'));
  const token = body.metadata.continue;
  const unknownToken = Buffer.from('{"v":"meta.k8s.io/v2","rv":1,"start":"x"}').toString(
    'base64url',
  );
  assertRejected(await api.get(query(`continue=${unknownToken}`)), {
    code: 400,
    reason: 'BadRequest',
    message:
      'invalid continue token: continue key is not valid: server does not recognize this encoded version meta.k8s.io/v2',
  });
  for (const [malformed, problem] of [
    ['abc', "invalid character 'i' looking for beginning of value"],
    ['junk', "invalid character '\\u008e' looking for beginning of value"],
    ['eyJ2Ijo', 'unexpected end of JSON input'],
  ] as const) {
    assertRejected(await api.get(query(`continue=${malformed}`)), {
      code: 400,
      reason: 'BadRequest',
      message: `invalid continue token: continue key is not valid: ${problem}`,
    });
  }
  assertRejected(await api.get(query(`continue=${token}&resourceVersion=5`)), {
    code: 400,
    reason: 'BadRequest',
    message: 'specifying resource version is not allowed when using continue',
  });
});

test('an outdated continue token has expired; the response contains a token for an inconsistent continuation', async (t) => {
  const at = widgets(await api.namespace());
  for (const name of ['a', 'b']) await api.made(api.post(at, widget(name)));
  const page = (await api.get(`${at}?limit=1`)).body;
  // A server that caches recent states does not keep a state of this age.
  const token = JSON.parse(Buffer.from(page.metadata.continue, 'base64url').toString());
  const old = Buffer.from(JSON.stringify({ ...token, rv: 1 })).toString('base64url');
  if (!api.expireHistory) return t.skip('other users of the cluster need the history');
  await api.expireHistory();
  const { status, body } = await api.get(`${at}?continue=${old}`);
  assert.deepEqual([status, body.reason, body.code], [410, 'Expired', 410]);
  assert.match(
    body.message,
    /^The provided continue parameter is too old to display a consistent list result\. /,
  );
  const rest = await api.made(api.get(`${at}?continue=${body.metadata.continue}`));
  assert.deepEqual(namesIn(rest), ['b']);
});

test('an exact resourceVersion can be requested', async () => {
  const at = configMaps(await api.namespace());
  await api.made(api.post(at, configMap('a')));
  const { resourceVersion } = (await api.get(at)).body.metadata;
  await api.made(api.post(at, configMap('b')));
  const exact = `${at}?resourceVersionMatch=Exact&resourceVersion=${resourceVersion}`;
  const { body } = await api.get(exact);
  assert.deepEqual([namesIn(body), body.metadata.resourceVersion], [['a'], resourceVersion]);
  const fresh = `${at}?resourceVersionMatch=NotOlderThan&resourceVersion=${resourceVersion}`;
  assert.deepEqual(namesIn((await api.get(fresh)).body), ['a', 'b']);
});

test('an exact resourceVersion before the retained history has expired', async (t) => {
  const at = widgets(await api.namespace());
  await api.made(api.post(at, widget('a')));
  if (!api.expireHistory) return t.skip('other users of the cluster need the history');
  await api.expireHistory();
  assertRejected(await api.get(`${at}?resourceVersionMatch=Exact&resourceVersion=1`), {
    code: 410,
    reason: 'Expired',
    message: 'The resourceVersion for the provided list is too old.',
  });
});

test('a list with resourceVersion 0 ignores the limit', async () => {
  const reply = await api.until('the cache has caught up', async () => {
    const { body } = await api.get(query('resourceVersion=0&limit=1'));
    return body.items.length === 4 && body;
  });
  assert.equal(reply.metadata.remainingItemCount, undefined);
});

test('a future resourceVersion times out', async () => {
  const replies = await Promise.all([
    api.get(query('resourceVersion=999999999')),
    api.get(`${path}/a?resourceVersion=999999999`),
  ]);
  for (const reply of replies) {
    assertRejected(reply, {
      code: 504,
      reason: 'Timeout',
      message: /^Timeout: Too large resource version: 999999999, current: \d+$/,
      causes: [[undefined as never, 'Too large resource version']],
    });
  }
});

test('contradictory options are rejected and named', async () => {
  const refusals: [string, string][] = [
    [
      'resourceVersionMatch=Exact',
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
    ],
    [
      'resourceVersionMatch=Odd&resourceVersion=5',
      'resourceVersionMatch: Unsupported value: "Odd": supported values: "Exact", "NotOlderThan", ""',
    ],
    [
      'resourceVersionMatch=Exact&resourceVersion=0',
      'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ],
    [
      'sendInitialEvents=true',
      'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list',
    ],
  ];
  for (const [options, message] of refusals) {
    assertRejected(await api.get(query(options)), {
      code: 422,
      reason: 'Invalid',
      message: `ListOptions.meta.k8s.io "" is invalid: ${message}`,
    });
  }
});

test('numeric options are validated', async () => {
  assertRejected(await api.get(query('limit=abc')), {
    code: 400,
    reason: 'BadRequest',
    message: 'strconv.ParseInt: parsing "abc": invalid syntax',
  });
  assertRejected(await api.get(query('resourceVersion=abc')), {
    code: 400,
    reason: 'BadRequest',
    message:
      'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
  });
  assertRejected(await api.get(`${path}/a?resourceVersion=abc`), {
    code: 500,
    message:
      'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
  });
});

test('a malformed resourceVersion is an error of the watch cache, which Events do not have', async () => {
  for (const [where, code] of [
    ['/api/v1/namespaces/default/events/a', 400],
    ['/apis/events.k8s.io/v1/namespaces/default/events/a', 400],
    ['/api/v1/namespaces/default/configmaps/a', 500],
  ] as const) {
    assert.equal((await api.get(`${where}?resourceVersion=x`)).status, code, where);
  }
});

test('a list can span all namespaces', async () => {
  const { body } = await api.get(`/apis/${GROUP}/v1/widgets?labelSelector=tier%3Dx`);
  assert.deepEqual(
    body.items.map(({ metadata }: Json) => `${metadata.namespace}/${metadata.name}`),
    [`${space}/a`, `${space}/c`],
  );
});
