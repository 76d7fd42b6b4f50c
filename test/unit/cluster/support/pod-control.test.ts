import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../../../src/api/builtin.ts';
import { timestamp } from '../../../../src/api/conditions.ts';
import { ApiError } from '../../../../src/api/api-error.ts';
import type { Client } from '../../../../src/client/client.ts';
import {
  availability,
  byDeletionPriority,
  PodControl,
} from '../../../../src/cluster/support/pod-control.ts';
import { NOT_SENT } from '../../../../src/record/event-recorder.ts';
import { silentLogger } from '../../../../src/util/logger.ts';
import { aCount, aPodOf } from '../../../support/objects.ts';

const owner = aCount();

function readySinceSecond(second: number): Pod {
  const pod = aPodOf(owner, 0);
  const lastTransitionTime = timestamp(second * 1000);
  return {
    ...pod,
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }],
    },
  };
}

describe('The deletion of Pods', () => {
  /** Deletes Pods, of which the server rejects each with an error, if one is given. */
  const deleted = async (count: number, error?: ApiError) => {
    const reasons = new Set<string>();
    let requests = 0;
    const record = (_: unknown, reason: string) => {
      reasons.add(reason);
      return NOT_SENT;
    };
    const client: Partial<Client> = {
      delete: () => {
        requests++;
        return error ? Promise.reject(error) : Promise.resolve();
      },
    };
    const context = { client: client as Client, signal: new AbortController().signal };
    const pods = Array.from({ length: count }, (_, index) => aPodOf(owner, index));
    const control = new PodControl({ normal: record, warning: record });
    const failure = await control.delete({ ...context, log: silentLogger }, owner, pods);
    return { requests, reasons: [...reasons], failure };
  };

  it('sends at most 500 requests at once', async () => {
    const { requests, reasons, failure } = await deleted(501);
    assert.deepEqual([requests, reasons, failure], [500, ['SuccessfulDelete'], undefined]);
  });

  it('records a failure, but not that a Pod has changed', async () => {
    for (const [kind, expected] of [
      ['forbidden', ['FailedDelete']],
      ['conflict', []],
    ] as const) {
      const error = new ApiError({ kind, message: 'no' });
      assert.deepEqual(await deleted(1, error), { requests: 1, reasons: expected, failure: error });
    }
  });
});

describe('Availability', () => {
  it('counts ready Pods that have been ready for long enough', () => {
    const pods = [readySinceSecond(0), readySinceSecond(10), aPodOf(owner, 1, { ready: false })];
    assert.deepEqual(availability(pods, 10, 19_999), { available: 1, nextMs: 1 });
    assert.deepEqual(availability(pods, 10, 20_000), { available: 2, nextMs: undefined });
    assert.deepEqual(availability(pods, 10, 9_000), { available: 0, nextMs: 1000 });
  });

  it('counts every ready Pod without minReadySeconds, regardless of clocks', () => {
    const pods = [readySinceSecond(1000), aPodOf(owner, 1, { ready: false })];
    assert.deepEqual(availability(pods, 0, 0), { available: 1, nextMs: undefined });
    assert.deepEqual(availability([], 0, 0), { available: 0, nextMs: undefined });
  });
});

type PodPhase = NonNullable<NonNullable<Pod['status']>['phase']>;

describe('Surplus Pods', () => {
  const make = (
    name: string,
    traits: { node?: boolean; ready?: boolean; phase?: PodPhase; createdAt?: number },
  ): Pod => {
    const { node = true, ready = true, phase = 'Running', createdAt = 0 } = traits;
    const pod = aPodOf(owner, 0, { name, ready, phase });
    return {
      ...pod,
      metadata: { ...pod.metadata, creationTimestamp: timestamp(createdAt * 1000) },
      spec: { ...pod.spec!, ...(node ? { nodeName: 'node-1' } : {}) },
    };
  };

  it('are deleted in the order: without a node, not running, not ready, newest', () => {
    const pods = [
      make('old', { createdAt: 1 }),
      make('young', { createdAt: 9 }),
      make('unready', { ready: false }),
      make('pending', { phase: 'Pending', ready: false }),
      make('unbound', { node: false, phase: 'Pending', ready: false }),
    ];
    const expected = ['unbound', 'pending', 'unready', 'young', 'old'];
    const order = (all: Pod[]) =>
      all.toSorted(byDeletionPriority).map(({ metadata }) => metadata.name);
    assert.deepEqual(order(pods), expected);
    assert.deepEqual(order(pods.toReversed()), expected);
  });

  it('are deleted by name if they have the same age', () => {
    const pods = [make('a', {}), make('b', {})];
    const order = (all: Pod[]) =>
      all.toSorted(byDeletionPriority).map(({ metadata }) => metadata.name);
    assert.deepEqual(order(pods), order(pods.toReversed()));
  });
});
