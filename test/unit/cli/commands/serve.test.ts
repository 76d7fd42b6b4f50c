import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportLine } from '../../../../src/cli/commands/serve.ts';

test('quotes every path in the export line', () => {
  assert.equal(exportLine('/tmp/a-1/kubeconfig'), 'export KUBECONFIG=/tmp/a-1/kubeconfig');
  assert.equal(exportLine('/tmp/a b/$x'), "export KUBECONFIG='/tmp/a b/$x'");
  assert.equal(exportLine("/it's"), String.raw`export KUBECONFIG='/it'\''s'`);
});
