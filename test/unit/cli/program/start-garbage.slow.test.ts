import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getHeapStatistics } from 'node:v8';
import { collectStartGarbage } from '../../../../src/cli/program/start-garbage.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

/** Leaves about 32 MiB of garbage, and returns the size of the used heap. */
function litter(): number {
  Array.from({ length: 4096 }, () => Array.from({ length: 1024 }, () => 0));
  return getHeapStatistics().used_heap_size;
}

/** Returns the seconds after the start at which garbage is collected, for the utilization in each interval. */
async function collections(utilizations: readonly number[], maxHeapBytes = Infinity) {
  const clock = new FakeClock();
  const startMs = clock.monotonic();
  const seconds: number[] = [];
  let interval = 0;
  collectStartGarbage({
    clock,
    maxHeapBytes,
    utilization: () => utilizations[interval++] ?? 0,
    collect: () => void seconds.push((clock.monotonic() - startMs) / 1000),
  });
  await clock.advance(120_000);
  return seconds;
}

test('collects the garbage of the start', async () => {
  const clock = new FakeClock();
  const before = litter();
  collectStartGarbage({ clock, maxHeapBytes: Infinity, utilization: () => 0 });
  await clock.advance(10_000);
  assert.ok(getHeapStatistics().used_heap_size < before - 16 * 2 ** 20);
  assert.equal(Reflect.get(globalThis, 'gc'), undefined);
});

test('collects garbage once, when the program has been idle for ten seconds', async () => {
  assert.deepEqual(await collections([0.05, 0.05]), [10]);
  assert.deepEqual(await collections([0.9, 0.2, 0.05, 0.05]), [30]);
});

test('does not stop a program that has a large heap', async () => {
  assert.deepEqual(await collections([0], 1), []);
});

test('does nothing after it was cancelled', async () => {
  const clock = new FakeClock();
  const collect = () => assert.fail('collected');
  const utilizations = [0.9, 0];
  const cancel = collectStartGarbage({
    clock,
    utilization: () => utilizations.shift() ?? 0,
    collect,
  });
  await clock.advance(10_000);
  cancel();
  await clock.advance(60_000);
});
