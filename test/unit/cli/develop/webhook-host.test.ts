import assert from 'node:assert/strict';
import { test } from 'node:test';
import { webhookHost } from '../../../../src/cli/develop/webhook-host.ts';

for (const [context, server, host] of [
  ['k3d-dev', 'https://127.0.0.1:6443', 'host.k3d.internal'],
  ['minikube', 'https://127.0.0.1:6443', 'host.minikube.internal'],
  ['minikube', 'https://192.168.49.2:8443', 'host.minikube.internal'],
  ['other', 'https://localhost:6443', '127.0.0.1'],
  // The route to an unspecified address is that to this machine.
  ['k3d-remote', 'https://0.0.0.0:6443', '127.0.0.1'],
  ['other', 'https://[::]:6443', '[::1]'],
] as const) {
  test(`the API server of ${context} at ${server} reaches this machine as ${host}`, async () => {
    assert.equal(await webhookHost(context, new URL(server)), host);
  });
}
