import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../../../src/api/builtin.ts';
import { timestamp } from '../../../../src/api/conditions.ts';
import { ApiError } from '../../../../src/api/api-error.ts';
import type { Client } from '../../../../src/client/client.ts';
import {
  availability,
  byDeletionCost,
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
  interface Traits {
    readonly node?: string;
    readonly ready?: boolean;
    readonly phase?: PodPhase;
    readonly readyAt?: number;
    readonly createdAt?: number;
    readonly restarts?: readonly [app: number, sidecar: number, init?: number];
    readonly cost?: string;
  }

  const make = (name: string, traits: Traits = {}): Pod => {
    const { node = 'node-1', ready = true, phase = 'Running', readyAt = 5, cost } = traits;
    const { createdAt = 1, restarts = [0, 0] } = traits;
    const pod = aPodOf(owner, 0, { name, phase });
    const [app, sidecar, init = 0] = restarts;
    const initContainers = [
      { name: 'sidecar', image: 'a', restartPolicy: 'Always' as const },
      { name: 'init', image: 'a' },
    ];
    const statusOf = (name: string, restartCount: number) =>
      ({ name, restartCount, image: 'a', imageID: 'a', ready }) as const;
    return {
      ...pod,
      metadata: {
        ...pod.metadata,
        creationTimestamp: timestamp(createdAt * 1000),
        ...(cost !== undefined && {
          annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost },
        }),
      },
      spec: { ...pod.spec!, nodeName: node, initContainers },
      status: {
        phase,
        conditions: [
          {
            type: 'Ready',
            status: ready ? 'True' : 'False',
            lastTransitionTime: timestamp(readyAt * 1000),
          },
        ],
        containerStatuses: [statusOf('app', app)],
        initContainerStatuses: [statusOf('sidecar', sidecar), statusOf('init', init)],
      },
    };
  };
  const sorted = (pods: readonly Pod[], order: (a: Pod, b: Pod) => number) =>
    pods.toSorted(order).map(({ metadata }) => metadata.name);

  it('are deleted in the order of a ReplicaSet, or without costs and nodes', () => {
    const pods = [
      make('unbound', { node: '', phase: 'Pending', ready: false }),
      make('pending', { phase: 'Pending', ready: false, cost: '5' }),
      make('unknown', { phase: 'Unknown', ready: false }),
      make('unready', { ready: false, readyAt: 1 }),
      make('cheap', { cost: '-1', readyAt: 3 }),
      make('crowded', { node: 'node-2', readyAt: 2 }),
      make('lately ready', { readyAt: 9, createdAt: 0 }),
      make('restarted', { restarts: [2, 0] }),
      make('restarted sidecar', { restarts: [1, 3] }),
      make('restarted once', { restarts: [1, 2], createdAt: 3 }),
      make('young', { createdAt: 9 }),
      make('old', { restarts: [0, 0, 7] }),
      make('older', { createdAt: 0 }),
      make('costly', { cost: '10', readyAt: 8 }),
    ];
    const related = [make('x', { node: 'node-2' }), make('y', { node: 'node-2' }), make('z')];
    const expected = sorted(pods, () => 0);
    for (const given of [pods, pods.toReversed()]) {
      assert.deepEqual(sorted(given, byDeletionCost(related)), expected);
      const { length } = ['unbound', 'pending', 'unknown', 'unready'];
      assert.deepEqual(sorted(given, byDeletionPriority), [
        ...expected.slice(0, length),
        'lately ready',
        'costly',
        ...expected.slice(length + 3, -1),
        'cheap',
        'crowded',
      ]);
    }
  });

  it('have no cost if it is no integer of 32 bits as Go writes it', () => {
    const plain = make('a');
    for (const cost of ['+5', '05', '-', 'x', '1.5', '2147483648', '-2147483649']) {
      const other = make('b', { cost });
      assert.deepEqual(sorted([plain, other], byDeletionCost([])), ['b', 'a'], cost);
      const first = make('0', { cost });
      assert.deepEqual(sorted([plain, first], byDeletionCost([])), ['a', '0'], cost);
    }
    const least = make('0', { cost: '-2147483648' });
    assert.deepEqual(sorted([plain, least], byDeletionCost([])), ['0', 'a']);
  });
});
