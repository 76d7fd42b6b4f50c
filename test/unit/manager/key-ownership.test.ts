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

test('closing a shard waits for its last sync and starts no new sync', async () => {
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

test('a shard can be opened again', async () => {
  const keys = ownership();
  keys.open(1);
  await keys.close(1);
  keys.open(1);
  assert.ok(keys.enter(key));
});

test('closing a shard that is not open resolves immediately', () => ownership().close(7));
