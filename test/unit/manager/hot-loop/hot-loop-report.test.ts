import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ownersOf } from '../../../../src/manager/hot-loop/hot-loop-report.ts';

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
