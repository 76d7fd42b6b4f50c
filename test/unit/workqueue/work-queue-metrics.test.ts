import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { workqueueMetrics } from '../../../src/metrics/workqueue-metrics.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { WorkQueue } from '../../../src/workqueue/work-queue.ts';

/** All metrics of a queue, durations in microseconds. */
interface Numbers {
  readonly depth: number;
  readonly adds: number;
  readonly retries: number;
  /** Number of taken keys, and their total time ready. */
  readonly queued: readonly [count: number, microseconds: number];
  /** Number of finished keys, and their total time in flight. */
  readonly worked: readonly [count: number, microseconds: number];
  readonly unfinished: number;
  readonly longest: number;
}

const NOTHING: Numbers = {
  depth: 0,
  adds: 0,
  retries: 0,
  queued: [0, 0],
  worked: [0, 0],
  unfinished: 0,
  longest: 0,
};

function newQueue() {
  const clock = new FakeClock();
  const registry = createRegistry();
  const queue = new WorkQueue<string>(
    { name: 'test', clock },
    { metrics: workqueueMetrics(registry) },
  );
  const numbers = async (): Promise<Numbers> => {
    const { text } = await expose(registry);
    const value = (series: string) => {
      const start = `workqueue_${series}{name="test",controller="test"} `;
      const line = text.split('\n').find((line) => line.startsWith(start));
      return Number(line?.slice(start.length));
    };
    const microseconds = (series: string) => Math.round(value(series) * 1e6);
    return {
      depth: value('depth'),
      adds: value('adds_total'),
      retries: value('retries_total'),
      queued: [value('queue_duration_seconds_count'), microseconds('queue_duration_seconds_sum')],
      worked: [value('work_duration_seconds_count'), microseconds('work_duration_seconds_sum')],
      unfinished: microseconds('unfinished_work_seconds'),
      longest: microseconds('longest_running_processor_seconds'),
    };
  };
  let expected = NOTHING;
  /** Returns the metrics that have changed. */
  const shows = async (step: string, changed: Partial<Numbers>) => {
    expected = { ...expected, ...changed };
    assert.deepEqual(await numbers(), expected, step);
  };
  return { clock, queue, shows };
}

// upstream: 79
test('reports correct values at every step of a key', async () => {
  const { clock, queue, shows } = newQueue();
  await shows('before anything', {});

  queue.add('foo');
  await shows('added', { depth: 1, adds: 1 });
  await clock.advance(0.05);
  await shows('waiting', {});

  queue.tryTake();
  await shows('handed out after 50 µs', { depth: 0, queued: [1, 50] });

  queue.add('foo');
  await shows('added while in flight: it is not ready, but it will run', { adds: 2 });
  queue.add('foo');
  await shows('added once more: that is the same run', {});
  await clock.advance(0.025);
  await shows('in flight for 25 µs', { unfinished: 25, longest: 25 });

  queue.done('foo');
  await shows('done, and ready again', {
    depth: 1,
    worked: [1, 25],
    unfinished: 0,
    longest: 0,
  });

  await clock.advance(0.01);
  queue.tryTake();
  // Ready since its addition, as client-go counts it, including its own first sync.
  await shows('handed out again', { depth: 0, queued: [2, 85] });
  queue.add('bar');
  await clock.advance(0.02);
  queue.tryTake();
  await shows('a second key handed out', {
    adds: 3,
    queued: [3, 105],
    unfinished: 20,
    longest: 20,
  });
  await clock.advance(0.03);
  await shows('two in flight: the sum of their ages, and the greater one', {
    unfinished: 80,
    longest: 50,
  });
  queue.done('foo');
  await shows('the older one done', { worked: [2, 75], unfinished: 30, longest: 30 });
  queue.done('bar');
  await shows('both done', { worked: [3, 105], unfinished: 0, longest: 0 });
});

// upstream: 79
test('counts a delay as a retry, and a delayed key as ready when it is due', async () => {
  const { clock, queue, shows } = newQueue();
  queue.add('foo', { afterMs: 10 });
  await shows('delayed', { retries: 1 });
  queue.addRateLimited('bar');
  await shows('failed', { retries: 2 });
  await clock.advance(5);
  await shows('the failed one is ready', { adds: 1, depth: 1 });
  await clock.advance(5);
  await shows('the delayed one too', { adds: 2, depth: 2 });
  queue.add('foo', { afterMs: 10 });
  await shows('a later addition of a ready key is a retry that changes nothing', { retries: 3 });
  queue.tryTake();
  await shows('ready for 5 ms', { depth: 1, queued: [1, 5000] });
});

// upstream: 79a
test('drops queued keys from the metrics at shutdown and keeps keys in flight', async () => {
  const { clock, queue, shows } = newQueue();
  queue.add('foo');
  queue.add('bar');
  queue.tryTake();
  queue.shutDown();
  queue.add('late');
  await shows('shut down', { adds: 2, depth: 0, queued: [1, 0] });
  await clock.advance(1);
  await shows('still in flight', { unfinished: 1000, longest: 1000 });
  queue.done('foo');
  await shows('done', { worked: [1, 1000], unfinished: 0, longest: 0 });
});
