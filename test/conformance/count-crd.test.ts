import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../src/api/builtin.ts';
import type { CustomResourceDefinition } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { Count } from '../../src/api/generated/count.ts';
import type { Draft, KubernetesObject } from '../../src/api/object.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';

const root = join(import.meta.dirname, '../..');
let controlPlane: ControlPlane;

before(async () => {
  controlPlane = await startControlPlane();
  const { client } = controlPlane;
  await client.create(
    CUSTOM_RESOURCE_DEFINITIONS,
    fromFile('crds/counts.demo.mark8s.io.yaml') as Draft<CustomResourceDefinition>,
    { fieldValidation: 'Strict' },
  );
  for (;;) {
    const { status } = await client.get(CUSTOM_RESOURCE_DEFINITIONS, {
      name: 'counts.demo.mark8s.io',
    });
    const established = status?.conditions?.find(({ type }) => type === 'Established');
    if (established?.status === 'True') break;
    await sleep(50);
  }
});

after(() => controlPlane.close());

function fromFile(path: string): unknown {
  return parse(readFileSync(join(root, path), 'utf8'));
}

/** Returns a Count with any spec, valid or not. */
function count(name: string, spec: Record<string, unknown>): Draft<Count> {
  const metadata = { name, namespace: 'default' };
  return { apiVersion: 'demo.mark8s.io/v1', kind: 'Count', metadata, spec: spec as never };
}

test('the sample is stored unchanged', async () => {
  const sample = fromFile('examples/01-count/count.yaml') as Draft<Count>;
  const metadata = { ...sample.metadata, namespace: 'default' };
  const stored = await controlPlane.client.create(
    COUNTS,
    { ...sample, metadata },
    { fieldValidation: 'Strict' },
  );
  assert.deepEqual(stored.spec, { name: 'nginx', count: 3 });
});

test('count defaults to one Pod', async () => {
  const stored = await controlPlane.client.create(COUNTS, count('one', { name: 'nginx' }));
  assert.equal(stored.spec.count, 1);
});

test('0 and 1000 Pods are accepted', async () => {
  for (const number of [0, 1000]) {
    const draft = count(`of-${number}`, { name: 'nginx', count: number });
    const stored = await controlPlane.client.create(COUNTS, draft);
    assert.equal(stored.spec.count, number);
  }
});

test('invalid values are rejected with the name of the field', async () => {
  const refusals: [Record<string, unknown>, RegExp][] = [
    [{ name: 'nginx', count: -1 }, /spec\.count: Invalid value: -1: .*greater than or equal to 0/],
    [
      { name: 'nginx', count: 1001 },
      /spec\.count: Invalid value: 1001: .*less than or equal to 1000/,
    ],
    [
      { name: 'nginx', count: '3' },
      /spec\.count: Invalid value: "string": .*must be of type integer/,
    ],
    [
      { name: 'nginx', count: 1.5 },
      // The second form is that of servers before Kubernetes 1.36.
      /spec\.count: Invalid value: ("float64": .*must be of type int32|"number": .*must be of type integer)/,
    ],
    [{ name: '', count: 1 }, /spec\.name: Invalid value: "": .*at least 1 chars long/],
    [{ name: 'two words' }, /spec\.name: Invalid value: "two words": .*should match/],
    [{ count: 1 }, /spec\.name: Required value/],
  ];
  for (const [spec, message] of refusals) {
    await assert.rejects(controlPlane.client.create(COUNTS, count('invalid', spec)), {
      kind: 'invalid',
      message,
    });
  }
});

test('an unknown field is rejected in strict mode and dropped otherwise', async () => {
  const draft = count('unknown-field', { name: 'nginx', replicas: 3 });
  await assert.rejects(controlPlane.client.create(COUNTS, draft, { fieldValidation: 'Strict' }), {
    kind: 'badRequest',
    message: /unknown field "spec\.replicas"/,
  });
  const stored = await controlPlane.client.create(COUNTS, draft);
  assert.deepEqual(stored.spec, { name: 'nginx', count: 1 });
});

test('the status changes through its subresource only', async () => {
  const { client } = controlPlane;
  const at = { namespace: 'default', name: 'with-status' };
  const created = await client.create(COUNTS, {
    ...count(at.name, { name: 'nginx' }),
    status: { healthy: true },
  });
  assert.equal(created.status, undefined);
  const patch = { type: 'merge', body: { status: { healthy: true, readyReplicas: 1 } } } as const;
  const patched = await client.patch(COUNTS, at, patch, { subresource: 'status' });
  assert.deepEqual(patched.status, { healthy: true, readyReplicas: 1 });
});

test('scaling changes spec.count only', async () => {
  const { client } = controlPlane;
  const at = { namespace: 'default', name: 'scaled' };
  await client.create(COUNTS, count(at.name, { name: 'nginx', count: 3 }));
  const scale = (replicas: number) => ({ type: 'merge', body: { spec: { replicas } } }) as const;
  await client.patch<KubernetesObject>(COUNTS, at, scale(5), { subresource: 'scale' });
  assert.deepEqual((await client.get(COUNTS, at)).spec, { name: 'nginx', count: 5 });
  await assert.rejects(
    client.patch<KubernetesObject>(COUNTS, at, scale(5000), { subresource: 'scale' }),
    {
      kind: 'invalid',
      message: /spec\.count: Invalid value: 5000/,
    },
  );
});
