import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job, Pod } from '../../../../src/api/builtin.ts';
import { timestamp } from '../../../../src/api/conditions.ts';
import {
  backoffAfter,
  jobDecision,
  NO_BACKOFF,
} from '../../../../src/cluster/workloads/job-decision.ts';
import type { JobPods } from '../../../../src/cluster/workloads/job-decision.ts';

const START_MS = Date.UTC(2026, 0, 1);

function jobOf(spec: object, condition?: string): Job {
  const conditions = condition === undefined ? [] : [{ type: condition, status: 'True' }];
  const status = { startTime: timestamp(START_MS), conditions };
  return { spec: { template: {}, ...spec }, status } as unknown as Job;
}

/** Returns the decision for a Job `seconds` after its start, whose last failed Pod ended at the start. */
function decide(
  seconds: number,
  spec: object,
  { active = 0, succeeded = 0, failed = 0, restarts = 0 } = {},
) {
  const job = jobOf(spec);
  const initRestarts = restarts > 1 ? 1 : 0;
  const pod = {
    metadata: { creationTimestamp: timestamp(START_MS) },
    status: {
      initContainerStatuses: [{ restartCount: initRestarts }],
      containerStatuses: [{ restartCount: restarts - initRestarts }],
    },
  };
  const pods = (count: number) => Array.from({ length: count }, () => pod as Pod);
  const { wanted, waitMs, ...ended } = jobDecision(
    job,
    {
      active: pods(active),
      succeeded,
      failed,
      succeededPods: pods(succeeded),
      backoff: { failures: failed, lastMs: START_MS },
    } as unknown as JobPods,
    START_MS + seconds * 1000,
  );
  const reason = ended.succeeded?.reason ?? ended.failed?.reason;
  return [wanted, waitMs === undefined ? undefined : waitMs / 1000, reason];
}

test('a Job waits longer after each failure: from 10 s to 10 minutes', () => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 8].map(
    (failed) => decide(1, { backoffLimit: 10 }, { failed })[1],
  );
  assert.deepEqual(waits, [9, 19, 39, 79, 159, 319, 599, 599]);
  assert.deepEqual(decide(10, { backoffLimit: 10 }, { failed: 1 }), [1, undefined, undefined]);
});

/** Returns a Pod whose container ended some seconds after the start. */
function endedAt(seconds: number): Pod {
  const state = { terminated: { finishedAt: timestamp(START_MS + seconds * 1000) } };
  return { metadata: {}, status: { containerStatuses: [{ state }] } } as Pod;
}

test('the failures of a Job since its last success delay new Pods', () => {
  const backoff = (
    succeeded: readonly number[],
    failed: readonly number[],
    before = NO_BACKOFF,
  ) => {
    const next = backoffAfter(before, succeeded.map(endedAt), failed.map(endedAt));
    return { failures: next.failures, lastS: (next.lastMs - START_MS) / 1000, next };
  };
  const { next: two, ...counted } = backoff([], [7, 5]);
  assert.deepEqual(counted, { failures: 2, lastS: 7 });
  for (const [succeeded, failed, failures, lastS] of [
    [[], [], 2, 7],
    [[], [9], 3, 9],
    [[9], [], 0, -Infinity],
    [[8, 3], [8, 9, 2], 1, 9],
  ] as const) {
    const { next: _, ...found } = backoff(succeeded, failed, two);
    assert.deepEqual(found, { failures, lastS }, JSON.stringify([succeeded, failed]));
  }
});

test('a Pod has ended with its last container, or when its deletion or its creation is all that is known', () => {
  const sidecar = { initContainers: [{ name: 's', restartPolicy: 'Always' }, { name: 'i' }] };
  const at = (seconds: number) => timestamp(START_MS + seconds * 1000);
  const ended = (name: string, seconds?: number) => ({
    name,
    state: seconds === undefined ? {} : { terminated: { finishedAt: at(seconds) } },
  });
  const unready = { conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: at(4) }] };
  const metadata = { creationTimestamp: at(1) };
  const deleted = { ...metadata, deletionTimestamp: at(40), deletionGracePeriodSeconds: 30 };
  for (const [pod, seconds] of [
    [{ status: { containerStatuses: [ended('a', 2), ended('b', 3)], ...unready } }, 3],
    [
      {
        spec: sidecar,
        status: {
          containerStatuses: [ended('a', 2)],
          initContainerStatuses: [ended('s', 6), ended('i', 9)],
        },
      },
      6,
    ],
    [{ status: { containerStatuses: [ended('a', 2), ended('b')], ...unready } }, 4],
    [{ metadata: deleted, status: unready }, 4],
    [{ metadata: deleted, status: {} }, 10],
    [{ status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at(4) }] } }, 1],
  ] as const) {
    const { lastMs } = backoffAfter(NO_BACKOFF, [], [{ metadata, ...pod } as unknown as Pod]);
    assert.equal((lastMs - START_MS) / 1000, seconds, JSON.stringify(pod));
  }
});

test('a Job that has succeeded or failed stays so', () => {
  const pods = { active: [], succeeded: 0, failed: 9, succeededPods: [], backoff: NO_BACKOFF };
  for (const [condition, verdict] of [
    ['SuccessCriteriaMet', 'succeeded'],
    ['FailureTarget', 'failed'],
  ] as const) {
    const decision = jobDecision(jobOf({}, condition), pods as unknown as JobPods, START_MS);
    assert.deepEqual([decision.wanted, Object.keys(decision).at(-1)], [0, verdict]);
  }
});

test('a Job fails after more failures than its limit, or as many restarts', () => {
  const onFailure = (backoffLimit?: number) => ({
    backoffLimit,
    template: { spec: { restartPolicy: 'OnFailure' } },
  });
  for (const [spec, pods, isFailed] of [
    [{}, { failed: 6 }, false],
    [{}, { failed: 7 }, true],
    [{ backoffLimit: 1 }, { failed: 1 }, false],
    [{ backoffLimit: 1 }, { failed: 2 }, true],
    [onFailure(), { active: 1, restarts: 5 }, false],
    [onFailure(), { active: 1, restarts: 6 }, true],
    [onFailure(0), { active: 1, restarts: 0 }, false],
    [onFailure(0), { active: 1, restarts: 1 }, true],
  ] as const) {
    const [, , reason] = decide(3600, spec, pods);
    assert.equal(reason, isFailed ? 'BackoffLimitExceeded' : undefined, JSON.stringify(spec));
  }
});

test('a Job ends at its deadline, unless it is suspended', () => {
  const spec = { activeDeadlineSeconds: 30 };
  assert.deepEqual(decide(29, spec, { active: 1 }), [1, 1, undefined]);
  assert.deepEqual(decide(30, spec, { active: 1 }), [0, undefined, 'DeadlineExceeded']);
  assert.deepEqual(decide(60, { ...spec, suspend: true }), [0, undefined, undefined]);
  assert.deepEqual(decide(25, spec, { failed: 1 }), [1, 5, undefined]);
  assert.equal(decide(5, spec, { failed: 2 })[1], 15, 'the earlier of backoff and deadline');
  assert.equal(decide(5, { activeDeadlineSeconds: 10 }, { failed: 2 })[1], 5);
});

test('a Job has as many Pods as it needs, at most its parallelism', () => {
  for (const [spec, pods, wanted, reason] of [
    [{}, {}, 1],
    [{ parallelism: 3 }, {}, 3],
    [{ parallelism: 3 }, { active: 2, succeeded: 1 }, 2],
    [{ parallelism: 3 }, { succeeded: 1 }, 0, 'CompletionsReached'],
    [{ parallelism: 3, completions: 5 }, { succeeded: 1 }, 3],
    [{ parallelism: 3, completions: 5 }, { succeeded: 3 }, 2],
    [{ parallelism: 3, completions: 5 }, { succeeded: 5 }, 0, 'CompletionsReached'],
    [{ completions: 0 }, {}, 0, 'CompletionsReached'],
  ] as const) {
    assert.deepEqual(
      decide(0, spec, pods),
      [wanted, undefined, reason],
      JSON.stringify([spec, pods]),
    );
  }
});
