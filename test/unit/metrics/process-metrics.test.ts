import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getHeapStatistics } from 'node:v8';
import { buildMetrics, logMetrics, processMetrics } from '../../../src/metrics/process-metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';

test('the heap in use stands beside what there may be', async () => {
  const registry = createRegistry();
  processMetrics(registry);
  const { text } = await expose(registry);
  const sample = (name: string) =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  assert.equal(sample('crd_controller_heap_limit_bytes'), getHeapStatistics().heap_size_limit);
  assert.ok(sample('nodejs_heap_size_used_bytes') < sample('crd_controller_heap_limit_bytes'));
});

test('the build says what runs: version, commit if it is known, Node.js', async () => {
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

test('counts the log lines that were dropped so far', async () => {
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
