import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { collectProcessMetrics } from '../../../src/metrics/process-metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';

function processRegistry() {
  const registry = createRegistry();
  collectProcessMetrics(registry);
  return registry;
}

test('process metrics are exposed in the text format', async () => {
  const { contentType, text } = await expose(processRegistry());
  assert.match(contentType, /^text\/plain; version=0\.0\.4/);
  assert.match(text, /^process_resident_memory_bytes \d/m);
  assert.match(text, /^nodejs_version_info\{/m);
});

test('two registries are independent', () => {
  processRegistry();
  assert.doesNotThrow(() => processRegistry());
});

test('the heap limit is exposed beside the heap in use', async () => {
  const { text } = await expose(processRegistry());
  const sample = (name: string) =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  assert.equal(sample('crd_controller_heap_limit_bytes'), getHeapStatistics().heap_size_limit);
  assert.ok(sample('nodejs_heap_size_used_bytes') < sample('crd_controller_heap_limit_bytes'));
});

test('the lag of the event loop is the delay of timers, without their interval', async () => {
  const registry = processRegistry();
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
