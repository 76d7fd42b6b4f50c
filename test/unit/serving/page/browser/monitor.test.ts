import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Monitor, stepsOf } from '../../../../../src/serving/page/browser/monitor.ts';
import type { Snapshot } from '../../../../../src/serving/page/browser/monitor.ts';
import { Exposition } from '../../../../../src/util/exposition.ts';

/** A snapshot at a second, in which `ready` keys wait and `calls` succeeded since the start. */
function snapshotAt(second: number, ready = 0, calls = 0, failures = 0): Snapshot {
  return {
    atMs: 1000 * second,
    status: {
      version: 'v1',
      now: '',
      upMs: 1000 * second,
      informers: [],
      process: {
        residentBytes: 1,
        heapBytes: 1,
        heapLimitBytes: 1,
        cpuMs: 100 * second,
        loopActiveMs: 250 * second,
        loopIdleMs: 0,
      },
    },
    queues: {
      controllers: [
        {
          controller: 'count',
          ready: { count: ready, keys: [], oldestMs: 0 },
          delayed: { count: 0, keys: [] },
          processing: { count: 0, keys: [] },
          hotLoops: [],
          objects: undefined,
          failing: 0,
          syncs: 0,
          failures: 0,
        },
      ],
      busiest: [],
      slowest: [],
      hottest: [],
      attention: [],
    },
    history: [],
    metrics: new Exposition(`
rest_client_requests_total{code="200",method="GET"} ${calls}
rest_client_requests_total{code="500",method="GET"} ${failures}
controller_runtime_reconcile_total{controller="count"} ${calls}
`),
  };
}

describe('the monitor of the page', () => {
  it('computes rates over the window', () => {
    const monitor = new Monitor();
    assert.equal(monitor.overview(), undefined);
    for (let second = 0; second <= 120; second += 2) {
      monitor.record(snapshotAt(second, second, 10 * second, second));
    }
    const view = monitor.overview() ?? assert.fail();
    const [controller = assert.fail()] = view.controllers;
    assert.equal(controller.syncsPerSecond, 10);
    const [row = assert.fail()] = view.calls;
    assert.deepEqual([row.verb, row.perSecond, row.failuresPerSecond], ['GET', 11, 1]);
  });

  it('shows what happened between the samples that the program kept', () => {
    const sample = (atMs: number, syncs: number, failures: number) => {
      const { residentBytes } = snapshotAt(0).status.process;
      const times = { residentBytes, cpuMs: atMs / 10, loopActiveMs: atMs / 4 };
      return { atMs, isReady: true, notReady: 0, waiting: 0, syncs, failures, ...times };
    };
    const steps = stepsOf([sample(0, 0, 0), sample(10_000, 5, 2), sample(20_000, 5, 2)]);
    assert.deepEqual(
      steps.map(({ successes, failures, cpu, loop }) => [successes, failures, cpu, loop]),
      [
        [3, 2, 0.1, 0.25],
        [0, 0, 0.1, 0.25],
      ],
    );
  });

  it('starts again when the program has restarted', () => {
    const monitor = new Monitor();
    monitor.record(snapshotAt(100, 5, 1000));
    assert.equal(monitor.record({ ...snapshotAt(1, 1, 10), atMs: 102_000 }), true);
    const view = monitor.overview() ?? assert.fail();
    assert.equal(view.controllers[0]?.syncsPerSecond, 10);
  });
});
