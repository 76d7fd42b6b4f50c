import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isReadyAt } from '../../../../src/api/readiness.ts';
import {
  buildCountStatus,
  IMAGE,
  planPods,
  podProblem,
} from '../../../../src/controllers/count/pods.ts';
import type { Pod } from '../../../../src/api/builtin.ts';
import type { Count, CountStatus } from '../../../../src/api/generated/count.ts';
import { aCount, aPodOf } from '../../../support/objects.ts';

function planOf(count: Count, pods: readonly Pod[]) {
  const plan = planPods(count, pods);
  return { create: plan.create, delete: plan.delete.map((pod) => pod.metadata.name) };
}

describe('The plan for the Pods of a Count', () => {
  it('compares the image that was asked for, and not the one that admission set', () => {
    const count = aCount({ spec: { count: 1, name: 'nginx:2' } });
    const rewritten = (asked: string) => {
      const pod = aPodOf(count, 0, { image: 'registry.local/nginx' });
      return { ...pod, metadata: { ...pod.metadata, annotations: { [IMAGE]: asked } } };
    };
    assert.deepEqual(planOf(count, [rewritten('nginx:2')]), { create: [], delete: [] });
    assert.deepEqual(planOf(count, [rewritten('nginx:1')]).delete, ['test-count-0']);
  });

  it('creates every ordinal when there are none', () => {
    assert.deepEqual(planOf(aCount(), []), { create: [0, 1, 2], delete: [] });
  });

  it('is empty in the desired state', () => {
    const count = aCount();
    const pods = [0, 1, 2].map((ordinal) => aPodOf(count, ordinal));
    assert.deepEqual(planOf(count, pods), { create: [], delete: [] });
  });

  it('creates only what is missing, lowest ordinal first', () => {
    const count = aCount({ spec: { count: 4 } });
    assert.deepEqual(planOf(count, [aPodOf(count, 1)]).create, [0, 2, 3]);
  });

  it('deletes Pods beyond the count, highest ordinal first', () => {
    const count = aCount({ spec: { count: 2 } });
    const pods = [0, 1, 2, 3, 10].map((ordinal) => aPodOf(count, ordinal));
    assert.deepEqual(planOf(count, pods).delete, ['test-count-10', 'test-count-3', 'test-count-2']);
  });

  it('deletes everything at count 0', () => {
    const count = aCount({ spec: { count: 0 } });
    assert.deepEqual(planOf(count, [aPodOf(count, 0)]), { create: [], delete: ['test-count-0'] });
  });

  it('deletes owned Pods with names that a Count does not use', () => {
    const count = aCount({ spec: { count: 1 } });
    const names = ['test-count-01', 'test-count-x', 'other-0', 'test-count-1e0', 'next-count-0'];
    const others = names.map((name) => aPodOf(count, 0, { name }));
    const plan = planOf(count, [aPodOf(count, 0), ...others]);
    assert.deepEqual(plan.delete.toSorted(), names.toSorted());
  });

  it('creates no Pod with the name of a terminating one', () => {
    const count = aCount();
    const pods = [0, 1, 2].map((ordinal) => aPodOf(count, ordinal, { deleting: ordinal === 1 }));
    assert.deepEqual(planOf(count, pods), { create: [], delete: [] });
  });

  it('does not delete a terminating Pod again', () => {
    const count = aCount({ spec: { count: 0 } });
    assert.deepEqual(planOf(count, [aPodOf(count, 0, { deleting: true })]).delete, []);
  });

  for (const phase of ['Succeeded', 'Failed'] as const) {
    it(`deletes a Pod whose phase is ${phase}, to replace it`, () => {
      const count = aCount({ spec: { count: 1 } });
      const plan = planOf(count, [aPodOf(count, 0, { phase, ready: false })]);
      assert.deepEqual(plan, { create: [], delete: ['test-count-0'] });
    });
  }

  it('replaces Pods with an outdated image one at a time, highest ordinal first', () => {
    const count = aCount({ spec: { name: 'nginx:2' } });
    const outdated = [0, 1, 2].map((ordinal) => aPodOf(count, ordinal, { image: 'nginx:1' }));
    assert.deepEqual(planOf(count, outdated).delete, ['test-count-2']);
    const next = [outdated[0]!, outdated[1]!, aPodOf(count, 2)];
    assert.deepEqual(planOf(count, next).delete, ['test-count-1']);
  });

  it('replaces no ready Pod with an outdated image while a Pod is missing or not ready', () => {
    const count = aCount({ spec: { name: 'nginx:2' } });
    const outdated = [0, 1].map((ordinal) => aPodOf(count, ordinal, { image: 'nginx:1' }));
    assert.deepEqual(planOf(count, outdated), { create: [2], delete: [] });
    const broken = [...outdated, aPodOf(count, 2, { ready: false })];
    assert.deepEqual(planOf(count, broken), { create: [], delete: [] });
  });

  it('deletes Pods with an outdated image that are not ready at once', () => {
    const count = aCount({ spec: { name: 'nginx:1' } });
    const pods = [
      aPodOf(count, 0),
      aPodOf(count, 1, { image: 'typo', ready: false }),
      aPodOf(count, 2, { image: 'typo', ready: false }),
    ];
    assert.deepEqual(planOf(count, pods).delete, ['test-count-2', 'test-count-1']);
  });

  it('deletes a finished Pod with an outdated image once', () => {
    const count = aCount({ spec: { count: 1, name: 'nginx:2' } });
    const pods = [aPodOf(count, 0, { image: 'nginx:1', phase: 'Failed', ready: false })];
    assert.deepEqual(planOf(count, pods).delete, ['test-count-0']);
  });

  it('deletes owned Pods of other names in a fixed order, before those with ordinals', () => {
    const count = aCount({ spec: { count: 0 } });
    const names = ['test-count-b', 'test-count-c', 'test-count-a'];
    const pods = [aPodOf(count, 0), ...names.map((name) => aPodOf(count, 0, { name }))];
    const expected = ['test-count-c', 'test-count-b', 'test-count-a', 'test-count-0'];
    assert.deepEqual(planOf(count, pods).delete, expected);
    assert.deepEqual(planOf(count, pods.toReversed()).delete, expected);
    for (const ordinals of [
      [9, 10],
      [10, 9],
    ]) {
      const two = ordinals.map((ordinal) => aPodOf(count, ordinal));
      assert.deepEqual(planOf(count, two).delete, ['test-count-10', 'test-count-9']);
    }
    const ordered = [2, 0, 3, 1].map((ordinal) => aPodOf(count, ordinal));
    const highestFirst = [3, 2, 1, 0].map((ordinal) => `test-count-${ordinal}`);
    assert.deepEqual(planOf(count, ordered).delete, highestFirst);
  });
});

describe('The problem of a Count that cannot have its Pods', () => {
  it('is undefined at the bounds of spec.count', () => {
    for (const count of [0, 1, 1000]) {
      assert.equal(podProblem(aCount({ spec: { count } })), undefined);
    }
  });

  for (const [what, spec] of [
    ['a negative count', { count: -1 }],
    ['more Pods than a Count may have', { count: 1001 }],
    ['a fraction', { count: 1.5 }],
    ['no image', { name: '' }],
  ] as const) {
    it(`is InvalidSpec with ${what}`, () => {
      assert.equal(podProblem(aCount({ spec }))?.reason, 'InvalidSpec');
    });
  }

  it('is NameTooLong if the name of the last Pod would have more than 253 characters', () => {
    const ofLength = (length: number, count: number) =>
      podProblem(aCount({ name: 'a'.repeat(length), spec: { count } }));
    // The ordinals of ten Pods have one digit.
    assert.equal(ofLength(251, 10), undefined);
    assert.equal(ofLength(251, 11)?.reason, 'NameTooLong');
    assert.equal(ofLength(250, 11), undefined);
    assert.equal(ofLength(252, 1)?.reason, 'NameTooLong');
    assert.equal(ofLength(251, 0), undefined);
  });

  it('has a message that shortens the name', () => {
    const { message = '' } =
      podProblem(aCount({ name: 'a'.repeat(253), spec: { count: 1 } })) ?? {};
    assert.ok(message.length < 200, message);
    assert.match(message, /255/);
  });
});

const now = Date.UTC(2026, 0, 1);

function conditionsOf(status: CountStatus): Record<string, string> {
  return Object.fromEntries(
    (status.conditions ?? []).map(({ type, status: value, reason }) => [
      type,
      `${value} ${reason}`,
    ]),
  );
}

function statusOf(count: Count, pods: readonly Pod[]): CountStatus {
  return buildCountStatus(count, pods, undefined, now);
}

describe('The status of a Count', () => {
  it('is healthy and ready when exactly the desired Pods are ready', () => {
    const count = aCount({ spec: { count: 2 } });
    const status = statusOf(count, [aPodOf(count, 0), aPodOf(count, 1)]);
    assert.equal(status.healthy, true);
    assert.equal(status.replicas, 2);
    assert.equal(status.readyReplicas, 2);
    assert.equal(status.observedGeneration, 1);
    assert.deepEqual(conditionsOf(status), { Ready: 'True PodsReady' });
    assert.equal(status.conditions?.[0]?.message, '2 of 2 Pods are ready');
  });

  it('is reconciling while Pods are missing or not ready', () => {
    const count = aCount({ spec: { count: 2 } });
    const status = statusOf(count, [aPodOf(count, 0, { ready: false })]);
    assert.equal(status.healthy, false);
    assert.deepEqual([status.replicas, status.readyReplicas], [1, 0]);
    assert.deepEqual(conditionsOf(status), {
      Ready: 'False PodsNotReady',
      Reconciling: 'True Progressing',
    });
  });

  it('counts neither finished nor terminating Pods', () => {
    const count = aCount({ spec: { count: 1 } });
    const status = statusOf(count, [
      aPodOf(count, 0),
      aPodOf(count, 1, { deleting: true }),
      aPodOf(count, 2, { phase: 'Failed' }),
    ]);
    assert.deepEqual([status.replicas, status.readyReplicas, status.healthy], [1, 1, true]);
  });

  it('counts only Pods that its selector matches', () => {
    const count = aCount({ spec: { count: 1 } });
    const pod = aPodOf(count, 0);
    const unlabelled = { ...pod, metadata: { ...pod.metadata, labels: { team: 'a' } } };
    const status = statusOf(count, [unlabelled]);
    assert.deepEqual([status.replicas, status.readyReplicas, status.healthy], [0, 0, false]);
  });

  it('is not healthy with one ready Pod too many', () => {
    const count = aCount({ spec: { count: 1 } });
    assert.equal(statusOf(count, [aPodOf(count, 0), aPodOf(count, 1)]).healthy, false);
  });

  it('is healthy but not Ready while ready Pods run another image', () => {
    const count = aCount({ spec: { count: 1, name: 'nginx:2' } });
    const status = statusOf(count, [aPodOf(count, 0, { image: 'nginx:1' })]);
    assert.equal(status.healthy, true);
    assert.equal(conditionsOf(status)['Ready'], 'False PodsNotReady');
  });

  it('is stalled by a failure that only the user can resolve', () => {
    const count = aCount({ spec: { count: 1 } });
    const obstacle = { reason: 'ErrResourceExists', message: 'taken', stalled: true };
    const stalled = buildCountStatus(count, [], obstacle, now);
    assert.deepEqual(conditionsOf(stalled), {
      Ready: 'False ErrResourceExists',
      Stalled: 'True ErrResourceExists',
    });
    const freed = statusOf({ ...count, status: stalled }, [aPodOf(count, 0)]);
    assert.deepEqual(conditionsOf(freed), { Ready: 'True PodsReady' });
  });

  it('is reconciling after a failure that a retry may resolve', () => {
    const count = aCount({ spec: { count: 1 } });
    const obstacle = { reason: 'FailedCreate', message: 'quota', stalled: false };
    assert.deepEqual(conditionsOf(buildCountStatus(count, [], obstacle, now)), {
      Ready: 'False FailedCreate',
      Reconciling: 'True Progressing',
    });
  });

  it('is equal when nothing changed', () => {
    const count = aCount({ spec: { count: 1 } });
    const pods = [aPodOf(count, 0)];
    const status = statusOf(count, pods);
    assert.deepEqual(buildCountStatus({ ...count, status }, pods, undefined, now + 60_000), status);
  });

  it('changes lastTransitionTime only when the status of the condition changes', () => {
    const count = aCount({ spec: { count: 1 } });
    const first = buildCountStatus(count, [], undefined, now);
    const second = buildCountStatus(
      { ...count, status: first },
      [aPodOf(count, 0)],
      undefined,
      now + 5000,
    );
    assert.equal(first.conditions?.[0]?.lastTransitionTime, '2026-01-01T00:00:00Z');
    assert.equal(second.conditions?.[0]?.lastTransitionTime, '2026-01-01T00:00:05Z');
  });

  it('has a selector that is a valid label value for a long name', () => {
    const name = 'n'.repeat(100);
    const { selector = '' } = statusOf(aCount({ name }), []);
    const value = /instance=([^,]+)/.exec(selector)?.[1] ?? '';
    assert.equal(value.length, 63);
    assert.notEqual(selector, statusOf(aCount({ name: `${name}x` }), []).selector);
  });

  it('is ready only for the generation that it observed', () => {
    const count = aCount({ spec: { count: 0 } });
    const status = statusOf(count, []);
    assert.equal(isReadyAt(status.conditions, 1), true);
    assert.equal(isReadyAt(status.conditions, 2), false);
    assert.equal(isReadyAt(undefined, 1), false);
  });
});
