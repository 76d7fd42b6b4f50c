import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { customMetrics } from '../../../src/metrics/custom-metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';

const help = 'A metric of a test';

describe('Custom metrics', () => {
  it('are exposed with their labels', async () => {
    const registry = createRegistry();
    const metrics = customMetrics(registry);
    const runs = metrics.counter({ name: 'backup_runs_total', help, labels: ['result'] });
    runs.inc({ result: 'ok' });
    runs.add(2, { result: 'ok' });
    metrics.counter({ name: 'backup_starts_total', help }).inc();
    const age = metrics.gauge({ name: 'backup_age_seconds', help, labels: ['name'] });
    age.set(5, { name: 'a' });
    age.set(6, { name: 'b' });
    age.remove({ name: 'b' });
    const buckets = [1, 10];
    metrics.histogram({ name: 'backup_size_bytes', help, buckets }).observe(5);
    const { text } = await expose(registry);
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    assert.deepEqual(lines, [
      'backup_runs_total{result="ok"} 3',
      'backup_starts_total 1',
      'backup_age_seconds{name="a"} 5',
      'backup_size_bytes_bucket{le="1"} 0',
      'backup_size_bytes_bucket{le="10"} 1',
      'backup_size_bytes_bucket{le="+Inf"} 1',
      'backup_size_bytes_sum 5',
      'backup_size_bytes_count 1',
    ]);
  });

  it('are the same if they are requested again, and rejected with another type or labels', async () => {
    const registry = createRegistry();
    const metrics = customMetrics(registry);
    const options = { name: 'backup_runs_total', help };
    metrics.counter(options).inc();
    metrics.counter(options).inc();
    assert.match((await expose(registry)).text, /^backup_runs_total 2$/m);
    assert.throws(() => metrics.counter({ ...options, labels: ['a'] }), /exists as a counter/);
    metrics.gauge({ name: 'backup_age_seconds', help });
    assert.throws(
      () => metrics.histogram({ name: 'backup_age_seconds', help }),
      /exists as a gauge/,
    );
  });

  it('are rejected if their name is invalid or that of another library, also without a registry', () => {
    for (const [name, message] of [
      ['Backup_runs_total', /lower-case words/],
      ['runs', /lower-case words/],
      ['workqueue_runs_total', /must not start with workqueue_/],
      ['process_runs_total', /must not start with process_/],
      ['backup_runs', /must end with _total/],
    ] as const) {
      assert.throws(() => customMetrics().counter({ name, help }), message, name);
    }
    const gauge = { name: 'backup_runs_total', help };
    assert.throws(() => customMetrics().gauge(gauge), /must not end with _total/);
    customMetrics().counter(gauge).inc();
  });
});
