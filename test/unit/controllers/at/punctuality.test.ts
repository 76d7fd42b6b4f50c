import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { ObjectKey } from '../../../../src/api/object-key.ts';
import { objectKey } from '../../../../src/api/object-key.ts';
import { Punctuality } from '../../../../src/controllers/at/punctuality.ts';

describe('an At whose time has come', () => {
  const key: ObjectKey = objectKey('default', 'tea');
  let told: string[];
  let punctuality: Punctuality;

  beforeEach(() => {
    told = [];
    punctuality = new Punctuality({
      due: () => told.push('due'),
      missed: () => told.push('missed'),
      started: (lateMs) => told.push(`started ${lateMs}`),
    });
  });

  it('is due once and started once, however often its record fails', () => {
    for (let attempt = 0; attempt < 3; attempt++) {
      punctuality.due(key, 'one', 20 + attempt);
      punctuality.started(key, 20);
    }
    assert.deepEqual(told, ['due', 'started 20']);
  });

  it('is missed once if it has not started a minute later, and may start then', () => {
    for (const lateMs of [0, 59_999, 60_000, 90_000]) punctuality.due(key, 'one', lateMs);
    punctuality.started(key, 90_000);
    punctuality.due(key, 'one', 95_000);
    assert.deepEqual(told, ['due', 'missed', 'started 90000']);
  });

  it('is not missed because its record is late', () => {
    punctuality.due(key, 'one', 0);
    punctuality.started(key, 0);
    punctuality.due(key, 'one', 120_000);
    assert.deepEqual(told, ['due', 'started 0']);
  });

  it('is another when it is forgotten, and when another has its name', () => {
    punctuality.due(key, 'one', 0);
    punctuality.forget(key);
    punctuality.due(key, 'one', 0);
    punctuality.due(key, 'two', 0);
    assert.deepEqual(told, ['due', 'due', 'due']);
  });

  it('starts only after it was due', () => {
    punctuality.started(key, 5);
    assert.deepEqual(told, []);
  });
});
