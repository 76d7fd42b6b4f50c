import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atMetrics } from '../../../src/metrics/at-metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';

test('counts due, missed and started Ats from zero on, with delays in seconds', async () => {
  const registry = createRegistry();
  const metrics = atMetrics(registry);
  const lines = async () => (await expose(registry)).text.split('\n');
  for (const name of ['due_total', 'missed_total', 'start_delay_seconds_count']) {
    assert.ok((await lines()).includes(`crd_controller_at_${name} 0`), name);
  }
  metrics.due();
  metrics.due();
  metrics.missed();
  metrics.started(61_500);
  // The creationTimestamp of a Pod has no fraction: it may seem to be early.
  metrics.started(-400);
  const after = await lines();
  for (const expected of [
    'crd_controller_at_due_total 2',
    'crd_controller_at_missed_total 1',
    'crd_controller_at_start_delay_seconds_sum 61.5',
    'crd_controller_at_start_delay_seconds_bucket{le="1"} 1',
    'crd_controller_at_start_delay_seconds_bucket{le="60"} 1',
    'crd_controller_at_start_delay_seconds_bucket{le="300"} 2',
  ]) {
    assert.ok(after.includes(expected), expected);
  }
});
