import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isApiError } from '../../../../src/api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../../../src/api/builtin.ts';
import { ATS } from '../../../../src/api/generated/at.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { atWebhooks } from '../../../../src/controllers/at/webhooks.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { installWebhooks } from '../../../../src/webhook/install.ts';
import { crdOf } from '../../../support/test-cluster.ts';

const AT = { namespace: 'default', name: 'at' };

function at(spec: { schedule?: string; command?: string }, name = AT.name) {
  return {
    apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
    kind: 'At',
    metadata: { ...AT, name },
    spec: { schedule: '2026-01-01T00:00:00Z', command: 'echo YAY', ...spec },
  };
}

test('Ats that could not run are rejected, and past schedules cause a warning', async () => {
  const clock = new FakeClock(Date.UTC(2025, 11, 31));
  const server = new ApiServer({ clock });
  const warnings: string[] = [];
  const onWarning = (text: string) => warnings.push(text);
  const { handler } = server;
  const client = new HttpClient({ handler, server: 'https://test', clock, onWarning });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(ATS));
  const old = at({ command: 'echo "YAY' });
  await client.create(ATS, old);
  await installWebhooks(server, client, atWebhooks({ clock }), { clock });

  const rejected = async (body: ReturnType<typeof at>) => {
    const error = await client.create(ATS, body).catch((cause: unknown) => cause);
    assert.ok(isApiError(error, 'invalid'), String(error));
    return error.details?.causes?.map(({ field }) => field);
  };
  assert.deepEqual(await rejected(at({ command: "echo 'YAY" }, 'a')), ['spec.command']);
  assert.deepEqual(await rejected(at({}, 'a'.repeat(250))), ['metadata.name']);
  await client.create(ATS, at({}, 'a'.repeat(249)));
  await client.create(ATS, at({}, 'tomorrow'));
  assert.deepEqual(warnings, []);
  await client.create(ATS, at({ schedule: '2025-01-01T00:00:00Z' }, 'past'));
  assert.equal(warnings.length, 1);

  // An At from before the webhook can be changed, but not to another invalid spec.
  const change = (body: object) => client.patch(ATS, AT, { type: 'merge', body });
  await change({ metadata: { labels: { a: 'b' } } });
  await assert.rejects(change({ spec: { command: '"' } }));
  await change({ spec: { command: 'echo YAY' } });
});
