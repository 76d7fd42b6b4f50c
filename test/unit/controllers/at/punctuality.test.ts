import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { ObjectKey } from '../../../../src/api/object-key.ts';
import { objectKey } from '../../../../src/api/object-key.ts';
import { Punctuality } from '../../../../src/controllers/at/punctuality.ts';

describe('An At that is due', () => {
  const key: ObjectKey = objectKey('default', 'tea');
  let recorded: string[];
  let punctuality: Punctuality;

  beforeEach(() => {
    recorded = [];
    punctuality = new Punctuality({
      due: () => recorded.push('due'),
      missed: () => recorded.push('missed'),
      started: (lateMs) => recorded.push(`started ${lateMs}`),
    });
  });

  it('is counted as due and as started once, also if its status cannot be written', () => {
    for (let attempt = 0; attempt < 3; attempt++) {
      punctuality.due(key, 'one', 20 + attempt);
      punctuality.started(key, 20);
    }
    assert.deepEqual(recorded, ['due', 'started 20']);
  });

  it('is counted as missed once after a minute, and can start later', () => {
    for (const lateMs of [0, 59_999, 60_000, 90_000]) punctuality.due(key, 'one', lateMs);
    punctuality.started(key, 90_000);
    punctuality.due(key, 'one', 95_000);
    assert.deepEqual(recorded, ['due', 'missed', 'started 90000']);
  });

  it('is not missed if only its status is late', () => {
    punctuality.due(key, 'one', 0);
    punctuality.started(key, 0);
    punctuality.due(key, 'one', 120_000);
    assert.deepEqual(recorded, ['due', 'started 0']);
  });

  it('is counted again after it was forgotten, and with another uid', () => {
    punctuality.due(key, 'one', 0);
    punctuality.forget(key);
    punctuality.due(key, 'one', 0);
    punctuality.due(key, 'two', 0);
    assert.deepEqual(recorded, ['due', 'due', 'due']);
  });

  it('is not counted as started before it was due', () => {
    punctuality.started(key, 5);
    assert.deepEqual(recorded, []);
  });
});
