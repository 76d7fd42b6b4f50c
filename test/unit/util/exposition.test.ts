import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Exposition, observedSince, quantile } from '../../../src/util/exposition.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { workqueueMetrics } from '../../../src/metrics/workqueue-metrics.ts';

test('sums samples by name and labels', () => {
  const metrics = new Exposition(
    [
      '# HELP a b',
      'a{x="1",y="p"} 2',
      'a{x="2",y="q\\"\\n,}"} 3.5',
      'b 7 1700000000',
      'c +Inf',
      'this is no sample',
      '',
    ].join('\n'),
  );
  assert.deepEqual(
    [metrics.value('a'), metrics.value('a', { x: '2' }), metrics.value('a', { y: 'q"\n,}' })],
    [5.5, 3.5, 3.5],
  );
  assert.deepEqual([metrics.value('b'), metrics.value('c')], [7, Infinity]);
  assert.equal(metrics.value('a', { x: '3' }), undefined);
  assert.equal(metrics.value('this'), undefined);
});

test('estimates a quantile of the observations since an earlier scrape', async () => {
  const registry = createRegistry();
  const queue = workqueueMetrics(registry).queue('count', { length: 0, inFlightMs: () => [] });
  const buckets = async () =>
    new Exposition((await expose(registry)).text).buckets('workqueue_queue_duration_seconds', {
      controller: 'count',
    });
  const before = await buckets();
  assert.equal(quantile(before, 0.5), undefined);
  for (let at = 0; at < 100; at++) queue.taken(0.5);
  const middle = await buckets();
  assert.ok((quantile(middle, 0.99) ?? 1) <= 0.001);
  for (let at = 0; at < 10; at++) queue.taken(5000);
  const since = observedSince(middle, await buckets());
  assert.equal(quantile(since, 0.5), 5.5, 'half way between one second and ten');
  assert.deepEqual(observedSince(await buckets(), middle), middle, 'a counter that was reset');
});

test('uses the largest finite bound for observations above all buckets', () => {
  const buckets = new Map([
    [1, 0],
    [10, 0],
    [Infinity, 5],
  ]);
  assert.equal(quantile(buckets, 0.5), 10);
});
