import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readinessByCondition, readinessOf } from '../../../src/api/kstatus.ts';

const NOW = Date.parse('2026-01-01T00:00:15Z');
const READY = 'ready Current';

function condition(type: string, status: string, reason = '', message = '') {
  return { type, status, reason, message };
}

function readiness(
  apiVersion: string,
  kind: string,
  fields: object,
  metadata: object = {},
): string {
  const common = { name: 'a', uid: '1', resourceVersion: '1', creationTimestamp: '' };
  const object = { apiVersion, kind, metadata: { ...common, ...metadata }, ...fields };
  const { kind: state, reason } = readinessOf(object, NOW);
  return `${state} ${reason}`;
}

const available = {
  replicas: 2,
  updatedReplicas: 2,
  availableReplicas: 2,
  readyReplicas: 2,
  conditions: [
    condition('Progressing', 'True', 'NewReplicaSetAvailable'),
    condition('Available', 'True'),
  ],
};
const two = { replicas: 2, progressDeadlineSeconds: 600 };
const late = [condition('Progressing', 'False', 'ProgressDeadlineExceeded')];

/** Rows: spec, status, readiness. The cases of kstatus' own tests give the same results. */
const KINDS: Readonly<Record<string, readonly (readonly [object, object, string])[]>> = {
  'apps/v1 Deployment': [
    [two, {}, 'reconciling LessReplicas'],
    [two, { ...available, updatedReplicas: 1 }, 'reconciling LessUpdated'],
    [two, { ...available, replicas: 3 }, 'reconciling ExtraPods'],
    [two, { ...available, availableReplicas: 1 }, 'reconciling LessAvailable'],
    [two, { ...available, readyReplicas: 1 }, 'reconciling LessReady'],
    [two, { ...available, conditions: [] }, 'reconciling ReplicaSetNotAvailable'],
    [{ replicas: 2 }, { ...available, conditions: [] }, 'reconciling DeploymentNotAvailable'],
    [two, { ...available, conditions: late }, 'stalled ProgressDeadlineExceeded'],
    [two, available, READY],
  ],
  'apps/v1 ReplicaSet': [
    [{}, {}, 'reconciling LessLabelled'],
    [{}, { fullyLabeledReplicas: 1 }, 'reconciling LessAvailable'],
    [{}, { fullyLabeledReplicas: 1, availableReplicas: 1 }, 'reconciling LessReady'],
    [{ replicas: 0 }, { replicas: 1 }, 'reconciling ExtraPods'],
    [{ replicas: 0 }, {}, READY],
    [{}, { conditions: [condition('ReplicaFailure', 'True')] }, 'reconciling ReplicaFailure'],
  ],
  'apps/v1 StatefulSet': [
    [{}, {}, 'reconciling LessReplicas'],
    [{}, { replicas: 1 }, 'reconciling LessReady'],
    [{}, { replicas: 2, readyReplicas: 2 }, 'reconciling ExtraPods'],
    [{}, { replicas: 1, readyReplicas: 1 }, 'reconciling LessCurrent'],
    [
      {},
      { replicas: 1, readyReplicas: 1, currentReplicas: 1, updateRevision: 'b' },
      'reconciling RevisionMismatch',
    ],
    [{}, { replicas: 1, readyReplicas: 1, currentReplicas: 1 }, READY],
    [{ updateStrategy: { type: 'OnDelete' } }, {}, READY],
    [
      { replicas: 2, updateStrategy: { rollingUpdate: { partition: 1 } } },
      { replicas: 2, readyReplicas: 2 },
      'reconciling PartitionRollout',
    ],
    [
      { replicas: 2, updateStrategy: { rollingUpdate: { partition: 1 } } },
      { replicas: 2, readyReplicas: 2, updatedReplicas: 1 },
      READY,
    ],
  ],
  'batch/v1 Job': [
    [{}, {}, 'reconciling JobNotStarted'],
    [{}, { startTime: '2026-01-01T00:00:00Z' }, READY],
    [{}, { conditions: [condition('Complete', 'True')] }, READY],
    [{}, { conditions: [condition('Failed', 'True')] }, 'stalled JobFailed'],
  ],
  'v1 Pod': [
    [{}, {}, 'reconciling PodNotObserved'],
    [{}, { phase: 'Pending' }, 'reconciling PodPending'],
    [{}, { phase: 'Running' }, 'reconciling PodRunningNotReady'],
    [{}, { phase: 'Running', conditions: [condition('Ready', 'True')] }, READY],
    [
      {},
      {
        phase: 'Running',
        containerStatuses: [{ name: 'main', state: { waiting: { reason: 'CrashLoopBackOff' } } }],
      },
      'stalled ContainerCrashLooping',
    ],
    [{}, { phase: 'Succeeded' }, READY],
    [{}, { phase: 'Failed' }, READY],
  ],
  'v1 PersistentVolumeClaim': [
    [{}, {}, 'reconciling NotBound'],
    [{}, { phase: 'Bound' }, READY],
  ],
  'v1 Service': [
    [{ type: 'LoadBalancer' }, {}, 'reconciling NoIPAssigned'],
    [{ type: 'LoadBalancer', clusterIP: '10.0.0.1' }, {}, READY],
    [{}, {}, READY],
  ],
  'apiextensions.k8s.io/v1 CustomResourceDefinition': [
    [{}, {}, 'reconciling Installing'],
    [
      {},
      { conditions: [condition('Established', 'False', 'Installing')] },
      'reconciling Installing',
    ],
    [{}, { conditions: [condition('Established', 'False', 'No')] }, 'stalled No'],
    [{}, { conditions: [condition('NamesAccepted', 'False', 'Taken')] }, 'stalled Taken'],
    [{}, { conditions: [condition('Established', 'True')] }, READY],
  ],
  'example.com/v1 Other': [
    [{}, {}, READY],
    [{}, { conditions: [condition('Ready', 'False', 'Busy')] }, 'reconciling Busy'],
    [{}, { conditions: [condition('Ready', 'Unknown', 'Busy')] }, 'reconciling Busy'],
    [{}, { conditions: [condition('Ready', 'True')] }, READY],
  ],
};

for (const [type, cases] of Object.entries(KINDS)) {
  test(`the readiness of a ${type} follows kstatus`, () => {
    const [apiVersion = '', kind = ''] = type.split(' ');
    for (const [spec, status, expected] of cases) {
      assert.equal(readiness(apiVersion, kind, { spec, status }), expected, JSON.stringify(status));
    }
  });
}

test('the readiness of a DaemonSet needs an observed generation', () => {
  const of = (status: object, metadata: object = { generation: 1 }) =>
    readiness('apps/v1', 'DaemonSet', { status }, metadata);
  const counts = { observedGeneration: 1, desiredNumberScheduled: 1, currentNumberScheduled: 1 };
  assert.deepEqual(
    [
      of({}, {}),
      of({}),
      of({ observedGeneration: 1 }),
      of({ ...counts, currentNumberScheduled: 0 }),
      of(counts),
      of({ ...counts, updatedNumberScheduled: 1 }),
      of({ ...counts, updatedNumberScheduled: 1, numberAvailable: 1 }),
      of({ ...counts, updatedNumberScheduled: 1, numberAvailable: 1, numberReady: 1 }),
    ],
    [
      'reconciling NoGeneration',
      'reconciling NoObservedGeneration',
      'reconciling NoDesiredNumber',
      'reconciling LessCurrent',
      'reconciling LessUpdated',
      'reconciling LessAvailable',
      'reconciling LessReady',
      READY,
    ],
  );
});

test('a Pod that cannot be scheduled is stalled after 15 s', () => {
  const conditions = [condition('PodScheduled', 'False', 'Unschedulable')];
  const of = (creationTimestamp: string) =>
    readiness('v1', 'Pod', { status: { phase: 'Pending', conditions } }, { creationTimestamp });
  assert.equal(of('2026-01-01T00:00:01Z'), 'reconciling PodNotScheduled');
  assert.equal(of('2026-01-01T00:00:00Z'), 'stalled PodUnschedulable');
});

test('deletion, generation and the conditions of kstatus count before the rules of a kind', () => {
  const of = (conditions: readonly object[], observedGeneration: number, metadata: object = {}) =>
    readiness(
      'v1',
      'ConfigMap',
      { status: { conditions, observedGeneration } },
      { generation: 2, ...metadata },
    );
  const both = [condition('Reconciling', 'True', 'Moving'), condition('Stalled', 'True', 'Stuck')];
  assert.deepEqual(
    [
      of(both, 1, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      of(both, 1),
      of(both, 2),
      of([condition('Reconciling', 'False', 'Moving'), both[1]!], 2),
      of([], 2),
    ],
    [
      'reconciling Terminating',
      'reconciling LatestGenerationNotObserved',
      'reconciling Moving',
      'stalled Stuck',
      READY,
    ],
  );
});

test('readinessByCondition waits for the condition Ready', () => {
  const object = { apiVersion: 'example.com/v1', kind: 'User', metadata: { name: 'a' } };
  const at = (status: object) => readinessByCondition({ ...object, status } as never).kind;
  assert.equal(readinessOf(object as never).kind, 'ready');
  assert.equal(readinessByCondition(object as never).kind, 'reconciling');
  const condition = (type: string, status: string) => ({ conditions: [{ type, status }] });
  assert.equal(at(condition('Ready', 'True')), 'ready');
  assert.equal(at(condition('Ready', 'False')), 'reconciling');
  assert.equal(at(condition('Stalled', 'True')), 'stalled');
});
