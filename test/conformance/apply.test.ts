import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, APPLY, assertRejected } from './api.ts';
import { skipBefore } from '../support/skip.ts';
import {
  configMap,
  configMaps,
  deployment,
  deployments,
  GROUP,
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
  path = widgets(await api.namespace());
});

after(() => api.close());

const OTHER_UID = '11111111-1111-1111-1111-111111111111';
/** Path of the Widgets in this file. */
let path: string;

/** Returns the managed fields in short form. */
function managers({ metadata }: Json): Json[] {
  return metadata.managedFields
    .map(({ manager, operation, subresource, fieldsV1 }: Json) => ({
      manager,
      operation,
      ...(subresource && { subresource }),
      fields: fieldsV1,
    }))
    .toSorted((a: Json, b: Json) => a.manager.localeCompare(b.manager));
}

test('apply creates a missing object and owns the applied fields', async () => {
  const applied = widget(
    'new',
    { color: 'red', parts: [{ name: 'x', count: 1 }], tags: ['t'] },
    { labels: { l: '1' } },
  );
  const { status, body } = await api.apply(`${path}/new`, 'one', applied);
  assert.equal(status, 201);
  assert.deepEqual(body.spec, { ...applied.spec, size: 1 });
  const [{ time, ...entry }, ...others] = body.metadata.managedFields;
  assert.deepEqual(others, []);
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  assert.deepEqual(entry, {
    manager: 'one',
    operation: 'Apply',
    apiVersion: `${GROUP}/v1`,
    fieldsType: 'FieldsV1',
    fieldsV1: {
      'f:metadata': { 'f:labels': { 'f:l': {} } },
      'f:spec': {
        'f:color': {},
        'f:parts': { 'k:{"name":"x"}': { '.': {}, 'f:count': {}, 'f:name': {} } },
        'f:tags': { 'v:"t"': {} },
      },
    },
  });
});

test('a repeated apply changes nothing', async () => {
  const applied = widget('same', { color: 'red', parts: [{ name: 'x' }] });
  const first = await api.made(api.apply(`${path}/same`, 'one', applied));
  const { status, body } = await api.apply(`${path}/same`, 'one', applied);
  assert.equal(status, 200);
  assert.deepEqual(body, first);
});

test('apply removes fields that the manager no longer sets, unless another manager owns them', async () => {
  const at = `${path}/removed`;
  const parts = [{ name: 'x' }, { name: 'y' }];
  await api.made(api.apply(at, 'one', widget('removed', { color: 'red', mode: 'Fast', parts })));
  await api.made(api.apply(at, 'two', widget('removed', { color: 'red', parts: [{ name: 'y' }] })));
  const { spec } = await api.made(api.apply(at, 'one', widget('removed', { color: 'red' })));
  assert.deepEqual(spec, { color: 'red', size: 1, parts: [{ name: 'y' }] });
});

test('applying another manager’s field is a conflict that names the manager and the field', async () => {
  const at = `${path}/contested`;
  await api.made(
    api.apply(at, 'one', widget('contested', { color: 'red', parts: [{ name: 'x', count: 1 }] })),
  );
  assertRejected(await api.apply(at, 'two', widget('contested', { color: 'blue' })), {
    code: 409,
    reason: 'Conflict',
    message: 'Apply failed with 1 conflict: conflict with "one": .spec.color',
    details: {
      causes: [
        { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.color' },
      ],
    },
  });
  const both = widget('contested', { color: 'blue', parts: [{ name: 'x', count: 2 }] });
  assertRejected(await api.apply(at, 'two', both), {
    code: 409,
    reason: 'Conflict',
    message:
      'Apply failed with 2 conflicts: conflicts with "one":\n- .spec.color\n- .spec.parts[name="x"].count',
    causes: [
      ['.spec.color', 'conflict with "one"'],
      ['.spec.parts[name="x"].count', 'conflict with "one"'],
    ],
  });
  const { body } = await api.get(at);
  assert.deepEqual([body.spec.color, body.metadata.managedFields.length], ['red', 1]);
});

test('applying a field that was set by an update is a conflict', async () => {
  const at = `${path}/updated`;
  await api.made(api.apply(at, 'one', widget('updated')));
  await api.made(api.patch(`${at}?fieldManager=editor`, { spec: { size: 5 } }));
  assertRejected(await api.apply(at, 'one', widget('updated', { color: 'red', size: 6 })), {
    code: 409,
    reason: 'Conflict',
    message:
      /^Apply failed with 1 conflict: conflict with "editor" using conformance\.example\.com\/v1( at \S+)?: \.spec\.size$/,
  });
});

test('applying an equal value is no conflict: both managers own the field', async () => {
  const at = `${path}/shared`;
  await api.made(api.apply(at, 'one', widget('shared')));
  const body = await api.made(api.apply(at, 'two', widget('shared')));
  assert.deepEqual(managers(body), [
    { manager: 'one', operation: 'Apply', fields: { 'f:spec': { 'f:color': {} } } },
    { manager: 'two', operation: 'Apply', fields: { 'f:spec': { 'f:color': {} } } },
  ]);
});

test('force takes ownership of conflicting fields', async () => {
  const at = `${path}/forced`;
  await api.made(api.apply(at, 'one', widget('forced', { color: 'red', mode: 'Fast' })));
  const body = await api.made(
    api.apply(at, 'two', widget('forced', { color: 'blue' }), '&force=true'),
  );
  assert.deepEqual(body.spec, { color: 'blue', size: 1, mode: 'Fast' });
  assert.deepEqual(managers(body), [
    { manager: 'one', operation: 'Apply', fields: { 'f:spec': { 'f:mode': {} } } },
    { manager: 'two', operation: 'Apply', fields: { 'f:spec': { 'f:color': {} } } },
  ]);
});

test('the status is applied and owned separately', async () => {
  const at = `${path}/status`;
  await api.made(api.apply(at, 'one', widget('status')));
  const applied = { ...widget('status', { color: 'blue' }), status: { phase: 'Running' } };
  const body = await api.made(api.apply(`${at}/status`, 'two', applied));
  assert.deepEqual([body.spec.color, body.status], ['red', { phase: 'Running' }]);
  assert.deepEqual(
    managers(body).find(({ manager }) => manager === 'two'),
    {
      manager: 'two',
      operation: 'Apply',
      subresource: 'status',
      fields: { 'f:status': { 'f:phase': {} } },
    },
  );
  assertRejected(await api.apply(`${path}/nope/status`, 'two', { ...applied, metadata: {} }), {
    code: 404,
    reason: 'NotFound',
    message: `widgets.${GROUP} "nope" not found`,
  });
});

test('apply requires a field manager', async () => {
  assertRejected(await api.patch(`${path}/missing`, widget('missing'), APPLY), {
    code: 422,
    reason: 'Invalid',
    message:
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
  });
  assertRejected(await api.apply(`${path}/missing`, 'm'.repeat(129), widget('missing')), {
    code: 422,
    reason: 'Invalid',
    message:
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
  });
});

test('apply requires the name and kind of the path', async () => {
  const bodies: [Json, RegExp][] = [
    [
      widget('other'),
      /^the name of the object \(other\) does not match the name on the URL \(one\)$/,
    ],
    [
      { ...widget('one'), apiVersion: `${GROUP}/v2` },
      /^invalid object type: conformance\.example\.com\/v2, Kind=Widget$/,
    ],
    [configMap('one'), /^invalid object type: \/v1, Kind=ConfigMap$/],
    [{ metadata: { name: 'one' } }, /^invalid object type: \/, Kind=$/],
    // Before Kubernetes 1.37: error decoding YAML.
    ['{bad', /^error decoding (patch: error converting YAML to JSON|YAML): /],
    [
      widget('one', undefined, { managedFields: [{ manager: 'one', operation: 'Apply' }] }),
      /^metadata\.managedFields must be nil$/,
    ],
  ];
  for (const [body, message] of bodies) {
    const reply = await api.apply(`${path}/one`, 'one', body);
    assertRejected(reply, { code: 400, reason: 'BadRequest', message });
  }
});

test('apply validates the schema', async () => {
  const refusals: [object, string][] = [
    [{ color: 'red', odd: 1 }, '.spec.odd: field not declared in schema'],
    [
      { color: 'red', parts: [{ name: 'a' }, { name: 'a' }] },
      '.spec.parts: duplicate entries for key [name="a"]',
    ],
    [{ color: 'red', parts: 'x' }, '.spec.parts: expected list, got &{x}'],
  ];
  for (const [spec, message] of refusals) {
    assertRejected(await api.apply(`${path}/schema`, 'one', widget('schema', spec)), {
      code: 500,
      message: `failed to create typed patch object (/schema; ${GROUP}/v1, Kind=Widget): ${message}`,
    });
  }
  assertRejected(await api.apply(`${path}/schema`, 'one', widget('schema', { color: '' })), {
    code: 422,
    reason: 'Invalid',
    message: `Widget.${GROUP} "schema" is invalid: spec.color: Invalid value: "": spec.color in body should be at least 1 chars long`,
  });
});

test(
  'null removes the fields of a container, and is kept in nullable ones only',
  skipBefore(37),
  async () => {
    const group = 'nulls.example.com';
    const map = { type: 'object', properties: { a: { type: 'string' } } };
    await api.install(
      widgetCrd(group, (crd) => {
        const { properties } = crd.spec.versions[0].schema.openAPIV3Schema.properties.spec;
        properties.map = map;
        properties.nullable = { ...map, nullable: true };
      }),
    );
    const at = `/apis/${group}/v1/namespaces/default/widgets/nulls`;
    const apply = (spec: Json) =>
      api.apply(at, 'manager', {
        apiVersion: `${group}/v1`,
        kind: 'Widget',
        metadata: { name: 'nulls' },
        spec: { color: 'red', ...spec },
      });
    await api.made(apply({ map: { a: '1' }, nullable: { a: '1' } }));
    const { spec } = await api.made(apply({ map: { a: '1' }, nullable: null }));
    assert.deepEqual([spec.map, spec.nullable], [{ a: '1' }, null]);
    for (const empty of [null, {}]) {
      const { status, body } = await apply({ map: empty, nullable: null });
      assert.equal(status, 422);
      assert.match(body.message, /spec\.map: Invalid value: "null": .*must be of type object/);
    }
  },
);

test('apply with a uid neither creates an object nor changes one with another uid', async () => {
  const bound = widget('bound', undefined, { uid: OTHER_UID });
  const missing = await api.apply(`${path}/bound`, 'one', bound);
  assert.deepEqual([missing.status, missing.body.reason], [409, 'Conflict']);
  await api.made(api.post(path, widget('bound')));
  assertRejected(await api.apply(`${path}/bound`, 'one', bound), {
    code: 422,
    reason: 'Invalid',
    message: `Widget.${GROUP} "bound" is invalid: metadata.uid: Invalid value: "${OTHER_UID}": field is immutable`,
  });
});

test('apply with an outdated resourceVersion is a conflict', async () => {
  await api.made(api.post(path, widget('stale')));
  const stale = widget('stale', undefined, { resourceVersion: '1' });
  assertRejected(await api.apply(`${path}/stale`, 'one', stale), {
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on widgets.${GROUP} "stale": the object has been modified; please apply your changes to the latest version and try again`,
  });
});

test('managed fields can be reset', async () => {
  const at = `${path}/wiped`;
  await api.made(api.apply(at, 'one', widget('wiped')));
  const wiped = await api.made(api.patch(at, { metadata: { managedFields: [{}] } }));
  assert.equal(wiped.metadata.managedFields, undefined);
  // An empty list resets those of a built-in kind.
  const accounts = `/api/v1/namespaces/${await api.namespace()}/serviceaccounts`;
  await api.made(api.post(accounts, { metadata: { name: 'wiped', labels: { a: 'b' } } }));
  await api.made(api.apply(`${path}/kept`, 'one', widget('kept')));
  for (const [place, isReset] of [
    [`${accounts}/wiped`, true],
    [`${path}/kept`, false],
  ] as const) {
    const { metadata } = await api.made(api.patch(place, { metadata: { managedFields: [] } }));
    assert.equal(metadata.managedFields === undefined, isReset, place);
  }
});

test('a write without a field manager uses the user agent as the manager', async () => {
  const reply = await api.send('POST', path, widget('agent'), {
    'user-agent': 'kubectl-create/v1.2 (linux)',
  });
  assert.deepEqual(managers(reply.body), [
    {
      manager: 'kubectl-create',
      operation: 'Update',
      fields: { 'f:spec': { '.': {}, 'f:color': {}, 'f:size': {} } },
    },
  ]);
});

test('apply merges the containers of a Deployment by name', async () => {
  const space = await api.namespace();
  const at = `${deployments(space)}/d`;
  await api.made(api.apply(at, 'one', deployment('d')));
  const other = {
    spec: { template: { spec: { containers: [{ name: 'web', image: 'nginx:2' }] } } },
  };
  const applied = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd' }, ...other };
  assertRejected(await api.apply(at, 'two', applied), {
    code: 409,
    reason: 'Conflict',
    message:
      'Apply failed with 1 conflict: conflict with "one": .spec.template.spec.containers[name="web"].image',
  });
});

test('a field that another manager applied in another version of a built-in kind is a conflict', async () => {
  const namespace = await api.namespace();
  const kind = 'HorizontalPodAutoscaler';
  const apply = (version: string, manager: string, spec: Json) => {
    const apiVersion = `autoscaling/${version}`;
    const path = `/apis/${apiVersion}/namespaces/${namespace}/horizontalpodautoscalers/a`;
    return api.apply(path, manager, { apiVersion, kind, metadata: { name: 'a' }, spec });
  };
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'a' };
  const target = { type: 'Utilization', averageUtilization: 50 };
  const metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }];
  await api.made(apply('v2', 'one', { maxReplicas: 3, scaleTargetRef, metrics }));
  await api.made(apply('v1', 'two', { targetCPUUtilizationPercentage: 50 }));
  const { status, body } = await apply('v1', 'two', { targetCPUUtilizationPercentage: 60 });
  assert.deepEqual(
    [status, body.message],
    [409, 'Apply failed with 1 conflict: conflict with "one": .spec.metrics'],
  );
});

test('an applied item without its key is refused for the value', skipBefore(37), async () => {
  const space = await api.namespace();
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'p' }];
  const causesOf = async (path: string, object: Json) => {
    const { status, body } = await api.apply(path, 'one', object);
    assert.equal(status, 422);
    return body.details.causes.map(({ field }: Json) => field);
  };
  for (const [path, object] of [
    [`${configMaps(space)}/a`, configMap('a', {}, { ownerReferences })],
    [`${widgets(space)}/a`, widget('a', { color: 'red' }, { ownerReferences })],
  ] as const) {
    assert.deepEqual(await causesOf(path, object), ['metadata.ownerReferences[0].uid']);
  }
  const unnamed = pod('a');
  unnamed.spec.containers[0].env = [{ value: 'x' }];
  const fields = await causesOf(`${pods(space)}/a`, unnamed);
  assert.deepEqual(fields, ['spec.containers[0].env[0].name']);
});

test('items of the stored object without their keys are reported before those of the apply', async () => {
  const path = `/api/v1/namespaces/${await api.namespace()}/serviceaccounts`;
  const account = (name: string) => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name },
  });
  const secrets = [{ kind: 'x' }];
  await api.made(api.post(path, { ...account('tracked'), automountServiceAccountToken: true }));
  await api.made(api.put(`${path}/tracked`, { ...account('tracked'), secrets }));
  const untracked = { ...account('untracked'), secrets };
  await api.made(api.post(path, { ...untracked, imagePullSecrets: [{ name: 'a' }] }));
  for (const [name, applied, message] of [
    ['tracked', {}, /^failed to create typed live object \(.*\): \.secrets: element 0: /],
    [
      'untracked',
      { metadata: { name: 'untracked', managedFields: [{ manager: 'm' }] } },
      /^failed to create manager for existing fields: .* smd typed: \.secrets: element 0: /,
    ],
  ] as const) {
    const { status, body } = await api.apply(`${path}/${name}`, 'm', {
      ...account(name),
      ...applied,
    });
    assert.equal(status, 500, name);
    assert.match(body.message, message);
  }
});

test('the first item without its key ends the check of a list', async () => {
  const conditions = [{ message: 'a' }, { message: 'b' }];
  const level = {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'PriorityLevelConfiguration',
    metadata: { name: 'unkeyed' },
    spec: { type: 'Limited', limited: { limitResponse: { type: 'Reject' } } },
    status: { conditions },
  };
  const levels = '/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations';
  const { status, body } = await api.apply(`${levels}/unkeyed`, 'm', level);
  assert.equal(status, 500);
  assert.match(body.message, /element 0/);
  assert.doesNotMatch(body.message, /element 1/);
  // Such a status leaves a new object without managed fields, although it is not stored.
  const created = await api.made(api.post(`${levels}?dryRun=All`, level));
  assert.equal(created.metadata.managedFields, undefined);
});

test('an apply of a custom resource with empty metadata is a write each time', async () => {
  const space = await api.namespace();
  for (const metadata of [{ finalizers: [] }, { labels: {} }, { generateName: '' }]) {
    const [what] = Object.keys(metadata);
    const name = `empty-${what?.toLowerCase()}`;
    const object = { ...widget(name, { color: 'red' }), metadata: { name, ...metadata } };
    const path = `${widgets(space)}/${name}`;
    const versions = new Set<string>();
    for (let attempt = 0; attempt < 6; attempt++) {
      const { body } = await api.apply(path, 'm', object);
      versions.add(body.metadata.resourceVersion);
    }
    assert.ok(versions.size > 1, what);
    const { body: applied } = await api.get(path);
    const { body: put } = await api.put(path, applied);
    assert.notEqual(put.metadata.resourceVersion, applied.metadata.resourceVersion, what);
    const { body: again } = await api.put(path, put);
    assert.equal(again.metadata.resourceVersion, put.metadata.resourceVersion, what);
  }
});
