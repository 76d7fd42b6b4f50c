import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildMetrics, createRegistry, expose, logMetrics } from '../../../src/metrics/registry.ts';

test('a registry is empty until something is registered', async () => {
  assert.equal((await expose(createRegistry())).text.trim(), '');
});

test('the build metric has labels for version, commit and Node.js version', async () => {
  const known = createRegistry();
  buildMetrics(known, { version: '1.2.3', revision: 'abc' });
  assert.ok(
    (await expose(known)).text.includes(
      `crd_controller_build_info{version="1.2.3",revision="abc",node_version="${process.version}"} 1\n`,
    ),
  );
  const unknown = createRegistry();
  buildMetrics(unknown, { version: '1.2.3' });
  assert.match((await expose(unknown)).text, /revision="unknown"/);
});

test('counts dropped log lines', async () => {
  const registry = createRegistry();
  let dropped = 0;
  logMetrics(registry, () => dropped);
  const shown = async () =>
    /^crd_controller_log_lines_dropped_total (\d+)$/m.exec((await expose(registry)).text)?.[1];
  assert.equal(await shown(), '0');
  dropped = 3;
  assert.equal(await shown(), '3');
  dropped = 5;
  assert.equal(await shown(), '5');
});
