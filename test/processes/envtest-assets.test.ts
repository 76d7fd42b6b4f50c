import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { crdController, Program } from '../support/program.ts';

test('envtest-assets writes programs for KUBEBUILDER_ASSETS, which SIGTERM ends with exit code 0', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'crd-controller-assets-'));
  context.after(() => rm(folder, { recursive: true }));
  const { stdout, code } = await crdController(['envtest-assets', folder]).ended();
  assert.deepEqual([stdout, code], [`${folder}\n`, 0]);
  const help = await new Program(join(folder, 'kube-apiserver'), ['--help'], {}).ended();
  assert.equal(help.code, 0);
  // A test environment looks for the flag that was removed.
  assert.match(help.stdout, /^\s*--secure-port\b/m);
  assert.doesNotMatch(help.stdout, /^\s*--insecure-port\b/m);
  const args = [
    `--cert-dir=${join(folder, 'certs')}`,
    '--bind-address=127.0.0.1',
    '--secure-port=0',
  ];
  const server = new Program(join(folder, 'kube-apiserver'), args, {});
  context.after(() => server.child.kill('SIGKILL'));
  await server.printed(/serving at https:/);
  server.child.kill('SIGTERM');
  assert.equal((await server.ended()).code, 0);
});
