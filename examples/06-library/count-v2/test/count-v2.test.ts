import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { HttpClient, runControllers } from 'crd-controller';
import type { ControllerKit } from 'crd-controller';
import { countController } from 'crd-controller/controllers';
import { CUSTOM_RESOURCE_DEFINITIONS, PODS } from 'crd-controller/kinds';
import type { CustomResourceDefinition } from 'crd-controller/kinds';
import { ApiServer, checkConversion, FakeClock } from 'crd-controller/testing';
import { parse } from 'yaml';
import { COUNTS as COUNTS_V2 } from '../generated/count-v2.ts';
import { COUNTS } from '../generated/count.ts';
import { webhooks } from '../webhooks.ts';

const SERVICE = 'https://count-program-webhook.count-program-system.svc:443';
const AT = { namespace: 'default', name: 'web' };

const read = (path: string) =>
  parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as CustomResourceDefinition;
const crd = read('../crds/counts.demo.mark8s.io.yaml');

test('version v1 is that of the controller', () => {
  const original = read('../../../../crds/counts.demo.mark8s.io.yaml');
  assert.deepEqual(crd.spec.versions[0], original.spec.versions[0]);
});

test('no conversion loses data', () => {
  checkConversion(fc, { crd, webhooks, lossless: true, numRuns: 30 });
});

test('the controller keeps the Pods of a Count that is written in v2', async (context) => {
  const clock = new FakeClock();
  const server = new ApiServer({ clock, webhooks: webhooks.functions(SERVICE, { clock }) });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd);
  const stop = new AbortController();
  const controllers = (kit: ControllerKit) => [countController(kit)];
  const running = runControllers({ client, clock, controllers }, stop.signal);
  context.after(async () => {
    stop.abort();
    await clock.advance(60_000);
    await running;
  });

  const apply = (spec: object, fieldManager: string) => {
    const body = { apiVersion: 'demo.mark8s.io/v2', kind: 'Count', metadata: AT, spec };
    return client.patch(COUNTS_V2, AT, { type: 'apply', body }, { fieldManager });
  };
  await apply({ image: 'nginx' }, 'user');
  await apply({ replicas: 2 }, 'autoscaler');
  await clock.advance(1000);
  assert.equal((await client.list(PODS)).items.length, 2);
  assert.deepEqual((await client.get(COUNTS, AT)).spec, { name: 'nginx', count: 2 });
  assert.equal((await client.get(COUNTS_V2, AT)).status?.replicas, 2);
  await assert.rejects(
    apply({ image: 'nginx', replicas: 3 }, 'user'),
    /conflict with "autoscaler"/,
  );
});
