import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Watched } from '../../../../src/cli/top/watched.ts';
import { lookOf } from './looks.ts';

const adds = (count: number) => [
  `workqueue_adds_total{controller="count"} ${count}`,
  `process_cpu_seconds_total ${count / 100}`,
  'controller_runtime_max_concurrent_reconciles{controller="count"} 2',
  'nodejs_eventloop_lag_p99_seconds 0.012',
];

describe('a daemon that is watched', () => {
  it('shows rates since its start at first, then of the last minute', () => {
    const watched = new Watched('here');
    watched.saw(lookOf({ metrics: adds(120) }));
    const first = watched.view(0).daemon;
    assert.equal(first?.windowMs, undefined);
    assert.equal(first?.queues[0]?.addsPerSecond, 2);
    assert.equal(first?.queues[0]?.limit, 2);
    assert.deepEqual([first?.cpu, first?.loopLagMs], [0.02, 12]);
    for (let second = 1; second <= 100; second++) {
      const atMs = 1000 * second;
      watched.saw(lookOf({ atMs, upMs: 60_000 + atMs, metrics: adds(120 + 5 * second) }));
    }
    const last = watched.view(100_000).daemon;
    assert.equal(last?.queues[0]?.addsPerSecond, 5);
    assert.equal(last?.windowMs, 60_000);
  });

  it('is missed when it does not answer, and said to be back', () => {
    const watched = new Watched('here');
    watched.missed('connection refused', 1000);
    watched.missed('connection refused', 3000);
    assert.deepEqual(watched.view(4000), {
      address: 'here',
      notice: { text: 'No response for 3s: connection refused', isTrouble: true },
    });
    watched.saw(lookOf({ atMs: 5000 }));
    assert.equal(watched.view(5000).notice, undefined, 'there was none before');
    watched.missed('no response within 5s', 7000);
    const { notice, daemon } = watched.view(8000);
    assert.match(
      notice?.text ?? '',
      /^No response for 1s: no response within 5s; showing the last values/,
    );
    assert.ok(daemon);
    watched.saw(lookOf({ atMs: 9000, upMs: 64_000 }));
    assert.deepEqual(watched.view(9000).notice, {
      text: 'The daemon responds again after 2s',
      isTrouble: false,
    });
    assert.equal(watched.view(19_000).notice, undefined);
  });

  it('that was started again has rates of its own', () => {
    const watched = new Watched('here');
    watched.saw(lookOf({ atMs: 0, metrics: adds(1000) }));
    watched.saw(lookOf({ atMs: 2000, upMs: 1000, metrics: adds(10) }));
    const { notice, daemon } = watched.view(2000);
    assert.equal(notice?.text, 'The daemon restarted');
    assert.equal(daemon?.windowMs, undefined);
    assert.equal(daemon?.queues[0]?.addsPerSecond, 10);
  });
});
