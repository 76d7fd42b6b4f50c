import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IMAGE, planPods, podProblem } from '../../../../src/controllers/count/pods.ts';
import type { Pod } from '../../../../src/api/builtin.ts';
import type { Count } from '../../../../src/api/generated/count.ts';
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
