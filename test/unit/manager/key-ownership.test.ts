import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objectKey } from '../../../src/api/object-key.ts';
import { KeyOwnership } from '../../../src/manager/key-ownership.ts';
import { settle } from '../../../src/util/fake-clock.ts';

const key = objectKey('default', 'x');

function ownership(): KeyOwnership {
  return new KeyOwnership((key) => (key.endsWith('x') ? 1 : 0));
}

test('a key is owned while its shard is open', async () => {
  const keys = ownership();
  assert.equal(keys.owns(key), false);
  assert.equal(keys.enter(key), undefined);
  keys.open(0);
  assert.equal(keys.owns(key), false);
  keys.open(1);
  assert.equal(keys.owns(key), true);
  await keys.close(1);
  assert.equal(keys.owns(key), false);
  assert.equal(keys.owns(objectKey('default', 'y')), true);
});

test('a shard is closed when its last run has ended, and begins no other meanwhile', async () => {
  const keys = ownership();
  keys.open(1);
  const leaves = [keys.enter(key), keys.enter(key)];
  let isClosed = false;
  const closing = keys.close(1).then(() => (isClosed = true));
  leaves[0]?.();
  await settle();
  assert.equal(isClosed, false);
  assert.equal(keys.enter(key), undefined);
  leaves[1]?.();
  await closing;
});

test('a shard that comes back is open again', async () => {
  const keys = ownership();
  keys.open(1);
  await keys.close(1);
  keys.open(1);
  assert.ok(keys.enter(key));
});

test('a shard that was not open is closed at once', () => ownership().close(7));
