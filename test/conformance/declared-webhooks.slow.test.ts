import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parseAllDocuments, stringify } from 'yaml';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../src/api/builtin.ts';
import type { Draft, KubernetesObject } from '../../src/api/object.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { generateManifests } from '../../src/cli/commands/generate-manifests.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { FakeClock } from '../../src/util/fake-clock.ts';
import { installWebhooks } from '../../src/webhook/install.ts';
import { webhookNames } from '../../src/webhook/manifests.ts';
import { BOX_WEBHOOKS, BOXES_V2, boxV1, boxV2 } from '../support/boxes.ts';
import { findKubectl, Kubectl } from '../support/kubectl.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { ServedWebhooks } from '../support/served-webhooks.ts';
import { needsReal } from '../support/skip.ts';
import type { Json, Reply } from './api.ts';
import { Api, APPLY, assertRejected, JSON_PATCH, JSON_TYPE, MERGE } from './api.ts';

const PROGRAM = 'box-operator';
const NAMES = webhookNames(PROGRAM, `${PROGRAM}-system`);
const OWNER = { owner: 'me' };

const kubectlPath = findKubectl();

let api: Api;
let served: ServedWebhooks;
const { log, lines } = recordingLogger([], 4);
/** Warnings of the server about the manifests, with the path of each. */
const warnings: string[] = [];

before(async () => {
  api = await Api.start();
  served = await ServedWebhooks.start(BOX_WEBHOOKS, { log });
  for (const manifest of served.redirected(await manifests())) {
    const path = pathOf(manifest);
    const { status, text, headers } = await api.apply(path, 'kubectl', manifest);
    assert.ok(status < 300, `${path}: ${text}`);
    if (headers['warning'] !== undefined) warnings.push(`${path}: ${headers['warning']}`);
    if (manifest.kind === 'CustomResourceDefinition') await api.install(manifest);
  }
  await api.until('webhooks and policies are effective', async () => {
    const replies = [
      await api.post(`${boxes('v2')}?dryRun=All`, boxV2('probe', { width: 1, height: 0 })),
      await api.post(`${boxes('v2')}?dryRun=All`, boxV2('probe', { width: 101, height: 1 })),
    ];
    return replies.every(({ status }) => status === 422);
  });
});

after(async () => {
  await api.close();
  await served.close();
});

/** Returns the manifests that `generate manifests` prints. */
async function manifests(): Promise<Draft<KubernetesObject>[]> {
  const folder = mkdtempSync(join(tmpdir(), 'declared-webhooks-'));
  try {
    const crd = join(folder, 'boxes.yaml');
    writeFileSync(crd, stringify(BOXES_V2.definition));
    const module = join(import.meta.dirname, '../support/boxes.ts');
    let text = '';
    const flags = { name: PROGRAM, deploy: '', check: false };
    await generateManifests([crd, module], flags, { print: (line) => (text += line) });
    return parseAllDocuments(text).map((document) => document.toJS() as Draft<KubernetesObject>);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function pathOf({ apiVersion, kind, metadata }: Draft<KubernetesObject>): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
  const plural = `${kind.toLowerCase()}s`.replace(/ys$/, 'ies');
  return `${group}${scope}/${plural}/${metadata.name}`;
}

function boxes(version: string): string {
  return `/apis/boxes.example.com/${version}/namespaces/default/boxes`;
}

async function specs(name: string): Promise<Json> {
  const [v1, v2] = [
    await api.get(`${boxes('v1')}/${name}`),
    await api.get(`${boxes('v2')}/${name}`),
  ];
  assert.deepEqual(v1.body.metadata.uid, v2.body.metadata.uid);
  return [v1.body.spec, v2.body.spec];
}

test('a declared default is set, in the version that the client uses', async () => {
  const created = await api.made(api.post(boxes('v1'), boxV1('defaulted', { size: '2x3' })));
  const { size, owner } = created.spec;
  assert.equal(size, '2x3');
  assert.ok(owner);
  assert.deepEqual(await specs('defaulted'), [
    { size: '2x3', owner },
    { width: 2, height: 3, owner },
  ]);
});

test('declared errors are answered with causes, and warnings are sent', async () => {
  const { status, body } = await api.post(boxes('v1'), boxV1('flat', { size: '2x0', owner: '' }));
  assert.equal(status, 422);
  assert.equal(body.reason, 'Invalid');
  assert.match(
    body.message,
    /denied the request: Box\.boxes\.example\.com "flat" is invalid: \[spec\.height: Invalid value: 0: must not be flat, spec\.owner: Required value\]$/,
  );
  assert.deepEqual(
    body.details.causes.map(({ field, reason }: Json) => [field, reason]),
    [
      ['spec.height', 'FieldValueInvalid'],
      ['spec.owner', 'FieldValueRequired'],
    ],
  );
  await api.made(api.post(boxes('v2'), boxV2('warned', { width: 1, height: 1, ...OWNER })));
  const { headers } = await api.patch(`${boxes('v2')}/warned`, { spec: { owner: 'you' } });
  assert.match(headers['warning'] ?? '', /The owner changes/);
});

test(
  'kubectl applies an object in each version, and prints errors in fields',
  { skip: kubectlPath ? needsReal('a process for each command') : 'kubectl not found' },
  async () => {
    const program = kubectlPath ?? '';
    const kubectl = new Kubectl({ program, kubeconfig: api.kubeconfigPath, namespace: 'default' });
    try {
      const apply = ['apply', '-f', '-'];
      await kubectl.send(boxV1('kubectl', { size: '2x3', ...OWNER }), ...apply);
      await kubectl.send(boxV2('kubectl', { width: 2, height: 4, ...OWNER }), ...apply);
      await kubectl.send(
        boxV1('kubectl', { size: '5x4', ...OWNER }),
        ...apply,
        '--server-side',
        '--force-conflicts',
      );
      assert.deepEqual((await specs('kubectl'))[1], { width: 5, height: 4, ...OWNER });
      const flat = boxV1('kubectl', { size: '5x0', owner: '' });
      assert.match(
        await kubectl.refused(flat, ...apply),
        /^The Box "kubectl" is invalid: \n\* spec\.height: Invalid value: 0: must not be flat\n\* spec\.owner: Required value$/m,
      );
    } finally {
      kubectl.close();
    }
  },
);

test('an object is patched, listed and watched in both versions', async () => {
  const watches = await Promise.all(
    ['v1', 'v2'].map((version) =>
      api.watch(`${boxes(version)}?fieldSelector=metadata.name%3Dboth`),
    ),
  );
  await api.made(api.post(boxes('v1'), boxV1('both', { size: '4x5', ...OWNER })));
  await api.made(api.patch(`${boxes('v2')}/both`, { spec: { width: 6 } }));
  const replace = [{ op: 'replace', path: '/spec/size', value: '6x7' }];
  await api.made(api.patch(`${boxes('v1')}/both`, replace, JSON_PATCH));
  await api.made(api.patch(`${boxes('v1')}/both/status`, { status: { phase: 'Ready' } }));
  assert.deepEqual(await specs('both'), [
    { size: '6x7', ...OWNER },
    { width: 6, height: 7, ...OWNER },
  ]);
  for (const [version, wanted] of [
    ['v1', '4x5 6x5 6x7 6x7'],
    ['v2', '4x5 6x5 6x7 6x7'],
  ] as const) {
    const { items } = await api.made(api.get(boxes(version)));
    const listed = items.find(({ metadata }: Json) => metadata.name === 'both');
    assert.equal(listed.apiVersion, `boxes.example.com/${version}`);
    assert.equal(listed.status.phase, 'Ready');
    const watching = watches[version === 'v1' ? 0 : 1]!;
    const seen = [];
    for (let at = 0; at < 4; at++) {
      const { spec } = (await watching.next()).object;
      seen.push(spec.size ?? `${spec.width}x${spec.height}`);
    }
    assert.equal(seen.join(' '), wanted);
  }
});

test('managers apply one object in different versions', async () => {
  const path = (version: string) => `${boxes(version)}/applied`;
  const apply = (manager: string, box: { apiVersion: string; spec: object }, query = '') =>
    api.made(
      api.patch(
        `${path(box.apiVersion.split('/')[1]!)}?fieldManager=${manager}${query}`,
        box,
        APPLY,
      ),
    );
  await apply('one', boxV1('applied', { size: '1x2', ...OWNER }));
  const { managedFields } = (await api.get(path('v2'))).body.metadata;
  assert.ok(managedFields.some(({ apiVersion }: Json) => apiVersion === 'boxes.example.com/v1'));
  // A second manager owns the same values in the other version.
  await apply('two', boxV2('applied', { width: 1, height: 2 }));
  // The first manager drops a field: the API server converts objects without it.
  const dropped = await apply('one', boxV1('applied', { size: '1x2' }));
  assert.notEqual(dropped.spec.owner, 'me');
  const forced = await apply('one', boxV1('applied', { size: '3x2' }), '&force=true');
  assert.equal(forced.spec.size, '3x2');
  assert.deepEqual((await specs('applied'))[1].width, 3);
  await apply('two', boxV2('applied', { width: 9, height: 9 }), '&force=true');
  assert.equal((await specs('applied'))[0].size, '9x9');
  const failures = lines.filter(({ level }) => level === 'error');
  assert.deepEqual(failures, [], 'no function failed');
});

test('a manager that applies in another version owns its fields there', async () => {
  const apply = (manager: string, box: { apiVersion: string; spec: object }) =>
    api.apply(`${boxes(box.apiVersion.split('/')[1]!)}/owned`, manager, box);
  const owners = ({ metadata }: Json) =>
    metadata.managedFields
      .map(({ manager, apiVersion, fieldsV1 }: Json) =>
        [manager, apiVersion.split('/')[1], ...Object.keys(fieldsV1['f:spec'])].join(' '),
      )
      .toSorted();
  const wide = boxV2('owned', { width: 3, height: 2, ...OWNER });
  await api.made(apply('one', boxV1('owned', { size: '1x2', ...OWNER })));
  const other = await api.made(apply('one', wide));
  assert.deepEqual(owners(other), ['one v2 f:height f:owner f:width']);
  assert.deepEqual((await api.made(apply('one', wide))).metadata, other.metadata);
  const conflict = await apply('two', boxV2('owned', { width: 4, height: 2 }));
  assertRejected(conflict, {
    code: 409,
    reason: 'Conflict',
    message: 'Apply failed with 1 conflict: conflict with "one": .spec.width',
  });
  const shared = await api.made(apply('two', boxV1('owned', { size: '3x2' })));
  assert.deepEqual(owners(shared), ['one v2 f:height f:owner f:width', 'two v1 f:size']);
});

test('the server accepts the generated manifests without warnings', () => {
  assert.deepEqual(warnings, []);
});

test('an update of an object that is being deleted calls no function, also if it omits the timestamp', async () => {
  const path = `${boxes('v2')}/deleted`;
  const box = boxV2('deleted', { width: 1, height: 1, ...OWNER });
  const finalizers = ['example.com/a', 'example.com/b'];
  await api.made(api.post(boxes('v2'), { ...box, metadata: { ...box.metadata, finalizers } }));
  const { metadata } = await api.made(api.delete(path));
  const before = lines.length;
  for (const deletionTimestamp of [metadata.deletionTimestamp, undefined]) {
    const { resourceVersion } = (await api.get(path)).body.metadata;
    finalizers.pop();
    const { uid } = metadata;
    const changed = { ...box.metadata, uid, resourceVersion, deletionTimestamp, finalizers };
    const spec = { width: 200, height: 0 };
    await api.made(api.put(path, { ...box, metadata: changed, spec }));
  }
  assert.equal((await api.get(path)).status, 404);
  const reviews = lines.slice(before).filter(({ fields }) => fields['name'] === 'deleted');
  assert.deepEqual(reviews, []);
});

test('the server and the functions in this process agree', async () => {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, BOXES_V2.definition);
  await installWebhooks(server, client, BOX_WEBHOOKS, { clock, names: NAMES });
  const inProcess: Api['send'] = async (method, path, body, headers) => {
    const all = { 'content-type': JSON_TYPE, 'user-agent': 'conformance/1', ...headers };
    const text = JSON.stringify(body);
    const response = await server.handler({ method, path, headers: all, body: text });
    const bytes = Buffer.concat(await Array.fromAsync(response.body));
    return { ...response, bytes, text: bytes.toString(), body: JSON.parse(bytes.toString()) };
  };
  const kept = boxV2('agreed', { width: 9, height: 9, ...OWNER });
  const labels = { kept: 'true' };
  const at = (version: string) => `${boxes(version)}/agreed`;
  const merge = { 'content-type': MERGE };
  const requests: Parameters<Api['send']>[] = [
    ['POST', boxes('v1'), boxV1('agreed', { size: '2x3', ...OWNER })],
    ['POST', boxes('v1'), boxV1('other', { size: '101x3' })],
    ['POST', boxes('v2'), boxV2('other', { width: 101, height: 0 })],
    ['POST', boxes('v2'), boxV2('other', { width: 100, height: 0, owner: '' })],
    ['POST', boxes('v2'), boxV2('schema', { width: 100, height: 1, ...OWNER })],
    ['PATCH', at('v1'), { spec: { size: '1x3' } }, merge],
    ['PATCH', at('v2'), { spec: { height: 4, owner: 'you' } }, merge],
    ['PATCH', at('v1'), { metadata: { labels } }, merge],
    ['PATCH', `${at('v2')}?fieldManager=m`, kept, { 'content-type': APPLY }],
    ['PATCH', `${at('v2')}?fieldManager=m&force=true`, kept, { 'content-type': APPLY }],
    ['DELETE', at('v1')],
    ['PATCH', at('v2'), { metadata: { labels: { kept: null, other: '' } } }, merge],
    ['DELETE', at('v1')],
  ];
  for (const request of requests) {
    const [actual, expected] = [await api.send(...request), await inProcess(...request)];
    assert.deepEqual(inShort(actual), inShort(expected), request.slice(0, 2).join(' '));
  }
});

/** Returns what a function or rule decides about a response. */
function inShort({ status, headers, body }: Reply): Json {
  const { apiVersion, spec, message, reason, details } = body;
  const causes = details?.causes;
  return { status, warning: headers['warning'], apiVersion, spec, message, reason, causes };
}
