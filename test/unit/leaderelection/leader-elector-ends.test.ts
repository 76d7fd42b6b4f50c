import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import type { LeaseClient } from '../../../src/leaderelection/lease-lock.ts';
import { Candidates } from './candidates.ts';

const FOREIGN = { holderIdentity: 'x', leaseDurationSeconds: 15 };

test('whoever reads that another holds the lease may write no more, long before its own deadline', async () => {
  const world = new Candidates();
  const a = await world.start('a');
  await world.write(FOREIGN);
  assert.ok(a.leads, 'it has not looked yet');
  await world.clock.advance(2000);
  assert.match(String(await a.ending()), /"x" holds it$/);
  assert.deepEqual([a.elector.isLeading, a.elector.mayWrite()], [false, false]);
});

test('whoever waited to lead leaves no listener behind', async () => {
  const world = new Candidates();
  await world.create(FOREIGN);
  const a = await world.start('a');
  const { signal } = new AbortController();
  const waiting = a.elector.acquired(signal);
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  await world.clock.advance(15_000);
  assert.equal(await waiting, true);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  a.stop();
  await a.ending();
});

test('a release ends within the renew deadline, also over a client that would wait for ever', async () => {
  const world = new Candidates();
  let hangs = false;
  const client: LeaseClient = {
    get: (resource, at, options = {}) =>
      hangs
        ? new Promise((_resolve, reject) => {
            const { signal } = options;
            signal?.addEventListener('abort', () => reject(signal.reason as Error));
          })
        : world.client.get(resource, at, options),
    create: world.client.create.bind(world.client),
    update: world.client.update.bind(world.client),
  };
  const a = await world.start('a', { deps: { client } });
  hangs = true;
  a.stop();
  await world.clock.advance(9999);
  assert.deepEqual(a.lines().slice(-1), ['Successfully acquired lease']);
  await world.clock.advance(1);
  assert.equal(await a.ending(), 'ended');
  assert.deepEqual(a.lines().slice(-1), ['Could not release the lease; it will expire']);
  assert.equal(world.clock.pending, 0);
});
