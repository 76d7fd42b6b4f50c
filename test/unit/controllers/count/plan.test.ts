import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planPods } from '../../../../src/controllers/count/plan.ts';
import type { Pod } from '../../../../src/api/builtin.ts';
import type { Count } from '../../../../src/api/generated/count.ts';
import { aCount, aPodOf } from '../../../support/objects.ts';

function planOf(count: Count, pods: readonly Pod[]) {
  const plan = planPods(count, pods);
  return { create: plan.create, delete: plan.delete.map((pod) => pod.metadata.name) };
}

describe('the plan for the Pods of a Count', () => {
  it('creates every ordinal when there are none', () => {
    assert.deepEqual(planOf(aCount(), []), { create: [0, 1, 2], delete: [] });
  });

  it('is empty when the Pods are as wanted', () => {
    const count = aCount();
    const pods = [0, 1, 2].map((ordinal) => aPodOf(count, ordinal));
    assert.deepEqual(planOf(count, pods), { create: [], delete: [] });
  });

  it('creates only what is missing, lowest ordinal first', () => {
    const count = aCount({ spec: { count: 4 } });
    assert.deepEqual(planOf(count, [aPodOf(count, 1)]).create, [0, 2, 3]);
  });

  it('deletes what is beyond the count, highest ordinal first', () => {
    const count = aCount({ spec: { count: 2 } });
    const pods = [0, 1, 2, 3, 10].map((ordinal) => aPodOf(count, ordinal));
    assert.deepEqual(planOf(count, pods).delete, ['test-count-10', 'test-count-3', 'test-count-2']);
  });

  it('deletes everything at count 0', () => {
    const count = aCount({ spec: { count: 0 } });
    assert.deepEqual(planOf(count, [aPodOf(count, 0)]), { create: [], delete: ['test-count-0'] });
  });

  it('deletes owned Pods whose names it would not have given', () => {
    const count = aCount({ spec: { count: 1 } });
    const names = ['test-count-01', 'test-count-x', 'other-0', 'test-count-1e0', 'next-count-0'];
    const strangers = names.map((name) => aPodOf(count, 0, { name }));
    const plan = planOf(count, [aPodOf(count, 0), ...strangers]);
    assert.deepEqual(plan.delete.toSorted(), names.toSorted());
  });

  it('waits for a Pod that is going away before it takes its name again', () => {
    const count = aCount();
    const pods = [0, 1, 2].map((ordinal) => aPodOf(count, ordinal, { deleting: ordinal === 1 }));
    assert.deepEqual(planOf(count, pods), { create: [], delete: [] });
  });

  it('deletes a Pod that is already going away no second time', () => {
    const count = aCount({ spec: { count: 0 } });
    assert.deepEqual(planOf(count, [aPodOf(count, 0, { deleting: true })]).delete, []);
  });

  for (const phase of ['Succeeded', 'Failed']) {
    it(`deletes a Pod whose phase is ${phase}, to replace it`, () => {
      const count = aCount({ spec: { count: 1 } });
      const plan = planOf(count, [aPodOf(count, 0, { phase, ready: false })]);
      assert.deepEqual(plan, { create: [], delete: ['test-count-0'] });
    });
  }

  it('replaces the Pods of another image one at a time, highest ordinal first', () => {
    const count = aCount({ spec: { name: 'nginx:2' } });
    const outdated = [0, 1, 2].map((ordinal) => aPodOf(count, ordinal, { image: 'nginx:1' }));
    assert.deepEqual(planOf(count, outdated).delete, ['test-count-2']);
    const next = [outdated[0]!, outdated[1]!, aPodOf(count, 2)];
    assert.deepEqual(planOf(count, next).delete, ['test-count-1']);
  });

  it('replaces no ready Pod of another image while one is missing or not ready', () => {
    const count = aCount({ spec: { name: 'nginx:2' } });
    const outdated = [0, 1].map((ordinal) => aPodOf(count, ordinal, { image: 'nginx:1' }));
    assert.deepEqual(planOf(count, outdated), { create: [2], delete: [] });
    const broken = [...outdated, aPodOf(count, 2, { ready: false })];
    assert.deepEqual(planOf(count, broken), { create: [], delete: [] });
  });

  it('replaces at once the Pods of another image which are not ready', () => {
    const count = aCount({ spec: { name: 'nginx:1' } });
    const pods = [
      aPodOf(count, 0),
      aPodOf(count, 1, { image: 'typo', ready: false }),
      aPodOf(count, 2, { image: 'typo', ready: false }),
    ];
    assert.deepEqual(planOf(count, pods).delete, ['test-count-2', 'test-count-1']);
  });

  it('deletes a finished Pod of another image once, and it holds no replacement up', () => {
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
