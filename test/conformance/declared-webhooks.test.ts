import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Webhooks } from '../../src/webhook/webhooks.ts';
import { BOXES_V2, boxV1, boxV2, declareBoxes } from '../support/boxes.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { ServedWebhooks } from '../support/served-webhooks.ts';
import { findKubectl, Kubectl } from '../support/kubectl.ts';
import { needsReal } from '../support/skip.ts';
import type { Json } from './api.ts';
import { Api, APPLY, JSON_PATCH } from './api.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const OWNER = { owner: 'me' };

const kubectlPath = findKubectl();

let api: Api;
let served: ServedWebhooks;
const { log, lines } = recordingLogger([], 0);

before(async () => {
  api = await Api.start();
  served = await ServedWebhooks.start(declareBoxes(new Webhooks()), log);
  const [crd, ...configurations] = served.objects(BOXES_V2.definition);
  await api.install(crd);
  for (const configuration of configurations) {
    const plural = `${configuration.kind.toLowerCase()}s`;
    await api.made(api.post(`${GROUP}/${plural}`, configuration));
  }
  await api.until('the webhooks are called', async () => {
    const flat = boxV2('probe', { width: 1, height: 0 });
    return (await api.post(`${boxes('v2')}?dryRun=All`, flat)).status === 422;
  });
});

after(async () => {
  await api.close();
  await served.close();
});

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
      const flat = boxV1('kubectl', { size: '2x0', owner: '' });
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
  assert.deepEqual(lines, [], 'no function failed');
});
