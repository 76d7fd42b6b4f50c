import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../../src/api/api-error.ts';
import { PODS } from '../../../../src/api/builtin.ts';
import { objectKey } from '../../../../src/api/object-key.ts';
import { ownersOf, reportHotLoop } from '../../../../src/manager/hot-loop/hot-loop-report.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../../src/util/logger.ts';

const object = {
  metadata: {
    managedFields: [
      {
        manager: 'kubectl',
        fieldsV1: { 'f:metadata': { 'f:labels': { '.': {}, 'f:team': {} } } },
      },
      {
        manager: 'scaler',
        fieldsV1: { 'f:spec': { 'f:replicas': {}, 'f:selector': {} } },
      },
      {
        manager: 'kubelet',
        fieldsV1: {
          'f:status': {
            'f:conditions': {
              'k:{"type":"Ready"}': { '.': {}, 'f:status': {} },
              'k:{"type":"Initialized"}': { 'f:status': {} },
            },
          },
        },
      },
      { manager: 'guard', fieldsV1: { 'f:metadata': { 'f:finalizers': { 'v:"a/b"': {} } } } },
      { manager: 'blank', fieldsV1: {} },
      { manager: 'broken', fieldsV1: { 'f:status': { 'f:conditions': { 'k:{': {}, 'v:"': {} } } } },
      'not even an entry',
    ],
    finalizers: ['x/y', 'a/b'],
  },
  status: { conditions: [{ type: 'Initialized', status: 'True' }, { type: 'Ready' }] },
};

describe('ownersOf', () => {
  it('returns the managers whose managed fields contain the field', () => {
    assert.deepEqual(ownersOf(object, ['metadata', 'labels', 'team']), ['kubectl']);
    assert.deepEqual(ownersOf(object, ['spec', 'replicas']), ['scaler']);
    assert.deepEqual(ownersOf(object, ['metadata', 'labels', 'other']), []);
  });

  it('returns the owners of a containing field that is set as a whole, and of contained fields', () => {
    assert.deepEqual(ownersOf(object, ['spec', 'selector', 'matchLabels', 'app']), ['scaler']);
    assert.deepEqual(ownersOf(object, ['metadata', 'labels']), ['kubectl']);
  });

  it('finds list elements by key or value at any index', () => {
    assert.deepEqual(ownersOf(object, ['status', 'conditions', 1, 'status']), ['kubelet']);
    assert.deepEqual(ownersOf(object, ['status', 'conditions', 0, 'status']), ['kubelet']);
    assert.deepEqual(ownersOf(object, ['status', 'conditions', 0, 'reason']), []);
    assert.deepEqual(ownersOf(object, ['metadata', 'finalizers', 1]), ['guard']);
    assert.deepEqual(ownersOf(object, ['metadata', 'finalizers', 0]), []);
  });

  it('returns nothing without managed fields or with invalid ones', () => {
    for (const value of [undefined, null, 'text', {}, { metadata: { managedFields: 'x' } }]) {
      assert.deepEqual(ownersOf(value, ['spec']), []);
    }
    assert.deepEqual(ownersOf(object, ['constructor']), []);
  });
});

it('the event of an object that admission changes names the policies, or says that they may not be listed', async () => {
  const rule = {
    apiGroups: ['*'],
    apiVersions: ['*'],
    operations: ['CREATE'],
    resources: ['pods'],
  };
  const policy = {
    metadata: { name: 'images' },
    spec: { matchConstraints: { resourceRules: [rule] } },
  };
  const forbidden = () => Promise.reject(new ApiError({ kind: 'forbidden', message: 'no' }));
  for (const [read, text] of [
    [() => Promise.resolve({ items: [policy] }), /MutatingAdmissionPolicy "images"/],
    [forbidden, /policy \(this program may not list mutatingadmissionpolicies/],
  ] as const) {
    const events: string[] = [];
    const recorded = (_subject: unknown, _reason: string, message: string) => {
      events.push(message);
      return { attempted: () => Promise.resolve() };
    };
    const recorder = { warning: recorded, normal: recorded };
    const metadata = { namespace: 'default', name: 'a' };
    await reportHotLoop(
      {
        client: { raw: ({ path }) => (path.includes('mutating') ? read() : forbidden()) },
        clock: new FakeClock(),
        log: silentLogger,
        recorder,
      },
      {
        ...metadata,
        key: objectKey('default', 'a'),
        kind: 'recreated',
        resource: PODS,
        paths: [['spec', 'image']],
        changedBy: 'admission',
        times: 5,
        withinMs: 1000,
        fieldManager: undefined,
      },
      { apiVersion: 'v1', kind: 'Count', metadata },
      new AbortController().signal,
    );
    assert.match(events.join(), text);
  }
});
