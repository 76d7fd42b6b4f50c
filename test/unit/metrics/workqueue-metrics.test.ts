import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { workqueueMetrics } from '../../../src/metrics/workqueue-metrics.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { WorkQueue } from '../../../src/workqueue/work-queue.ts';

function newQueue() {
  const clock = new FakeClock();
  const registry = createRegistry();
  const metrics = workqueueMetrics(registry);
  const queue = new WorkQueue<string>({ name: 'count', clock }, { metrics });
  const value = async (series: string) => {
    const { text } = await expose(registry);
    const start = `workqueue_${series}{name="count",controller="count"} `;
    return Number(
      text
        .split('\n')
        .find((line) => line.startsWith(start))
        ?.slice(start.length),
    );
  };
  return { clock, queue, value, registry };
}

const ALL = [
  'depth',
  'adds_total',
  'retries_total',
  'queue_duration_seconds_count',
  'queue_duration_seconds_sum',
  'work_duration_seconds_count',
  'work_duration_seconds_sum',
  'unfinished_work_seconds',
  'longest_running_processor_seconds',
];

test('exposes all series of a queue from zero on', async () => {
  const { value } = newQueue();
  for (const series of ALL) assert.equal(await value(series), 0, series);
});

test('measures keys while they wait and while they are in flight', async () => {
  const { clock, queue, value } = newQueue();
  queue.add('a');
  queue.add('a');
  queue.add('b');
  assert.equal(await value('depth'), 2);
  assert.equal(await value('adds_total'), 2);

  await clock.advance(50);
  queue.tryTake();
  assert.equal(await value('depth'), 1);
  assert.equal(await value('queue_duration_seconds_sum'), 0.05);
  assert.equal(await value('queue_duration_seconds_count'), 1);

  await clock.advance(1000);
  queue.tryTake();
  await clock.advance(2000);
  assert.equal(await value('unfinished_work_seconds'), 5);
  assert.equal(await value('longest_running_processor_seconds'), 3);

  queue.done('a');
  assert.equal(await value('work_duration_seconds_sum'), 3);
  assert.equal(await value('work_duration_seconds_count'), 1);
  assert.equal(await value('unfinished_work_seconds'), 2);
  queue.done('b');
  assert.equal(await value('longest_running_processor_seconds'), 0);
});

test('counts a delayed key as a retry at once and as an addition when it becomes ready', async () => {
  const { clock, queue, value } = newQueue();
  queue.add('a', { afterMs: 100 });
  assert.equal(await value('retries_total'), 1);
  assert.equal(await value('adds_total'), 0);
  assert.equal(await value('depth'), 0);
  await clock.advance(100);
  assert.equal(await value('adds_total'), 1);
  assert.equal(await value('depth'), 1);
});

test('reports a depth of zero after shutdown', async () => {
  const { queue, value } = newQueue();
  queue.add('a');
  queue.shutDown();
  assert.equal(await value('depth'), 0);
});
