import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FormFolder, RecordingServer, requestBy } from '../../../support/kubeconfig/bench.ts';
import type { Form } from '../../../support/kubeconfig/forms.ts';
import { ACCEPTED, ANONYMOUS, REFUSED } from '../../../support/kubeconfig/forms.ts';

test('accepts and refuses the kubeconfigs that kubectl does, with the same credentials', async (t) => {
  const server = await RecordingServer.start();
  const folder = await FormFolder.create(server.authority, server.ports);
  t.after(() => {
    folder.close();
    return server.close();
  });
  const differing: string[] = [];
  const check = async (form: Form, expected: string, timeoutMs: number) => {
    const sent = await requestBy(form, folder.write(form), folder, server, timeoutMs);
    if (sent !== expected) differing.push(`${form.name}: ${sent} instead of ${expected}`);
  };
  for (const form of [...ACCEPTED, ...ANONYMOUS])
    await check(form, form.sends ?? 'Bearer abc', 10_000);
  for (const form of REFUSED) await check(form, 'refused', 100);
  assert.deepEqual(differing, []);
});
