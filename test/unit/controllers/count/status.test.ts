import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isReadyAt } from '../../../../src/api/readiness.ts';
import { buildCountStatus } from '../../../../src/controllers/count/pods.ts';
import type { Pod } from '../../../../src/api/builtin.ts';
import type { Count, CountStatus } from '../../../../src/api/generated/count.ts';
import { aCount, aPodOf } from '../../../support/objects.ts';

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
