import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tolerates } from '../../../../src/cluster/nodes/taints.ts';
import type { Toleration } from '../../../../src/cluster/nodes/taints.ts';

test('a toleration without a field tolerates all of its values', () => {
  const taint = { key: 'size', value: '3', effect: 'NoSchedule' } as const;
  for (const [toleration, isTolerated] of [
    [{ operator: 'Exists' }, true],
    [{ operator: 'Exists', key: 'size' }, true],
    [{ operator: 'Exists', key: 'other' }, false],
    [{ operator: 'Exists', effect: 'NoSchedule' }, true],
    [{ operator: 'Exists', effect: 'NoExecute' }, false],
    [{ key: 'size', value: '3' }, true],
    [{ key: 'size', operator: 'Equal', value: '3' }, true],
    [{ key: 'size', value: '4' }, false],
    [{ key: 'size' }, false],
    [{ value: '3' }, false],
    [{ key: 'size', operator: 'Lt', value: '4' }, true],
    [{ key: 'size', operator: 'Lt', value: '3' }, false],
    [{ key: 'size', operator: 'Gt', value: '2' }, true],
    [{ key: 'size', operator: 'Gt', value: '3' }, false],
  ] satisfies [Toleration, boolean][]) {
    assert.equal(tolerates(toleration, taint), isTolerated, JSON.stringify(toleration));
  }
  assert.ok(tolerates({ key: 'a' }, { key: 'a', effect: 'NoSchedule' }), 'no value');
});
