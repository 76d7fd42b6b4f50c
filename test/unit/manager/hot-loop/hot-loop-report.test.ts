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

describe('the owners of a field', () => {
  it('are those whose managed fields have it', () => {
    assert.deepEqual(ownersOf(object, ['metadata', 'labels', 'team']), ['kubectl']);
    assert.deepEqual(ownersOf(object, ['spec', 'replicas']), ['scaler']);
    assert.deepEqual(ownersOf(object, ['metadata', 'labels', 'other']), []);
  });

  it('own what is below a field that is set as a whole, and what is above their own', () => {
    assert.deepEqual(ownersOf(object, ['spec', 'selector', 'matchLabels', 'app']), ['scaler']);
    assert.deepEqual(ownersOf(object, ['metadata', 'labels']), ['kubectl']);
  });

  it('own elements of lists by their keys or values, wherever they stand', () => {
    assert.deepEqual(ownersOf(object, ['status', 'conditions', 1, 'status']), ['kubelet']);
    assert.deepEqual(ownersOf(object, ['status', 'conditions', 0, 'status']), ['kubelet']);
    assert.deepEqual(ownersOf(object, ['status', 'conditions', 0, 'reason']), []);
    assert.deepEqual(ownersOf(object, ['metadata', 'finalizers', 1]), ['guard']);
    assert.deepEqual(ownersOf(object, ['metadata', 'finalizers', 0]), []);
  });

  it('are unknown where an object tells nothing, or nonsense', () => {
    for (const value of [undefined, null, 'text', {}, { metadata: { managedFields: 'x' } }]) {
      assert.deepEqual(ownersOf(value, ['spec']), []);
    }
    assert.deepEqual(ownersOf(object, ['constructor']), []);
  });
});
