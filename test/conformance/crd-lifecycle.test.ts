import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as s from '../../src/schema.ts';
import type { Json } from './api.ts';
import { Api, assertRejected, JSON_PATCH } from './api.ts';
import { CRDS, widget, widgetCrd, widgets } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

async function conditions(name: string): Promise<Condition[]> {
  const { body } = await api.get(`${CRDS}/${name}`);
  return (body.status?.conditions ?? []).map(({ type, status, reason, message }: Condition) => ({
    type,
    status,
    reason,
    message,
  }));
}

/** Returns a Widget in another group. */
function widgetOf(group: string, name: string, metadata: object = {}) {
  return { ...widget(name, undefined, metadata), apiVersion: `${group}/v1` };
}

test('the response to the creation of a CRD has no conditions', async () => {
  const { status } = await api.made(api.post(CRDS, widgetCrd('new.example.com')));
  assert.deepEqual(status, {
    conditions: null,
    acceptedNames: { plural: '', kind: '' },
    storedVersions: ['v1'],
  });
});

test('a CRD becomes established and reports its accepted names', async () => {
  const group = 'established.example.com';
  await api.install(widgetCrd(group));
  assert.deepEqual(await conditions(`widgets.${group}`), [
    {
      type: 'NamesAccepted',
      status: 'True',
      reason: 'NoConflicts',
      message: 'no conflicts found',
    },
    {
      type: 'Established',
      status: 'True',
      reason: 'InitialNamesAccepted',
      message: 'the initial names have been accepted',
    },
  ]);
  const { body } = await api.get(`${CRDS}/widgets.${group}`);
  const server = body.metadata.managedFields.at(-1);
  assert.deepEqual(
    [server.manager, server.subresource, Object.keys(server.fieldsV1['f:status'])],
    ['kube-apiserver', 'status', ['f:acceptedNames', 'f:conditions']],
  );
  assert.deepEqual(body.status.acceptedNames, {
    plural: 'widgets',
    singular: 'widget',
    shortNames: ['wd'],
    kind: 'Widget',
    listKind: 'WidgetList',
  });
  assert.deepEqual(body.status.storedVersions, ['v1']);
  assert.deepEqual(body.spec.conversion, { strategy: 'None' });
  assert.equal(body.spec.names.listKind, 'WidgetList');
  assert.equal(body.metadata.generation, 1);
});

test('a CRD with conflicting names is not served until the names are free', async () => {
  const group = 'taken.example.com';
  await api.install(widgetCrd(group));
  const other = widgetCrd(group, (crd) => {
    crd.metadata.name = `gadgets.${group}`;
    crd.spec.names = { plural: 'gadgets', singular: 'widget', kind: 'Widget' };
  });
  await api.made(api.post(CRDS, other));
  await api.until(
    'the server sets conditions',
    async () => (await conditions(`gadgets.${group}`)).length,
  );
  assert.deepEqual(await conditions(`gadgets.${group}`), [
    {
      type: 'NamesAccepted',
      status: 'False',
      reason: 'ListKindConflict',
      message: '"WidgetList" is already in use',
    },
    {
      type: 'Established',
      status: 'False',
      reason: 'NotAccepted',
      message: 'not all names are accepted',
    },
  ]);
  const { status, text } = await api.get(`/apis/${group}/v1/gadgets`);
  assert.deepEqual([status, text], [404, '404 page not found\n']);
  await api.made(api.delete(`${CRDS}/widgets.${group}`));
  await api.until('the other CRD is served', async () => {
    const reply = await api.get(`/apis/${group}/v1/gadgets`);
    return reply.status === 200;
  });
});

test('a CRD in a protected group shows whether its API is approved', async () => {
  const group = 'conformance.k8s.io';
  const approval = 'https://github.com/kubernetes/kubernetes/pull/1';
  await api.install(
    widgetCrd(group, (crd) => {
      crd.metadata.annotations = { 'api-approved.kubernetes.io': approval };
    }),
  );
  const ofApproval = async () =>
    (await conditions(`widgets.${group}`)).filter(({ type }) => type.startsWith('KubernetesAPI'));
  await api.until('the condition is set', async () => (await ofApproval()).length);
  const condition = { type: 'KubernetesAPIApprovalPolicyConformant' };
  assert.deepEqual(await ofApproval(), [
    {
      ...condition,
      status: 'True',
      reason: 'ApprovedAnnotation',
      message: `approved in ${approval}`,
    },
  ]);
  const metadata = { annotations: { 'api-approved.kubernetes.io': 'unapproved, a test' } };
  await api.made(api.patch(`${CRDS}/widgets.${group}`, { metadata }));
  await api.until('the condition is changed', async () =>
    (await ofApproval()).some(({ reason }) => reason === 'UnapprovedAnnotation'),
  );
  assert.equal((await ofApproval())[0]?.message, 'not approved: "unapproved, a test"');
});

test('a CRD whose conversion webhook has an invalid CA bundle is not served', async () => {
  const group = 'bundle.example.com';
  const webhook = (clientConfig: object) => ({
    strategy: 'Webhook',
    webhook: { clientConfig, conversionReviewVersions: ['v1'] },
  });
  const service = { namespace: 'default', name: 'example' };
  const definition = widgetCrd(group, (crd) => {
    crd.spec.conversion = webhook({ service, caBundle: 'Cg==' });
  });
  await api.made(api.post(CRDS, definition));
  const established = async () =>
    (await conditions(`widgets.${group}`)).find(({ type }) => type === 'Established');
  await api.until('the bundle is checked', async () => {
    const condition = await established();
    return condition?.reason === 'InvalidCABundle';
  });
  assert.deepEqual(await established(), {
    type: 'Established',
    status: 'False',
    reason: 'InvalidCABundle',
    message: 'The conversion webhook CABundle is invalid',
  });
  const bad = (clientConfig: object, versions: string[] = ['v1']) => ({
    spec: {
      conversion: { webhook: { clientConfig, conversionReviewVersions: versions } },
    },
  });
  const path = `${CRDS}/widgets.${group}`;
  const at = 'spec.conversion';
  for (const [change, message] of [
    [bad({ url: 'https://example.com' }), `${at}.webhookClientConfig: Required value: exactly one`],
    [bad({ service: { name: '' } }), `${at}.webhookClientConfig.service.namespace: Required value`],
    [bad({}, ['v7']), `${at}.conversionReviewVersions: Invalid value: ["v7"]: must include at`],
  ] as const) {
    const { status, body } = await api.patch(path, change);
    assert.equal(status, 422);
    assert.ok(body.message.includes(message), body.message);
  }
  await api.made(api.patch(path, { spec: { conversion: { strategy: 'None', webhook: null } } }));
  await api.until('it is served', async () => (await established())?.status === 'True');
});

test('an inconsistent CRD is rejected', async () => {
  const group = 'senseless.example.com';
  const badly = (change: Parameters<typeof widgetCrd>[1]) =>
    api.post(CRDS, widgetCrd(group, change));
  assertRejected(
    await badly((crd) => {
      crd.metadata.name = 'other';
    }),
    {
      code: 422,
      reason: 'Invalid',
      message:
        'CustomResourceDefinition.apiextensions.k8s.io "other" is invalid: metadata.name: Invalid value: "other": must be spec.names.plural+"."+spec.group',
      details: {
        name: 'other',
        group: 'apiextensions.k8s.io',
        kind: 'CustomResourceDefinition',
        causes: [
          {
            reason: 'FieldValueInvalid',
            message: 'Invalid value: "other": must be spec.names.plural+"."+spec.group',
            field: 'metadata.name',
          },
        ],
      },
    },
  );
  assertRejected(
    await badly((crd) => {
      crd.spec.versions[0].storage = false;
    }),
    {
      code: 422,
      reason: 'Invalid',
      message: /must have exactly one version marked as storage version/,
    },
  );
  assertRejected(
    await badly((crd) => {
      crd.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.untyped = {};
    }),
    {
      code: 422,
      reason: 'Invalid',
      message: `CustomResourceDefinition.apiextensions.k8s.io "widgets.${group}" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[untyped].type: Required value: must not be empty for specified object fields`,
    },
  );
  assertRejected(
    await badly((crd) => {
      crd.spec.versions[0].schema.openAPIV3Schema.properties.spec.dependencies = {};
    }),
    {
      code: 422,
      reason: 'Invalid',
      message: `CustomResourceDefinition.apiextensions.k8s.io "widgets.${group}" is invalid: spec.validation.openAPIV3Schema.properties[spec].dependencies: Forbidden: dependencies is not supported`,
    },
  );
});

test('the webhook of a conversion has an address with https', async () => {
  const conversion = {
    strategy: 'Webhook',
    webhook: { clientConfig: { url: 'http://example.com' }, conversionReviewVersions: ['v1'] },
  };
  const crd = widgetCrd('insecure.example.com', ({ spec }) => (spec.conversion = conversion));
  const { status, body } = await api.post(CRDS, crd);
  assert.equal(status, 422);
  const why = `Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`;
  assert.deepEqual(
    body.details.causes.map(({ message }: Json) => message),
    [why],
  );
});

test('a generated name of a CRD is not that of its resource', async () => {
  const group = 'generated.example.com';
  const refused = async (metadata: Json) => {
    const change = (crd: Json) => (crd.metadata = metadata);
    const { status, body } = await api.post(CRDS, widgetCrd(group, change));
    assert.equal(status, 422);
    return body.details.causes.map(({ field, reason }: Json) => [field, reason]);
  };
  assert.deepEqual(await refused({ generateName: 'a-' }), [
    ['metadata.generateName', 'FieldValueInvalid'],
    ['metadata.name', 'FieldValueInvalid'],
  ]);
  assert.deepEqual(await refused({}), [['metadata.name', 'FieldValueRequired']]);
});

test('a new schema applies to subsequent reads and writes', async () => {
  const group = 'changed.example.com';
  const path = widgets('default', group);
  await api.install(widgetCrd(group));
  await api.made(api.post(path, widgetOf(group, 'old')));
  const properties = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties';
  await api.made(
    api.patch(
      `${CRDS}/widgets.${group}`,
      [
        { op: 'add', path: `${properties}/shape`, value: { type: 'string', default: 'round' } },
        { op: 'replace', path: `${properties}/color/maxLength`, value: 3 },
      ],
      JSON_PATCH,
    ),
  );
  await api.until('the new default is seen', async () => {
    const { body } = await api.get(`${path}/old`);
    return body.spec.shape === 'round';
  });
  const defaultAt = `${properties}/shape/default`;
  await api.made(
    api.patch(`${CRDS}/widgets.${group}`, [{ op: 'remove', path: defaultAt }], JSON_PATCH),
  );
  // A default of a read is not stored.
  await api.until('the default is gone', async () => {
    const { body } = await api.get(`${path}/old`);
    return body.spec.shape === undefined;
  });
  const long = { ...widgetOf(group, 'new'), spec: { color: 'green' } };
  assertRejected(await api.post(path, long), {
    code: 422,
    reason: 'Invalid',
    message: `Widget.${group} "new" is invalid: spec.color: Too long: may not be more than 3 bytes`,
  });
});

test('deleting a CRD deletes its objects and ends its paths and watches', async () => {
  const group = 'deleted.example.com';
  const path = widgets('default', group);
  const crd = `${CRDS}/widgets.${group}`;
  await api.install(widgetCrd(group));
  await api.made(api.post(path, widgetOf(group, 'free')));
  await api.made(api.post(path, widgetOf(group, 'held', { finalizers: ['example.com/hold'] })));
  const { body } = await api.get(path);
  const watch = await api.watch(`${path}?resourceVersion=${body.metadata.resourceVersion}`);

  const deleted = await api.made(api.delete(crd));
  assert.equal(deleted.kind, 'CustomResourceDefinition');
  assert.ok(deleted.metadata.deletionTimestamp);
  assert.deepEqual(deleted.metadata.finalizers, ['customresourcecleanup.apiextensions.k8s.io']);
  await api.until('the objects are deleted', async () => {
    const held = await api.get(`${path}/held`);
    return held.body.metadata.deletionTimestamp;
  });
  const late = { ...widgetOf(group, 'late') };
  for (const reply of [await api.post(path, late), await api.apply(`${path}/late`, 'm', late)]) {
    assertRejected(reply, {
      code: 403,
      reason: 'Forbidden',
      message: `widgets.${group} "late" is forbidden: create not allowed while custom resource definition is terminating`,
      details: { name: 'late', group, kind: 'widgets' },
    });
  }
  const terminating = (await conditions(`widgets.${group}`)).find(
    ({ type }) => type === 'Terminating',
  );
  assert.equal(terminating?.status, 'True');
  await api.made(api.patch(`${path}/held`, { metadata: { finalizers: null } }));

  await api.until('the CRD is gone', async () => (await api.get(crd)).status === 404);
  assert.deepEqual(
    (await watch.rest()).map(({ type, object }) => `${type} ${object.metadata.name}`),
    ['DELETED free', 'MODIFIED held', 'DELETED held'],
  );
  await api.until('the path is gone', async () => (await api.get(path)).status === 404);
  assert.equal((await api.get(path)).text, '404 page not found\n');

  await api.install(widgetCrd(group));
  assert.deepEqual((await api.get(path)).body.items, []);
});

test('a CRD that is being deleted can be changed, and its name is not in the errors of new objects', async () => {
  const crd = widgetCrd('terminating.example.com');
  await api.install(crd);
  const objects = widgets(await api.namespace(), 'terminating.example.com');
  const held = { ...widget('a'), apiVersion: 'terminating.example.com/v1' };
  held.metadata.finalizers = ['example.com/keep'];
  await api.made(api.post(objects, held));
  await api.made(api.delete(`${CRDS}/${crd.metadata.name}`));
  const change = { metadata: { labels: { a: 'b' } } };
  await api.made(api.patch(`${CRDS}/${crd.metadata.name}`, change));
  const generated = { ...held, metadata: { generateName: 'b-' } };
  assertRejected(await api.post(objects, generated), {
    code: 403,
    reason: 'Forbidden',
    message:
      'widgets.terminating.example.com is forbidden: create not allowed while custom resource definition is terminating',
  });
  await api.made(api.patch(`${objects}/a`, { metadata: { finalizers: null } }));
});

test('a version that is not served is not found', async () => {
  const group = 'versions.example.com';
  await api.install(
    widgetCrd(group, (crd) => {
      const [v1] = crd.spec.versions;
      crd.spec.versions.unshift({ ...v1, name: 'v2', storage: false });
      crd.spec.versions.push({ ...v1, name: 'v1beta1', storage: false, served: false });
    }),
  );
  const path = (version: string) => `/apis/${group}/${version}/namespaces/default/widgets`;
  await api.made(api.post(path('v1'), widgetOf(group, 'a')));
  const inV2 = await api.made(api.get(`${path('v2')}/a`));
  assert.equal(inV2.apiVersion, `${group}/v2`);
  const patched = await api.made(
    api.patch(`${path('v2')}/a`, { metadata: { labels: { a: 'b' } } }),
  );
  assert.deepEqual([patched.apiVersion, patched.metadata.labels], [`${group}/v2`, { a: 'b' }]);
  assert.equal((await api.get(`${path('v1beta1')}/a`)).status, 404);
  assert.equal((await api.get(`${path('v3')}/a`)).status, 404);
});

test('the server stores a CRD from customResource, and applies its defaults and rules', async () => {
  const group = 'from-code.example.com';
  const names = { group, kind: 'Probe', plural: 'probes' };
  const old = s.customResource({
    ...names,
    version: 'v1beta1',
    deprecationWarning: 'use v1',
    spec: s.object({ name: s.string() }),
  });
  const { definition } = s.customResource({
    ...names,
    version: 'v1',
    shortNames: ['pb'],
    categories: ['all'],
    spec: s.object(
      {
        name: s.string({ maxLength: 10, rules: [{ rule: 'self == oldSelf' }] }),
        mode: s.enumeration(['On', 'Off'], { default: 'On' }),
        low: s.integer({ minimum: 0, format: 'int32' }),
        high: s.integer({ maximum: 9 }),
        factor: s.optional(s.number({ multipleOf: 0.5 })),
        on: s.nullable(s.boolean()),
        at: s.optional(s.dateTime()),
        size: s.optional(s.quantity()),
        ports: s.list(s.object({ name: s.string(), port: s.intOrString({ maxLength: 15 }) }), {
          maxItems: 3,
          mapKeys: ['name'],
        }),
        tags: s.optional(s.list(s.string(), { listType: 'set' })),
        labels: s.optional(s.map(s.string(), { mapType: 'atomic', maxProperties: 2 })),
        values: s.optional(s.anything()),
        template: s.optional(s.embeddedResource()),
        free: s.optional(s.object({ a: s.optional(s.string()) }, { preserveUnknownFields: true })),
        raw: s.optional(s.jsonSchema<string>({ type: 'string', pattern: '^x' })),
      },
      {
        rules: [{ rule: 'self.low <= self.high', message: 'low exceeds high', fieldPath: '.low' }],
      },
    ),
    status: s.object({
      replicas: s.optional(s.integer()),
      conditions: s.optional(s.conditions()),
    }),
    rules: [{ rule: 'self.metadata.name.size() < 20', reason: 'FieldValueForbidden' }],
    columns: [{ name: 'Mode', type: 'string', jsonPath: '.spec.mode', priority: 1 }],
    scale: { specReplicasPath: '.spec.low', statusReplicasPath: '.status.replicas' },
    selectableFields: ['.spec.mode'],
    otherVersions: [old],
  });
  const { spec } = await api.made(
    api.post(`${CRDS}?fieldValidation=Strict&dryRun=All`, definition),
  );
  assert.deepEqual(spec, { ...definition.spec, conversion: { strategy: 'None' } });
  await api.install(definition);
  const path = `/apis/${group}/v1/namespaces/default/probes?fieldValidation=Strict`;
  const probe = {
    apiVersion: `${group}/v1`,
    kind: 'Probe',
    metadata: { name: 'a' },
    spec: { name: 'a', low: 1, high: 2, on: null, ports: [{ name: 'web', port: '80%' }] },
  };
  const stored = await api.made(api.post(path, probe));
  assert.deepEqual(stored.spec, { ...probe.spec, mode: 'On' });
  assertRejected(
    await api.post(path, { ...probe, metadata: { name: 'b' }, spec: { ...probe.spec, low: 3 } }),
    {
      code: 422,
      reason: 'Invalid',
      message: /spec\.low: Invalid value: (?:.*: )?low exceeds high/,
    },
  );
});

test('the default of a set may have equal items', async () => {
  const crd = widgetCrd('default-set.example.com', ({ spec }) => {
    spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.set = {
      type: 'array',
      'x-kubernetes-list-type': 'set',
      items: { type: 'string' },
      default: ['a', 'a'],
    };
  });
  const { status, text } = await api.post(`${CRDS}?dryRun=All`, crd);
  assert.equal(status, 201, text);
});
