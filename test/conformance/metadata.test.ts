import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Api, assertRejected, JSON_PATCH } from './api.ts';
import { skipBefore } from '../support/skip.ts';
import {
  configMap,
  configMaps,
  deployment,
  deployments,
  pod,
  pods,
  widget,
  widgetCrd,
  widgets,
} from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
});

after(() => api.close());

const OTHER_UID = '11111111-1111-1111-1111-111111111111';

test('the server sets the uid, creation time and resourceVersion of a new object', async () => {
  const path = configMaps(await api.namespace());
  const draft = configMap(
    'a',
    { a: '1' },
    { uid: 'mine', creationTimestamp: '2001-01-01T00:00:00Z' },
  );
  const { status, body } = await api.post(path, draft);
  assert.equal(status, 201);
  assert.match(body.metadata.uid, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.match(body.metadata.creationTimestamp, /^20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  assert.match(body.metadata.resourceVersion, /^[1-9]\d*$/);
  assert.equal(body.metadata.selfLink, undefined);
  assert.deepEqual((await api.get(`${path}/a`)).body, body);
});

test('a second object of the same name is rejected', async () => {
  const space = await api.namespace();
  await api.made(api.post(configMaps(space), configMap('a')));
  assertRejected(await api.post(configMaps(space), configMap('a')), {
    code: 409,
    reason: 'AlreadyExists',
    message: 'configmaps "a" already exists',
    details: { name: 'a', kind: 'configmaps' },
  });
  await api.made(api.post(widgets(space), widget('a')));
  assertRejected(await api.post(widgets(space), widget('a')), {
    code: 409,
    reason: 'AlreadyExists',
    message: 'widgets.conformance.example.com "a" already exists',
    details: { name: 'a', group: 'conformance.example.com', kind: 'widgets' },
  });
});

test('every request to a missing object returns not found', async () => {
  const space = await api.namespace();
  const path = `${configMaps(space)}/nope`;
  const replies = [
    await api.get(path),
    await api.put(path, configMap('nope')),
    await api.patch(path, { data: {} }),
    await api.delete(path),
  ];
  for (const reply of replies) {
    assertRejected(reply, {
      code: 404,
      reason: 'NotFound',
      message: 'configmaps "nope" not found',
      details: { name: 'nope', kind: 'configmaps' },
    });
  }
  assertRejected(await api.get(`${deployments(space)}/nope`), {
    code: 404,
    reason: 'NotFound',
    message: 'deployments.apps "nope" not found',
    details: { name: 'nope', group: 'apps', kind: 'deployments' },
  });
});

test('generateName appends a random suffix of five characters and limits the name to 63', async () => {
  const path = configMaps(await api.namespace());
  const draft = (generateName: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { generateName },
  });
  const { metadata } = await api.made(api.post(path, draft('gen-')));
  assert.match(metadata.name, /^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  assert.equal(metadata.generateName, 'gen-');
  const long = await api.made(api.post(path, draft('g'.repeat(80))));
  assert.match(long.metadata.name, /^g{58}[a-z0-9]{5}$/);
});

test('some kinds validate the generated name and not its prefix', async () => {
  const space = await api.namespace();
  const generateName = `${'g'.repeat(260)}-`;
  const template = {
    metadata: { labels: { a: 'b' } },
    spec: { containers: [{ name: 'a', image: 'a' }] },
  };
  const created = [
    api.post(`/api/v1/namespaces/${space}/replicationcontrollers?dryRun=All`, {
      apiVersion: 'v1',
      kind: 'ReplicationController',
      metadata: { generateName },
      spec: { selector: { a: 'b' }, template },
    }),
    api.post('/apis/resource.k8s.io/v1/deviceclasses?dryRun=All', {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceClass',
      metadata: { generateName },
      spec: {},
    }),
  ];
  for (const reply of created) assert.equal((await reply).status, 201);
  const refused = await api.post(`${configMaps(space)}?dryRun=All`, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { generateName },
  });
  assert.equal(refused.status, 422);
});

test('finalizers of Events need a domain in events.k8s.io only', async () => {
  const space = await api.namespace();
  const metadata = { name: 'e', finalizers: ['plain'] };
  const older = await api.post(`/api/v1/namespaces/${space}/events`, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata,
    involvedObject: { namespace: space },
  });
  assert.equal(older.status, 201);
  const path = `/apis/events.k8s.io/v1/namespaces/${space}/events`;
  const newer = await api.post(path, {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { ...metadata, name: 'f' },
    regarding: { namespace: space },
    eventTime: '2026-01-02T03:04:05.000006Z',
    reportingController: 'a.example/b',
    reportingInstance: 'b',
    type: 'Normal',
    action: 'a',
    reason: 'r',
  });
  const { status, body } = newer;
  assert.deepEqual([status, body.details?.causes?.[0].field], [422, 'metadata.finalizers[0]']);
});

test('a name is required and must be a DNS subdomain', async () => {
  const path = configMaps(await api.namespace());
  assertRejected(await api.post(path, { apiVersion: 'v1', kind: 'ConfigMap' }), {
    code: 422,
    reason: 'Invalid',
    message:
      'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    details: {
      kind: 'ConfigMap',
      causes: [
        {
          reason: 'FieldValueRequired',
          message: 'Required value: name or generateName is required',
          field: 'metadata.name',
        },
      ],
    },
  });
  assertRejected(await api.post(path, configMap('Bad_Name')), {
    code: 422,
    reason: 'Invalid',
    message:
      "ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  });
  const long = 'a'.repeat(254);
  assertRejected(await api.post(path, configMap(long)), {
    code: 422,
    reason: 'Invalid',
    message: `ConfigMap "${long}" is invalid: metadata.name: Invalid value: "${long}": must be no more than 253 characters`,
  });
});

test('labels, annotations and owner references are validated', skipBefore(37), async () => {
  const space = await api.namespace();
  const qualified =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
  const refusals: [Record<string, unknown>, [string, string][]][] = [
    [
      { labels: { 'a b': 'c d' } },
      [
        ['metadata.labels', `Invalid value: "a b": name part ${qualified}`],
        [
          'metadata.labels',
          "Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ],
      ],
    ],
    [
      { annotations: { 'a b': 'c d' } },
      [['metadata.annotations', `Invalid value: "a b": name part ${qualified}`]],
    ],
    [
      { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: '', uid: '' }] },
      [
        ['metadata.ownerReferences[0].name', 'Required value: must not be empty'],
        ['metadata.ownerReferences[0].uid', 'Required value: must not be empty'],
      ],
    ],
  ];
  for (const [metadata, causes] of refusals) {
    const reply = await api.post(widgets(space), widget('x', undefined, metadata));
    assertRejected(reply, { code: 422, reason: 'Invalid', message: /"x" is invalid/, causes });
  }
});

test('at most one owner reference is the controller', async () => {
  const owner = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    name,
    uid: name,
    controller: true,
  });
  const draft = configMap('x', {}, { ownerReferences: [owner('a'), owner('b')] });
  assertRejected(await api.post(configMaps(await api.namespace()), draft), {
    code: 422,
    reason: 'Invalid',
    message:
      /Only one reference can have Controller set to true\. Found "true" in references for Pod\/a and Pod\/b$/,
  });
});

test('an owner reference that equals an earlier one is dropped with a warning', async () => {
  const space = await api.namespace();
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'u1' };
  const others = [
    { ...owner, controller: false },
    { ...owner, uid: 'u2' },
  ];
  const metadata = {
    ownerReferences: [owner, { ...owner, controller: null }, ...others, others[1], owner],
  };
  const path = `${configMaps(space)}/owned`;
  for (const [send, when] of [
    [() => api.post(configMaps(space), configMap('owned', {}, metadata)), ''],
    [() => api.put(path, configMap('owned', { a: '1' }, metadata)), ''],
    [() => api.patch(path, { metadata }), ' after mutating admission happens'],
  ] as const) {
    const { headers, body } = await send();
    assert.equal(
      headers['warning'],
      `299 - ".metadata.ownerReferences contains duplicate entries${when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u1, u2, u1"`,
    );
    assert.deepEqual(body.metadata.ownerReferences, [owner, ...others]);
  }
});

test('unknown fields in lists of metadata are dropped with a warning', async () => {
  const space = await api.namespace();
  for (const [path, object] of [
    [configMaps(space), configMap('unknown')],
    [widgets(space), widget('unknown')],
  ] as const) {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'u1' };
    object.metadata.managedFields = [{ since: 1 }];
    object.metadata.ownerReferences = [{ ...owner, namespace: space }];
    const strict = await api.post(`${path}?fieldValidation=Strict`, object);
    assert.equal(strict.status, 400);
    assert.match(
      strict.body.message,
      /strict decoding error: unknown field "metadata.managedFields\[0\].since", unknown field "metadata.ownerReferences\[0\].namespace"$/,
    );
    const { headers, body } = await api.post(path, object);
    assert.match(
      headers['warning'] ?? '',
      /managedFields\[0\].since.*ownerReferences\[0\].namespace/,
    );
    assert.deepEqual(body.metadata.ownerReferences, [owner]);
  }
  const ownerReferences = [
    { apiVersion: 'v1', kind: 'Foo', name: 'a', uid: 'u1', namespace: space },
  ];
  const applied = widget('applied', {}, { ownerReferences });
  assertRejected(await api.apply(`${widgets(space)}/applied`, 'owners', applied), {
    code: 500,
    message: /\.metadata\.ownerReferences\[uid="u1"\]\.namespace: field not declared in schema$/,
  });
});

test('the apiVersion of an owner has at most one slash', async () => {
  const path = configMaps(await api.namespace());
  for (const [apiVersion, code] of [
    ['a/b', 201],
    ['/v1', 201],
    ['a/b/c', 422],
    ['a/', 422],
    ['/', 422],
  ] as const) {
    const owner = { apiVersion, kind: 'Foo', name: 'a', uid: 'u1' };
    const object = configMap('', {}, { generateName: 'a-', ownerReferences: [owner] });
    const { status, body } = await api.post(path, object);
    assert.equal(status, code, apiVersion);
    if (code === 201) continue;
    assert.deepEqual(body.details.causes, [
      {
        reason: 'FieldValueInvalid',
        message: `Invalid value: "${apiVersion}": must be <group>/<version> or <version>`,
        field: 'metadata.ownerReferences[0].apiVersion',
      },
    ]);
  }
});

test('null in metadata is the zero value', async () => {
  const path = configMaps(await api.namespace());
  const { metadata } = await api.made(
    api.post(
      path,
      configMap('zero', {}, { labels: { a: null }, annotations: null, ownerReferences: null }),
    ),
  );
  const { labels, annotations, ownerReferences } = metadata;
  assert.deepEqual([labels, annotations, ownerReferences], [{ a: '' }, undefined, undefined]);
});

test('the namespace of an object must equal that of the path', async () => {
  const path = configMaps(await api.namespace());
  const reply = await api.post(path, configMap('x', {}, { namespace: 'default' }));
  assertRejected(reply, {
    code: 400,
    reason: 'BadRequest',
    message:
      'the namespace of the provided object does not match the namespace sent on the request',
  });
});

test('the generation increases only with changes of the spec', async () => {
  const space = await api.namespace();
  const path = `${widgets(space)}/a`;
  const generation = async (reply: ReturnType<Api['patch']>) =>
    (await api.made(reply)).metadata.generation;
  assert.equal(await generation(api.post(widgets(space), widget('a'))), 1);
  assert.equal(await generation(api.patch(path, { metadata: { labels: { a: 'b' } } })), 1);
  assert.equal(await generation(api.patch(`${path}/status`, { status: { phase: 'New' } })), 1);
  assert.equal(await generation(api.patch(path, { spec: { size: 2 } })), 2);
  assert.equal(await generation(api.patch(path, { spec: { size: 2 } })), 2);
  assert.equal(await generation(api.patch(path, { metadata: { generation: 9 } })), 2);

  const built = `${deployments(space)}/d`;
  assert.equal(await generation(api.post(deployments(space), deployment('d'))), 1);
  assert.equal(await generation(api.patch(built, { metadata: { labels: { a: 'b' } } })), 1);
  assert.equal(await generation(api.patch(built, { spec: { replicas: 2 } })), 2);
  assert.equal(await generation(api.patch(`${built}/status`, { status: { replicas: 2 } })), 2);
});

test('a write without a change keeps the resourceVersion', async () => {
  const space = await api.namespace();
  const path = `${configMaps(space)}/a`;
  const { metadata } = await api.made(api.post(configMaps(space), configMap('a')));
  const replies = [
    await api.put(path, configMap('a')),
    await api.patch(path, { data: { a: '1' } }),
    await api.patch(path, [{ op: 'replace', path: '/data/a', value: '1' }], JSON_PATCH),
  ];
  for (const { status, body } of replies) {
    assert.equal(status, 200);
    assert.equal(body.metadata.resourceVersion, metadata.resourceVersion);
  }
  const changed = await api.made(api.patch(path, { data: { a: '2' } }));
  assert.notEqual(changed.metadata.resourceVersion, metadata.resourceVersion);
});

test('an object of the cluster loses a namespace', async () => {
  const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
  const metadata = { name: 'conformance-placed', namespace: 'default' };
  const kind = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' };
  const created = await api.made(api.post(path, { ...kind, metadata }));
  assert.equal(created.metadata.namespace, undefined);
  const name = `${path}/conformance-placed`;
  const replaced = await api.made(api.put(name, { ...created, metadata }));
  assert.equal(replaced.metadata.namespace, undefined);
  const patched = await api.made(api.patch(name, { metadata: { namespace: 'default' } }));
  assert.equal(patched.metadata.namespace, undefined);
});

test('the name, namespace and uid are immutable', async () => {
  const space = await api.namespace();
  await api.made(api.post(configMaps(space), configMap('a')));
  await api.made(api.post(widgets(space), widget('a')));
  for (const path of [`${configMaps(space)}/a`, `${widgets(space)}/a`]) {
    assertRejected(await api.patch(path, { metadata: { name: 'b' } }), {
      code: 400,
      reason: 'BadRequest',
      message: 'the name of the object (b) does not match the name on the URL (a)',
    });
    assertRejected(await api.patch(path, { metadata: { namespace: 'b' } }), {
      code: 400,
      reason: 'BadRequest',
      message:
        'the namespace of the provided object does not match the namespace sent on the request',
    });
    assertRejected(await api.patch(path, { metadata: { uid: OTHER_UID } }), {
      code: 422,
      reason: 'Invalid',
      message: new RegExp(
        `"a" is invalid: metadata\\.uid: Invalid value: "${OTHER_UID}": field is immutable$`,
      ),
    });
    const deletionTimestamp = '2001-01-01T00:00:00Z';
    assertRejected(await api.patch(path, { metadata: { deletionTimestamp } }), {
      code: 422,
      reason: 'Invalid',
      message:
        /"a" is invalid: metadata\.deletionTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable$/,
    });
    const { metadata } = (await api.get(path)).body;
    const patched = await api.made(api.patch(path, { metadata: { creationTimestamp: null } }));
    assert.deepEqual(patched.metadata, metadata);
  }
});

test('a deletion time of a client is ignored if it is zero, or if the status of a Pod is written', async () => {
  const space = await api.namespace();
  const custom = `${widgets(space)}/a`;
  await api.made(api.post(widgets(space), widget('a')));
  await api.made(api.post(pods(space), pod('a')));
  for (const [path, deletionTimestamp] of [
    [custom, '0001-01-01T00:00:00Z'],
    [`${pods(space)}/a/status`, '2020-01-01T00:00:00Z'],
  ] as const) {
    const { status, body } = await api.patch(path, { metadata: { deletionTimestamp } });
    assert.deepEqual([status, body.metadata.deletionTimestamp], [200, undefined]);
  }
});

test('the name in the body must equal that of the path', async () => {
  const space = await api.namespace();
  const path = `${configMaps(space)}/a`;
  await api.made(api.post(configMaps(space), configMap('a')));
  assertRejected(await api.put(path, configMap('b')), {
    code: 400,
    reason: 'BadRequest',
    message: 'the name of the object (b) does not match the name on the URL (a)',
  });
  assertRejected(await api.put(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} }), {
    code: 400,
    reason: 'BadRequest',
    message: 'the name of the object (a based on URL) was undeterminable: name must be provided',
  });
});

test('immutable fields of a kind cannot change', async () => {
  const space = await api.namespace();
  const path = `${configMaps(space)}/a`;
  await api.made(api.post(configMaps(space), { ...configMap('a'), immutable: true }));
  assertRejected(await api.patch(path, { data: { b: '1' } }), {
    code: 422,
    reason: 'Invalid',
    message:
      'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set',
    causes: [['data', 'Forbidden: field is immutable when `immutable` is set']],
  });
  await api.made(api.post(deployments(space), deployment('d')));
  const other = { spec: { selector: { matchLabels: { app: 'other' } } } };
  assertRejected(await api.patch(`${deployments(space)}/d`, other), {
    code: 422,
    reason: 'Invalid',
    message:
      /spec\.selector: Invalid value: \{"matchLabels":\{"app":"other"\}\}: field is immutable\]?$/,
  });
  await api.made(api.post(pods(space), pod('p')));
  assertRejected(await api.patch(`${pods(space)}/p`, { spec: { hostname: 'other' } }), {
    code: 422,
    reason: 'Invalid',
    message: /^Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than /,
  });
});

test('generations and managed fields of a client are validated', async () => {
  const path = configMaps(await api.namespace());
  const entry = {
    manager: 'm',
    operation: 'Update',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:data': {} },
  };
  const of = (changed: object) => ({ managedFields: [{ ...entry, ...changed }] });
  const at = 'metadata.managedFields[0]';
  const invalid: readonly (readonly [metadata: object, problem: string])[] = [
    [{ generation: -1 }, 'metadata.generation: Invalid value: -1: must be greater than or equal'],
    [of({ manager: 'm'.repeat(129) }), `${at}.manager: Too long: may not be more than 128 bytes`],
    [
      of({ manager: 'm\u0001' }),
      `${at}.manager: Invalid value: "m\\x01": invalid character U+0001 (at position 1)`,
    ],
    [of({ subresource: 's'.repeat(257) }), `${at}.subresource: Too long: may not be more than 256`],
  ];
  for (const [metadata, problem] of invalid) {
    const { status, body } = await api.post(path, configMap('a', {}, metadata));
    assert.equal(status, 422, problem);
    assert.ok(body.message.includes(problem), body.message);
  }
  // Entries without known fields, and those of versions that are not served, are dropped.
  for (const changed of [{ apiVersion: 'v9/x' }, { fieldsV1: { 'x:data': {} } }]) {
    const kept = { ...configMap('b', {}, of(changed)), data: undefined };
    const reply = await api.post(`${path}?dryRun=All`, kept);
    assert.equal(reply.body.metadata.managedFields, undefined, JSON.stringify(changed));
  }
});

test('a kind without generations keeps the one that it was created with', async () => {
  const path = configMaps(await api.namespace());
  const { metadata } = await api.made(api.post(path, configMap('old', {}, { generation: 7 })));
  assert.equal(metadata.generation, 7);
  const applied = await api.made(
    api.apply(`${path}/new`, 'one', configMap('new', {}, { generation: 7 })),
  );
  assert.equal(applied.metadata.generation, 7);
});

test('an invalid object is refused for its values before its resourceVersion', async () => {
  const path = configMaps(await api.namespace());
  const { status } = await api.post(path, configMap('Upper', {}, { resourceVersion: '5' }));
  assert.equal(status, 422);
});
