import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { crdController } from '../support/program.ts';

test('serve prints the export line; SIGTERM ends it with exit code 0 and removes its temporary kubeconfig', async (context) => {
  const program = crdController(['serve', '--no-cluster-controllers']);
  context.after(() => program.child.kill('SIGKILL'));
  await program.printed(/export KUBECONFIG=\S+\n/);
  const [, path = ''] = /export KUBECONFIG=(\S+)/.exec(program.stdout) ?? [];
  assert.ok(existsSync(path));
  program.child.kill('SIGTERM');
  const { code } = await program.ended();
  assert.equal(code, 0);
  assert.ok(!existsSync(path));
});
