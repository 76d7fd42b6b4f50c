import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kind } from '../admitted.ts';
import type { StoredObject } from '../../../../../src/apiserver/objects/resource-definition.ts';
import { renderTable } from '../../../../../src/apiserver/table/table.ts';

const now = Date.UTC(2026, 0, 1, 1);
const minuteAgo = '2026-01-01T00:59:00Z';

interface Situation {
  readonly title: string;
  readonly spec?: object;
  readonly status?: object;
  readonly metadata?: object;
  /** The cells READY, STATUS, RESTARTS. */
  readonly shows: readonly [ready: string, status: string, restarts: string];
}

const one = { containers: [{ name: 'a' }] };
const two = { containers: [{ name: 'a' }, { name: 'b' }] };
const running = { name: 'a', ready: true, restartCount: 0, state: { running: {} } };
const exited = (name: string, exitCode: number, reason?: string) => ({
  name,
  ready: false,
  restartCount: 0,
  state: { terminated: { exitCode, ...(reason && { reason }) } },
});
const waiting = (reason: string) => ({
  name: 'a',
  restartCount: 0,
  state: { waiting: { reason } },
});

const situations: readonly Situation[] = [
  { title: 'no container status', status: { phase: 'Pending' }, shows: ['0/1', 'Pending', '0'] },
  {
    title: 'containers in creation',
    status: { phase: 'Pending', containerStatuses: [waiting('ContainerCreating')] },
    shows: ['0/1', 'ContainerCreating', '0'],
  },
  {
    title: 'a running container',
    status: { phase: 'Running', containerStatuses: [running] },
    shows: ['1/1', 'Running', '0'],
  },
  {
    title: 'a container in CrashLoopBackOff',
    status: {
      phase: 'Running',
      containerStatuses: [
        {
          ...waiting('CrashLoopBackOff'),
          restartCount: 4,
          lastState: { terminated: { exitCode: 1, finishedAt: minuteAgo } },
        },
      ],
    },
    shows: ['0/1', 'CrashLoopBackOff', '4 (60s ago)'],
  },
  {
    title: 'a completed container',
    status: { phase: 'Succeeded', containerStatuses: [exited('a', 0, 'Completed')] },
    shows: ['0/1', 'Completed', '0'],
  },
  {
    title: 'a failed container',
    status: { phase: 'Failed', containerStatuses: [exited('a', 3, 'Error')] },
    shows: ['0/1', 'Error', '0'],
  },
  {
    title: 'a container that failed without a reason',
    status: { phase: 'Failed', containerStatuses: [exited('a', 3)] },
    shows: ['0/1', 'ExitCode:3', '0'],
  },
  {
    title: 'a container killed by a signal',
    status: {
      phase: 'Failed',
      containerStatuses: [
        { name: 'a', restartCount: 0, state: { terminated: { exitCode: 0, signal: 9 } } },
      ],
    },
    shows: ['0/1', 'Signal:9', '0'],
  },
  {
    title: 'one completed and one ready container',
    spec: two,
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [exited('a', 0, 'Completed'), { ...running, name: 'b' }],
    },
    shows: ['1/2', 'Running', '0'],
  },
  {
    title: 'one completed and one running container, but not ready',
    spec: two,
    status: {
      phase: 'Running',
      containerStatuses: [exited('a', 0, 'Completed'), { ...running, name: 'b' }],
    },
    shows: ['1/2', 'NotReady', '0'],
  },
  {
    title: 'a completed and a failed container',
    spec: two,
    status: {
      phase: 'Failed',
      containerStatuses: [exited('a', 0, 'Completed'), exited('b', 1, 'Error')],
    },
    shows: ['0/2', 'Error', '0'],
  },
  {
    title: 'two failing containers, of which the first determines the status',
    spec: two,
    status: {
      phase: 'Pending',
      containerStatuses: [
        waiting('ErrImagePull'),
        { ...waiting('CreateContainerError'), name: 'b' },
      ],
    },
    shows: ['0/2', 'ErrImagePull', '0'],
  },
  {
    title: 'a deletion timestamp',
    metadata: { deletionTimestamp: minuteAgo },
    status: { phase: 'Running', containerStatuses: [running] },
    shows: ['1/1', 'Terminating', '0'],
  },
  {
    title: 'a deletion timestamp after it ended',
    metadata: { deletionTimestamp: minuteAgo },
    status: { phase: 'Succeeded', containerStatuses: [exited('a', 0, 'Completed')] },
    shows: ['0/1', 'Completed', '0'],
  },
  {
    title: 'a lost node',
    metadata: { deletionTimestamp: minuteAgo },
    status: { phase: 'Running', reason: 'NodeLost' },
    shows: ['0/1', 'Unknown', '0'],
  },
  {
    title: 'an eviction',
    status: { phase: 'Failed', reason: 'Evicted' },
    shows: ['0/1', 'Evicted', '0'],
  },
  {
    title: 'a scheduling gate',
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }],
    },
    shows: ['0/1', 'SchedulingGated', '0'],
  },
  {
    title: 'its second init container running',
    spec: { ...one, initContainers: [{ name: 'x' }, { name: 'y' }] },
    status: {
      phase: 'Pending',
      initContainerStatuses: [
        exited('x', 0),
        { name: 'y', restartCount: 2, state: { running: {} } },
      ],
      containerStatuses: [waiting('PodInitializing')],
    },
    shows: ['0/1', 'Init:1/2', '2'],
  },
  {
    title: 'a failed init container',
    spec: { ...one, initContainers: [{ name: 'x' }] },
    status: { phase: 'Pending', initContainerStatuses: [exited('x', 7)] },
    shows: ['0/1', 'Init:ExitCode:7', '0'],
  },
  {
    title: 'an init container that cannot pull its image',
    spec: { ...one, initContainers: [{ name: 'x' }] },
    status: {
      phase: 'Pending',
      initContainerStatuses: [{ ...waiting('ImagePullBackOff'), name: 'x' }],
    },
    shows: ['0/1', 'Init:ImagePullBackOff', '0'],
  },
  {
    title: 'a sidecar',
    spec: { ...one, initContainers: [{ name: 'x', restartPolicy: 'Always' }] },
    status: {
      phase: 'Running',
      initContainerStatuses: [{ ...running, name: 'x', started: true, restartCount: 1 }],
      containerStatuses: [running],
    },
    shows: ['2/2', 'Running', '1'],
  },
];

function pod({ spec = one, status = {}, metadata = {} }: Partial<Situation>): StoredObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      uid: 'u',
      resourceVersion: '1',
      creationTimestamp: minuteAgo,
      ...metadata,
    },
    spec,
    status,
  };
}

function row(situation: Partial<Situation>) {
  return renderTable(kind('Pod'), [pod(situation)], {
    listMeta: {},
    now,
  }).rows[0];
}

for (const situation of situations) {
  test(`a pod with ${situation.title} shows ${situation.shows.join(', ')}`, () => {
    assert.deepEqual(row(situation)?.cells.slice(0, 5), ['web', ...situation.shows, '60s']);
  });
}

test('wide columns show addresses, nodes and readiness gates', () => {
  const spec = {
    ...one,
    nodeName: 'n1',
    readinessGates: [{ conditionType: 'g' }, { conditionType: 'h' }],
  };
  const status = { podIPs: [{ ip: '10.0.0.1' }], conditions: [{ type: 'g', status: 'True' }] };
  assert.deepEqual(row({ spec, status })?.cells.slice(5), ['10.0.0.1', 'n1', '<none>', '1/2']);
  assert.deepEqual(row({})?.cells.slice(5), ['<none>', '<none>', '<none>', '<none>']);
});

test('the row of an ended pod has the condition Completed', () => {
  assert.deepEqual(row({ status: { phase: 'Failed' } })?.conditions, [
    { type: 'Completed', status: 'True', reason: 'Failed', message: 'The pod failed.' },
  ]);
  assert.equal(row({ status: { phase: 'Running' } })?.conditions, undefined);
});
