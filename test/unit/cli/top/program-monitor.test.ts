import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProgramMonitor } from '../../../../src/cli/top/program-monitor.ts';
import { snapshotOf } from './snapshots.ts';

const adds = (count: number) => [
  `workqueue_adds_total{controller="count"} ${count}`,
  `process_cpu_seconds_total ${count / 100}`,
  'controller_runtime_max_concurrent_reconciles{controller="count"} 2',
  'nodejs_eventloop_lag_p99_seconds 0.012',
];

describe('ProgramMonitor', () => {
  it('computes rates since the start first, then over the last minute', () => {
    const monitor = new ProgramMonitor('here');
    monitor.record(snapshotOf({ metrics: adds(120) }));
    const first = monitor.view(0).program;
    assert.equal(first?.windowMs, undefined);
    assert.equal(first?.queues[0]?.addsPerSecond, 2);
    assert.equal(first?.queues[0]?.limit, 2);
    assert.deepEqual([first?.cpu, first?.loopLagMs], [0.02, 12]);
    for (let second = 1; second <= 100; second++) {
      const atMs = 1000 * second;
      monitor.record(snapshotOf({ atMs, upMs: 60_000 + atMs, metrics: adds(120 + 5 * second) }));
    }
    const last = monitor.view(100_000).program;
    assert.equal(last?.queues[0]?.addsPerSecond, 5);
    assert.equal(last?.windowMs, 60_000);
  });

  it('reports a program that does not respond, and its return', () => {
    const monitor = new ProgramMonitor('here');
    monitor.recordFailure('connection refused', 1000);
    monitor.recordFailure('connection refused', 3000);
    assert.deepEqual(monitor.view(4000), {
      address: 'here',
      notice: { text: 'No response for 3s: connection refused', isError: true },
    });
    monitor.record(snapshotOf({ atMs: 5000 }));
    assert.equal(monitor.view(5000).notice, undefined, 'there was none before');
    monitor.recordFailure('no response within 5s', 7000);
    const { notice, program } = monitor.view(8000);
    assert.match(
      notice?.text ?? '',
      /^No response for 1s: no response within 5s; showing the last values/,
    );
    assert.ok(program);
    monitor.record(snapshotOf({ atMs: 9000, upMs: 64_000 }));
    assert.deepEqual(monitor.view(9000).notice, {
      text: 'The program responds again after 2s',
      isError: false,
    });
    assert.equal(monitor.view(19_000).notice, undefined);
  });

  it('restarts the rates if the program restarted', () => {
    const monitor = new ProgramMonitor('here');
    monitor.record(snapshotOf({ atMs: 0, metrics: adds(1000) }));
    monitor.record(snapshotOf({ atMs: 2000, upMs: 1000, metrics: adds(10) }));
    const { notice, program } = monitor.view(2000);
    assert.equal(notice?.text, 'The program restarted');
    assert.equal(program?.windowMs, undefined);
    assert.equal(program?.queues[0]?.addsPerSecond, 10);
  });
});
