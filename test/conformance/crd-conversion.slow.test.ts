import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { APPLY, Api, JSON_PATCH, MERGE } from './api.ts';
import { CRDS } from './objects.ts';
import { WebhookServer, patchOf } from './webhook-server.ts';
import { skipBefore } from '../support/skip.ts';

const GROUP = 'conversion.example.com';

let api: Api;
let webhooks: WebhookServer;
let namespace: string;
/** Desired versions of the reviews so far. */
const reviews: string[] = [];

before(async () => {
  api = await Api.start();
  webhooks = await WebhookServer.start();
  namespace = await api.namespace();
  await api.install(crd(webhooks.serve('/convert', convert)));
});

after(async () => {
  await api.close();
  await webhooks.close();
});

/** A kind with `spec.size` in v1 and `spec.width` and `spec.height` in v2; v1 is stored. */
function crd(clientConfig: Json): Json {
  const version = (name: string, properties: Json, rest: Json): Json => ({
    name,
    served: true,
    storage: false,
    subresources: { status: {} },
    schema: {
      openAPIV3Schema: {
        type: 'object',
        properties: {
          spec: { type: 'object', properties },
          status: { type: 'object', properties: { phase: { type: 'string' } } },
        },
      },
    },
    ...rest,
  });
  const number = { type: 'integer' };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `boxes.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { plural: 'boxes', kind: 'Box' },
      versions: [
        version('v1', { size: { type: 'string' } }, { storage: true }),
        version(
          'v2',
          { width: number, height: number, depth: { ...number, default: 1 } },
          { selectableFields: [{ jsonPath: '.spec.width' }] },
        ),
      ],
      conversion: {
        strategy: 'Webhook',
        webhook: { clientConfig, conversionReviewVersions: ['v1'] },
      },
    },
  };
}

function convert({ desiredAPIVersion, objects }: Json): Json {
  reviews.push(desiredAPIVersion);
  const failed = objects.find(({ metadata }: Json) => metadata.labels?.broken);
  if (failed?.metadata.labels.broken === 'refused') return 422;
  if (failed) return { result: { status: 'Failed', message: 'cannot convert it' } };
  const convertedObjects = objects.map((object: Json) => {
    const { size = '0x0', width, height } = object.spec;
    const [w, h] = size.split('x').map(Number);
    const spec = desiredAPIVersion.endsWith('v2')
      ? { width: w, height: h, unknown: true }
      : { size: `${width}x${height}` };
    return { ...object, apiVersion: desiredAPIVersion, spec };
  });
  return { result: { status: 'Success' }, convertedObjects };
}

/** A kind with `spec.color` in v1 and `spec.hue` in v2, and `spec.size` in both. */
async function installJars(plural: string, kind: string, conversion: Json) {
  const jars = crd({});
  const text = { type: 'string' };
  jars.metadata.name = `${plural}.${GROUP}`;
  Object.assign(jars.spec, { names: { plural, kind }, conversion });
  for (const [index, field] of ['color', 'hue'].entries()) {
    const { openAPIV3Schema } = jars.spec.versions[index].schema;
    openAPIV3Schema.properties.spec.properties = { [field]: text, size: text };
  }
  delete jars.spec.versions[1].selectableFields;
  await api.install(jars);
  const path = (version: string, name: string) =>
    `/apis/${GROUP}/${version}/namespaces/${namespace}/${plural}/${name}`;
  return {
    path,
    apply: (manager: string, version: string, name: string, spec: Json, query?: string) => {
      const jar = { apiVersion: `${GROUP}/${version}`, kind, metadata: { name }, spec };
      return api.apply(path(version, name), manager, jar, query);
    },
    update: (version: string, name: string, spec: Json) =>
      api.made(api.patch(`${path(version, name)}?fieldManager=editor`, { spec })),
  };
}

/** Manager and version by entry, with the fields of the spec. */
function owners({ metadata }: Json): Json {
  return Object.fromEntries(
    metadata.managedFields.map(({ manager, apiVersion, fieldsV1 }: Json) => [
      `${manager} ${apiVersion.split('/')[1]}`,
      Object.keys(fieldsV1['f:spec'] ?? {}),
    ]),
  );
}

function rename({ desiredAPIVersion, objects }: Json): Json {
  if (objects.some(({ spec }: Json) => spec?.size === 'broken')) {
    return { result: { status: 'Failed', message: 'cannot convert it' } };
  }
  const convertedObjects = objects.map((object: Json) => {
    const { color, hue = color, ...spec } = object.spec ?? {};
    const field = desiredAPIVersion.endsWith('v1') ? 'color' : 'hue';
    return {
      ...object,
      apiVersion: desiredAPIVersion,
      spec: { ...spec, ...(hue !== undefined && { [field]: hue }) },
    };
  });
  return { result: { status: 'Success' }, convertedObjects };
}

function boxes(version: string): string {
  return `/apis/${GROUP}/${version}/namespaces/${namespace}/boxes`;
}

function box(version: string, name: string, spec: Json, labels: Json = {}): Json {
  return { apiVersion: `${GROUP}/${version}`, kind: 'Box', metadata: { name, labels }, spec };
}

/** A CRD whose objects are converted by a change of their apiVersion. */
function withoutWebhook(plural: string, kind: string): Json {
  const plain = crd({});
  plain.metadata.name = `${plural}.${GROUP}`;
  plain.spec.names = { plural, kind };
  plain.spec.conversion = { strategy: 'None' };
  return plain;
}

test('objects are read in every version, without unknown fields and without further defaults', async () => {
  await api.made(api.post(boxes('v1'), box('v1', 'read', { size: '2x3' })));
  const { apiVersion, spec, metadata } = await api.made(api.get(`${boxes('v2')}/read`));
  assert.equal(apiVersion, `${GROUP}/v2`);
  assert.deepEqual(spec, { width: 2, height: 3 });
  const stored = await api.made(api.get(`${boxes('v1')}/read`));
  assert.deepEqual(stored.metadata, metadata);
  const { items } = await api.made(api.get(boxes('v2')));
  assert.deepEqual(items.at(-1).spec, spec);
});

test('objects of another version are stored in the storage version', async () => {
  const created = await api.made(
    api.post(boxes('v2'), box('v2', 'write', { width: 4, height: 5 })),
  );
  assert.deepEqual(created.spec, { width: 4, height: 5 });
  assert.deepEqual((await api.get(`${boxes('v1')}/write`)).body.spec, { size: '4x5' });
  const patched = await api.made(api.patch(`${boxes('v2')}/write`, { spec: { height: 6 } }));
  assert.equal(patched.spec.height, 6);
  assert.equal(patched.metadata.generation, 2);
  assert.deepEqual((await api.get(`${boxes('v1')}/write`)).body.spec, { size: '4x6' });
  const status = await api.made(
    api.patch(`${boxes('v2')}/write/status`, { status: { phase: 'Done' } }),
  );
  assert.deepEqual(status.spec, { width: 4, height: 6 });
  assert.equal((await api.get(`${boxes('v1')}/write`)).body.status.phase, 'Done');
});

test('selectors apply to objects in the requested version', async () => {
  const watching = await api.watch(`${boxes('v2')}?fieldSelector=spec.width%3D77`);
  for (const [name, size] of [
    ['wide', '77x1'],
    ['narrow', '7x1'],
  ] as const) {
    await api.made(api.post(boxes('v1'), box('v1', name, { size })));
  }
  await api.made(api.patch(`${boxes('v1')}/wide`, { spec: { size: '7x1' } }));
  await api.made(api.patch(`${boxes('v1')}/narrow`, { spec: { size: '77x2' } }));
  const events = [await watching.next(), await watching.next(), await watching.next()];
  assert.deepEqual(
    events.map(({ type, object }: Json) => [type, object.metadata.name]),
    [
      ['ADDED', 'wide'],
      ['DELETED', 'wide'],
      ['ADDED', 'narrow'],
    ],
  );
  const selected = `${boxes('v2')}?fieldSelector=spec.width%3D77`;
  const names = async () =>
    (await api.made(api.get(selected))).items.map(({ metadata }: Json) => metadata.name);
  assert.deepEqual(await names(), ['narrow']);
  await api.made(api.delete(selected));
  assert.deepEqual(await names(), []);
  await api.made(api.get(`${boxes('v1')}/wide`));
});

test('a watch shows objects in its version', async () => {
  const watching = await api.watch(`${boxes('v2')}?fieldSelector=metadata.name%3Dwatched`);
  await api.made(api.post(boxes('v1'), box('v1', 'watched', { size: '7x8' })));
  await api.made(api.patch(`${boxes('v1')}/watched`, { spec: { size: '7x9' } }));
  await api.made(api.delete(`${boxes('v1')}/watched`));
  const events = [await watching.next(), await watching.next(), await watching.next()];
  assert.deepEqual(
    events.map(({ type, object }: Json) => [type, object.apiVersion, object.spec.height]),
    [
      ['ADDED', `${GROUP}/v2`, 8],
      ['MODIFIED', `${GROUP}/v2`, 9],
      ['DELETED', `${GROUP}/v2`, 9],
    ],
  );
});

test('an object that the webhook does not convert is an error', async () => {
  for (const [how, problem] of [
    ['failed', 'cannot convert it'],
    ['refused', 'the server rejected our request due to an error in our request'],
  ] as const) {
    const broken = box('v1', 'broken', { size: '1x1' }, { broken: how });
    await api.made(api.post(boxes('v1'), broken));
    const { status, body } = await api.get(`${boxes('v2')}/broken`);
    assert.equal(status, 500);
    // A real server also names the key in etcd.
    const whole = `conversion webhook for conversion.example.com/v1, Kind=Box failed: ${problem}`;
    assert.ok(body.message.endsWith(whole), body.message);
    await api.made(api.delete(`${boxes('v1')}/broken`));
  }
});

test('a new storage version is added to storedVersions, and stored objects stay readable', async () => {
  const path = `${CRDS}/boxes.${GROUP}`;
  await api.made(api.post(boxes('v1'), box('v1', 'old', { size: '1x2' })));
  const { spec, status } = await api.made(api.get(path));
  assert.deepEqual(status.storedVersions, ['v1']);
  for (const version of spec.versions) version.storage = version.name === 'v2';
  await api.made(api.patch(path, { spec: { versions: spec.versions } }));
  await api.until('both versions are listed', async () => {
    const { body } = await api.get(path);
    return body.status.storedVersions.join() === 'v1,v2';
  });
  assert.deepEqual((await api.get(`${boxes('v1')}/old`)).body.spec, { size: '1x2' });
  await api.until('an object of version v2 is stored', async () => {
    const { body } = await api.patch(`${boxes('v2')}/old`, { spec: { width: 9 } });
    return body.spec.width === 9;
  });
  assert.deepEqual((await api.get(`${boxes('v1')}/old`)).body.spec, { size: '9x2' });
});

test('webhooks and policies see and change objects in the version that their rules name', async () => {
  const admission = '/apis/admissionregistration.k8s.io/v1';
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const rule = {
    apiGroups: [GROUP],
    apiVersions: ['v1'],
    operations: ['CREATE'],
    resources: ['boxes'],
  };
  const name = `${namespace}.example.com`;
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  const seen: Json[] = [];
  const clientConfig = webhooks.serve('/admit', ({ object, requestKind, kind }) => {
    seen.push([object.apiVersion, object.spec, requestKind.version, kind.version]);
    return {
      allowed: true,
      ...patchOf([{ op: 'replace', path: '/spec/size', value: `${object.spec.size}0` }]),
    };
  });
  const webhook = {
    name,
    clientConfig,
    rules: [rule],
    namespaceSelector,
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  };
  const objects: readonly (readonly [plural: string, kind: string, rest: Json])[] = [
    ['mutatingwebhookconfigurations', 'MutatingWebhookConfiguration', { webhooks: [webhook] }],
    [
      'validatingadmissionpolicies',
      'ValidatingAdmissionPolicy',
      {
        spec: {
          matchConstraints: { resourceRules: [rule] },
          validations: [{ expression: "object.spec.size != '9x90'", message: 'too large' }],
        },
      },
    ],
    [
      'validatingadmissionpolicybindings',
      'ValidatingAdmissionPolicyBinding',
      {
        spec: {
          policyName: name,
          validationActions: ['Deny'],
          matchResources: { namespaceSelector },
        },
      },
    ],
  ];
  for (const [plural, kind, rest] of objects) {
    const object = { apiVersion, kind, metadata: { name }, ...rest };
    await api.made(api.post(`${admission}/${plural}`, object));
  }
  const message = await api.until('the policy is active', async () => {
    const probe = box('v2', 'probe', { width: 9, height: 9 });
    const { status, body } = await api.post(`${boxes('v2')}?dryRun=All`, probe);
    return status === 422 && body.message;
  });
  assert.match(message, /too large$/);
  seen.length = 0;
  const { spec } = await api.made(
    api.post(boxes('v2'), box('v2', 'seen', { width: 4, height: 5 })),
  );
  assert.deepEqual(seen, [[`${GROUP}/v1`, { size: '4x5' }, 'v2', 'v1']]);
  assert.deepEqual(spec, { width: 4, height: 50, depth: 1 });
  for (const [plural] of objects) await api.delete(`${admission}/${plural}/${name}`);
});

test('without a webhook, an object is read without the fields that the requested version lacks', async () => {
  const plain = withoutWebhook('cases', 'Case');
  plain.spec.versions[1].schema.openAPIV3Schema.properties.status.properties.phase.default = 'New';
  await api.install(plain);
  const at = (version: string) => `/apis/${GROUP}/${version}/namespaces/${namespace}/cases`;
  await api.made(
    api.post(at('v1'), {
      apiVersion: `${GROUP}/v1`,
      kind: 'Case',
      metadata: { name: 'a' },
      spec: { size: 'large' },
    }),
  );
  assert.deepEqual((await api.made(api.get(`${at('v2')}/a`))).spec, {});
  assert.deepEqual((await api.made(api.get(at('v2')))).items[0].spec, {});
  // A write of the status applies the defaults of the status only.
  const written = await api.made(api.patch(`${at('v2')}/a/status`, { status: {} }));
  assert.deepEqual([written.spec, written.status], [{}, { phase: 'New' }]);
});

test('without a webhook, a write keeps the fields that the storage version has', async () => {
  const plain = withoutWebhook('crates', 'Crate');
  await api.install(plain);
  const at = (version: string) => `/apis/${GROUP}/${version}/namespaces/${namespace}/crates`;
  const crate = (version: string, spec: Json): Json => ({
    apiVersion: `${GROUP}/${version}`,
    kind: 'Crate',
    metadata: { name: 'a' },
    spec,
  });
  const created = await api.made(api.post(at('v2'), crate('v2', { width: 1, height: 2 })));
  assert.deepEqual([created.apiVersion, created.spec], [`${GROUP}/v2`, {}]);
  await api.made(api.patch(`${at('v1')}/a`, { spec: { size: 'large' } }));
  const patched = await api.made(api.patch(`${at('v2')}/a`, { spec: { width: 5 } }));
  assert.deepEqual(patched.spec, {});
  // The response to a write that removes the object is not converted.
  await api.made(api.patch(`${at('v1')}/a`, { metadata: { finalizers: ['example.com/a'] } }));
  await api.made(api.delete(`${at('v1')}/a`));
  const removal = { metadata: { finalizers: null }, spec: { width: 5 } };
  for (const query of ['?dryRun=All', '']) {
    const removed = await api.made(api.patch(`${at('v2')}/a${query}`, removal));
    assert.deepEqual(removed.spec, { width: 5, depth: 1 });
  }
});

test('without a webhook, an apply needs a stored object that fits its version', async () => {
  const plain = withoutWebhook('cans', 'Can');
  const { properties } = plain.spec.versions[1].schema.openAPIV3Schema.properties.spec;
  properties.size = { type: 'integer' };
  await api.install(plain);
  const path = (version: string) =>
    `/apis/${GROUP}/${version}/namespaces/${namespace}/cans/a?fieldValidation=Strict`;
  const can = { kind: 'Can', metadata: { name: 'a' }, spec: { size: 'L' } };
  const create = `/apis/${GROUP}/v1/namespaces/${namespace}/cans`;
  await api.made(api.post(create, { apiVersion: `${GROUP}/v1`, ...can }));
  const applied = { apiVersion: `${GROUP}/v2`, ...can, spec: {} };
  const { status, body } = await api.patch(`${path('v2')}&fieldManager=a`, applied, APPLY);
  assert.deepEqual(
    [status, body.message],
    [
      500,
      `failed to create typed live object (${namespace}/a; ${GROUP}/v2, Kind=Can): .spec.size: expected numeric (int or float), got string`,
    ],
  );
});

test('a body of another version is decoded by its own schema, and refused', async () => {
  const plain = withoutWebhook('bags', 'Bag');
  await api.install(plain);
  const path = `/apis/${GROUP}/v1/namespaces/${namespace}/bags`;
  const bag = (apiVersion: string | undefined): Json => ({
    apiVersion,
    kind: 'Bag',
    metadata: { name: 'a', own: 1 },
    spec: { size: 'L', width: 1 },
  });
  const bodies: [string | undefined, string[]][] = [
    [`${GROUP}/v2`, ['metadata.own', 'spec.size']],
    [`${GROUP}/v3`, ['metadata.own', 'spec']],
    ['v2', ['metadata.own']],
    [undefined, ['metadata.own']],
  ];
  for (const [apiVersion, unknown] of bodies) {
    const { status, body, headers } = await api.post(path, bag(apiVersion));
    assert.deepEqual([status, body.code], [400, 400]);
    assert.equal(
      body.message,
      `the API version in the data (${apiVersion ?? ''}) does not match the expected API version (${GROUP}/v1)`,
    );
    const warnings = unknown.map((field) => `299 - "unknown field \\"${field}\\""`);
    assert.equal(headers['warning'], warnings.join(', '));
  }
  const strict = await api.post(`${path}?fieldValidation=Strict`, bag(`${GROUP}/v3`));
  assert.equal(
    strict.body.message,
    'Bag in version "v3" cannot be handled as a Bag: strict decoding error: unknown field "metadata.own", unknown field "spec"',
  );
  assert.match((await api.post(path, bag('a/b/c'))).body.message, /unexpected GroupVersion string/);
});

test(
  'a patch can change the apiVersion of an object only in a write of the status',
  skipBefore(37),
  async () => {
    const plain = withoutWebhook('tins', 'Tin');
    await api.install(plain);
    const path = `/apis/${GROUP}/v1/namespaces/${namespace}/tins`;
    const tin = { apiVersion: `${GROUP}/v1`, kind: 'Tin', metadata: { name: 'a' }, spec: {} };
    await api.made(api.post(path, tin));
    const refused = async (patch: Json, code: number, message: string | RegExp, type = MERGE) => {
      const { status, body } = await api.patch(`${path}/a`, patch, type);
      assert.equal(status, code);
      if (typeof message === 'string') assert.equal(body.message, message);
      else assert.match(body.message, message);
    };
    const missing =
      "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'";
    await refused({ apiVersion: null }, 500, missing);
    const wrong = `apiVersion: Invalid value: "v9": must be ${GROUP}/v1`;
    await refused({ apiVersion: 'v9' }, 422, `Tin "a" is invalid: ${wrong}`);
    await refused({ apiVersion: 'a/b/c' }, 422, /unexpected GroupVersion string: a\/b\/c$/);
    const replaced = [{ op: 'replace', path: '/apiVersion', value: null }];
    await refused(replaced, 422, /\.apiVersion accessor error: <nil> is of the type/, JSON_PATCH);
    const status = { phase: 'New', unknown: true };
    const { body, headers } = await api.patch(`${path}/a/status`, { apiVersion: 'v9', status });
    assert.deepEqual([body.apiVersion, body.status], [tin.apiVersion, { phase: 'New' }]);
    assert.deepEqual([headers['warning'], body.metadata.managedFields.length], [undefined, 1]);
  },
);

test('field managers own fields in the version in which they wrote them', async () => {
  const clientConfig = webhooks.serve('/rename', rename);
  const webhook = { clientConfig, conversionReviewVersions: ['v1'] };
  const { apply, update, path } = await installJars('jars', 'Jar', {
    strategy: 'Webhook',
    webhook,
  });
  await api.made(apply('a', 'v1', 'jar', { color: 'red', size: 'S' }));
  const { status, body } = await apply('b', 'v2', 'jar', { hue: 'blue' });
  assert.deepEqual(
    [status, body.message],
    [409, 'Apply failed with 1 conflict: conflict with "a": .spec.color'],
  );
  const forced = await api.made(apply('b', 'v2', 'jar', { hue: 'blue' }, '&force=true'));
  assert.deepEqual(owners(forced), { 'a v1': ['f:size'], 'b v2': ['f:hue'] });
  const unchanged = await api.made(apply('c', 'v1', 'jar', { color: 'blue' }));
  assert.deepEqual(owners(unchanged), {
    'a v1': ['f:size'],
    'b v2': ['f:hue'],
    'c v1': ['f:color'],
  });
  assert.deepEqual(owners(await update('v1', 'jar', { color: 'green' })), {
    'a v1': ['f:size'],
    'editor v1': ['f:color'],
  });
  // An apply in another version removes what the last one had.
  await api.made(apply('a', 'v1', 'moved', { color: 'red', size: 'S' }));
  const moved = await api.made(apply('a', 'v2', 'moved', { size: 'S' }));
  assert.deepEqual([moved.spec, owners(moved)], [{ size: 'S' }, { 'a v2': ['f:size'] }]);
  assert.deepEqual((await api.get(path('v1', 'moved'))).body.spec, { size: 'S' });
});

test(
  'if an object cannot be converted, an apply fails and an update changes no owners',
  skipBefore(37),
  async () => {
    const clientConfig = webhooks.serve('/rename', rename);
    const webhook = { clientConfig, conversionReviewVersions: ['v1'] };
    const { apply, update } = await installJars('pots', 'Pot', { strategy: 'Webhook', webhook });
    await api.made(apply('a', 'v1', 'pot', { color: 'red' }));
    await api.made(apply('b', 'v2', 'pot', { hue: 'red' }));
    const { status, body } = await apply('a', 'v1', 'pot', { color: 'red', size: 'broken' });
    assert.equal(status, 500);
    assert.match(body.message, /cannot convert it$/);
    const updated = await update('v1', 'pot', { color: 'blue', size: 'broken' });
    assert.deepEqual(owners(updated), { 'a v1': ['f:color'], 'b v2': ['f:hue'] });
  },
);

test(
  'without a webhook, versions that own fields must declare the fields of the others',
  skipBefore(37),
  async () => {
    const { apply, update } = await installJars('cups', 'Cup', { strategy: 'None' });
    await api.made(apply('a', 'v1', 'cup', { color: 'red', size: 'S' }));
    const { status, body } = await apply('b', 'v2', 'cup', { hue: 'red' });
    assert.deepEqual(
      [status, body.message],
      [500, 'failed to convert new object: .spec.hue: field not declared in schema'],
    );
    const shared = await api.made(apply('b', 'v2', 'cup', { size: 'S' }));
    assert.deepEqual(owners(shared), { 'a v1': ['f:color', 'f:size'], 'b v2': ['f:size'] });
    // The write of v2 has removed the color, which a does not own any more.
    assert.deepEqual(owners(await update('v2', 'cup', { size: 'M' })), {
      'a v1': ['f:color'],
      'editor v2': ['f:size'],
    });
    const path = `${CRDS}/cups.${GROUP}`;
    const { spec } = await api.made(api.get(path));
    const without = { versions: spec.versions.slice(0, 1) };
    await api.made(api.patch(path, { spec: without }));
    await api.until('v2 is gone', async () => {
      const { status } = await api.get(`/apis/${GROUP}/v2/namespaces/${namespace}/cups`);
      return status === 404;
    });
    const message = await api.until('v1 is served without v2', async () => {
      const { status, body } = await apply('a', 'v1', 'cup', { size: 'L' }, '&force=1&dryRun=All');
      return status === 500 && body.message;
    });
    assert.equal(message, `request to convert CR to an invalid group/version: ${GROUP}/v2`);
    assert.deepEqual(owners(await update('v1', 'cup', { size: 'L' })), {
      'a v1': ['f:color'],
      'editor v2': ['f:size'],
    });
  },
);
