import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import type { Lease } from '../../../src/api/builtin.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { LeaseLock } from '../../../src/leaderelection/lease-lock.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

const { signal } = new AbortController();

function newLocks() {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const client = new HttpClient({
    clock,
    server: 'https://simulated',
    handler: (request) => server.handler(request),
  });
  return (labels?: Record<string, string>) =>
    new LeaseLock(client, { namespace: 'default', name: 'count', labels });
}

async function read(lock: LeaseLock): Promise<Lease> {
  const lease = await lock.get(signal);
  assert.ok(lease);
  return lease;
}

test('a lease that is not there is none, and a second creation fails', async () => {
  const lock = newLocks()();
  assert.equal(await lock.get(signal), undefined);
  await lock.create({ holderIdentity: 'a' }, signal);
  assert.equal((await read(lock)).spec?.holderIdentity, 'a');
  await assert.rejects(lock.create({ holderIdentity: 'b' }, signal), { kind: 'alreadyExists' });
});

test('one’s own labels are put beside those that are there, and a lease without any gets none', async () => {
  const lockWith = newLocks();
  const plain = lockWith();
  await plain.create({ holderIdentity: 'a' }, signal);
  await plain.update(await read(plain), { holderIdentity: 'b' }, signal);
  assert.equal((await read(plain)).metadata.labels, undefined);
  const team = lockWith({ team: 'one', app: 'count' });
  await team.update(await read(team), { holderIdentity: 'b' }, signal);
  const other = lockWith({ team: 'two' });
  await other.update(await read(other), { holderIdentity: 'b' }, signal);
  assert.deepEqual((await read(other)).metadata.labels, { team: 'two', app: 'count' });
});

test('a lease is replaced in the state that was read, or not at all', async () => {
  const lock = newLocks()();
  await lock.create({ holderIdentity: 'a' }, signal);
  const old = await read(lock);
  await lock.update(old, { holderIdentity: 'b' }, signal);
  await assert.rejects(lock.update(old, { holderIdentity: 'c' }, signal), { kind: 'conflict' });
  assert.equal((await read(lock)).spec?.holderIdentity, 'b');
});
