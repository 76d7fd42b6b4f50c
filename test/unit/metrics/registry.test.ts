import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { buildMetrics, createRegistry, expose, logMetrics } from '../../../src/metrics/registry.ts';

test('a registry is empty until something is registered', async () => {
  assert.equal((await expose(createRegistry())).text.trim(), '');
});

test('process metrics are exposed in the text format if they are enabled', async () => {
  const { contentType, text } = await expose(createRegistry({ processMetrics: true }));
  assert.match(contentType, /^text\/plain; version=0\.0\.4/);
  assert.match(text, /^process_resident_memory_bytes \d/m);
  assert.match(text, /^nodejs_version_info\{/m);
});

test('two registries are independent', () => {
  createRegistry({ processMetrics: true });
  assert.doesNotThrow(() => createRegistry({ processMetrics: true }));
});

test('the heap limit is exposed beside the heap in use', async () => {
  const { text } = await expose(createRegistry({ processMetrics: true }));
  const sample = (name: string) =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  assert.equal(sample('crd_controller_heap_limit_bytes'), getHeapStatistics().heap_size_limit);
  assert.ok(sample('nodejs_heap_size_used_bytes') < sample('crd_controller_heap_limit_bytes'));
});

test('the lag of the event loop is the delay of timers, without their interval', async () => {
  const registry = createRegistry({ processMetrics: true });
  const lagMs = async (statistic: string) => {
    const { text } = await expose(registry);
    const name = `nodejs_eventloop_lag_${statistic}_seconds`;
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]) * 1000;
  };
  // Node.js calls all its due timers in one go, and the one that measures before or after them; immediates follow.
  let longest = 0;
  for (let attempt = 0; attempt < 10 && longest <= 200; attempt++) {
    await sleep(150);
    await setImmediate();
    const end = performance.now() + 400;
    while (performance.now() < end);
    await setImmediate();
    await sleep(0);
    longest = await lagMs('max');
  }
  assert.ok(longest > 200, `${longest} ms after a blocked event loop`);
  // The machine may be busy, but not in each of these intervals.
  let shortest = Infinity;
  for (let attempt = 0; attempt < 100 && shortest > 50; attempt++) {
    await sleep(250);
    shortest = await lagMs('min');
  }
  assert.ok(shortest <= 50, `${shortest} ms in an idle event loop`);
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
