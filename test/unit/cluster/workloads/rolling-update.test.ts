import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { amountOf, nextStep } from '../../../../src/cluster/workloads/rolling-update.ts';

test('percentages are rounded up for maxSurge and down for maxUnavailable', () => {
  assert.equal(amountOf('25%', 5, 'up'), 2);
  assert.equal(amountOf('25%', 5, 'down'), 1);
  assert.equal(amountOf(3, 5, 'up'), 3);
  assert.equal(amountOf(undefined, 5, 'up'), 0);
});

test('four replicas with 25% have at most five Pods and at least three available Pods', () => {
  const plan = { replicas: 4, maxSurge: 1, maxUnavailable: 1 };
  const whole = { replicas: 4, available: 4 };
  assert.deepEqual(nextStep(plan, { replicas: 0, available: 0 }, [whole]), {
    current: 1,
    old: [4],
  });
  assert.deepEqual(nextStep(plan, { replicas: 1, available: 0 }, [whole]), {
    current: 1,
    old: [3],
  });
  const three = { replicas: 3, available: 3 };
  assert.deepEqual(nextStep(plan, { replicas: 1, available: 1 }, [three]), {
    current: 2,
    old: [3],
  });
});

test('unavailable Pods are removed first', () => {
  const plan = { replicas: 3, maxSurge: 0, maxUnavailable: 1 };
  const step = nextStep(plan, { replicas: 0, available: 0 }, [
    { replicas: 1, available: 1 },
    { replicas: 2, available: 1 },
  ]);
  assert.deepEqual(step, { current: 0, old: [1, 1] });
});

const size = fc
  .nat(12)
  .chain((replicas) => fc.nat(replicas).map((available) => ({ replicas, available })));

test('every step keeps the limits, and the rollout always completes', () => {
  fc.assert(
    fc.property(
      fc.record({ replicas: fc.nat(10), maxSurge: fc.nat(4), maxUnavailable: fc.nat(4) }),
      size,
      fc.array(size, { maxLength: 3 }),
      (plan, current, old) => {
        const step = nextStep(plan, current, old);
        const total = (sizes: readonly number[]) => sizes.reduce((sum, n) => sum + n, 0);
        const before = current.replicas + total(old.map(({ replicas }) => replicas));
        const after = step.current + total(step.old);
        assert.ok(after <= Math.max(before, plan.replicas + plan.maxSurge), 'no more than allowed');
        step.old.forEach((replicas, index) =>
          assert.ok(
            replicas >= 0 && replicas <= (old[index]?.replicas ?? 0),
            'old sets only shrink',
          ),
        );
        // With all Pods available, every step changes something until the rollout is complete.
        const healthy = nextStep(
          plan,
          { replicas: current.replicas, available: current.replicas },
          old.map(({ replicas }) => ({ replicas, available: replicas })),
        );
        const isDone =
          current.replicas === plan.replicas && old.every(({ replicas }) => replicas === 0);
        const changes =
          healthy.current !== current.replicas ||
          healthy.old.some((replicas, index) => replicas !== old[index]?.replicas);
        assert.equal(changes, !isDone);
      },
    ),
    { numRuns: 300 },
  );
});

test('a new rollout creates Pods for any number of replicas', () => {
  const plan = { replicas: 2, maxSurge: 1, maxUnavailable: 0 };
  const old = [{ replicas: 2, available: 2 }];
  assert.deepEqual(nextStep(plan, { replicas: 1, available: 0 }, old), { current: 1, old: [2] });
  assert.deepEqual(nextStep(plan, { replicas: 1, available: 1 }, old), { current: 1, old: [1] });
});

test('one Pod may be unavailable if no limit permits a step', () => {
  const plan = { replicas: 2, maxSurge: 0, maxUnavailable: 0 };
  const old = [{ replicas: 2, available: 2 }];
  assert.deepEqual(nextStep(plan, { replicas: 0, available: 0 }, old), { current: 0, old: [1] });
});
