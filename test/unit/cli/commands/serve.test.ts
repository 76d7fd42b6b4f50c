import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportLine } from '../../../../src/cli/commands/serve.ts';

test('the export line can be pasted into a shell, whatever the path', () => {
  assert.equal(exportLine('/tmp/a-1/kubeconfig'), 'export KUBECONFIG=/tmp/a-1/kubeconfig');
  assert.equal(exportLine('/tmp/a b/$x'), "export KUBECONFIG='/tmp/a b/$x'");
  assert.equal(exportLine("/it's"), String.raw`export KUBECONFIG='/it'\''s'`);
});
