import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lease } from '../../../src/api/builtin.ts';
import type { Client } from '../../../src/client/client.ts';
import { ApiError } from '../../../src/api/api-error.ts';
import type { WatchEvent } from '../../../src/api/object.ts';
import { LeaseLock } from '../../../src/leaderelection/lease-lock.ts';
import type { LeaseChange } from '../../../src/leaderelection/lease-lock.ts';

const { signal } = new AbortController();

function lease(labels?: Record<string, string>): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      namespace: 'default',
      name: 'count',
      uid: 'u',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(labels && { labels }),
    },
    spec: { holderIdentity: 'a' },
  };
}

/** Returns a lock, the objects that it sends, and the options of its requests. */
function newLock(labels?: Record<string, string>, error?: Error) {
  const sent: unknown[] = [];
  const options: unknown[] = [];
  const answer = (object: unknown, given: unknown) => {
    sent.push(object);
    options.push(given);
    return error ? Promise.reject(error) : Promise.resolve(object as never);
  };
  const client: Partial<Client> = {
    get: (_resource, at, given) => answer(at, given),
    create: (_resource, object, given) => answer(object, given),
    update: (_resource, object, given) => answer(object, given),
  };
  const lock = new LeaseLock(client as Client, { namespace: 'default', name: 'count', labels });
  return { lock, sent, options };
}

test('get returns undefined for a missing lease and rejects for other errors', async () => {
  const at = { namespace: 'default', name: 'count' };
  const missing = newLock({}, new ApiError({ kind: 'notFound', message: 'none', code: 404 }));
  assert.equal(await missing.lock.get(signal), undefined);
  assert.deepEqual(missing.sent, [at]);
  const refused = newLock({}, new ApiError({ kind: 'forbidden', message: 'no', code: 403 }));
  await assert.rejects(refused.lock.get(signal), { kind: 'forbidden' });
});

// upstream: 90b
test('writes add the configured labels to existing labels', async () => {
  const plain = newLock();
  await plain.lock.create({ holderIdentity: 'b' }, signal);
  await plain.lock.update(lease(), { holderIdentity: 'b' }, signal);
  assert.ok(plain.sent.every((object) => !('labels' in (object as Lease).metadata)));

  const { lock, sent } = newLock({ team: 'two' });
  await lock.create({ holderIdentity: 'b' }, signal);
  await lock.update(lease({ team: 'one', app: 'count' }), { holderIdentity: 'b' }, signal);
  assert.deepEqual(
    sent.map((object) => (object as Lease).metadata.labels),
    [{ team: 'two' }, { team: 'two', app: 'count' }],
  );
});

test('update replaces the spec only, in the state that was read', async () => {
  const { lock, sent } = newLock();
  const read = lease({ app: 'count' });
  await lock.update(read, { holderIdentity: 'b' }, signal);
  assert.deepEqual(sent, [{ ...read, spec: { holderIdentity: 'b' } }]);
});

test('requests can be aborted, and writes have the name of the Lease as their manager', async () => {
  const { lock, options } = newLock();
  await lock.get(signal);
  await lock.create({ holderIdentity: 'b' }, signal);
  await lock.update(lease(), { holderIdentity: 'b' }, signal);
  const write = { fieldManager: 'count', signal };
  assert.deepEqual(options, [{ signal }, write, write]);
});

test('watch yields each state of the named lease, and its deletion', async () => {
  const error = new ApiError({ kind: 'expired', message: 'gone', code: 410 });
  const other = { ...lease(), metadata: { ...lease().metadata, name: 'other' } };
  const events: WatchEvent<Lease>[] = [
    { type: 'added', object: lease() },
    { type: 'added', object: other },
    { type: 'bookmark', resourceVersion: '9', initialEventsEnd: false },
    { type: 'modified', object: lease({ app: 'count' }) },
    { type: 'deleted', object: lease() },
    { type: 'error', error },
  ];
  const asked: unknown[] = [];
  const client: Partial<Client> = {
    watch: (_resource, { signal: _, ...options } = {}) => {
      asked.push(options);
      const stream = (async function* () {
        yield* events;
      })();
      return Promise.resolve(stream as never);
    },
  };
  const lock = new LeaseLock(client as Client, {
    namespace: 'default',
    name: 'count',
  });
  const observed: LeaseChange[] = [];
  const watching = async () => {
    for await (const state of lock.watch({ timeoutSeconds: 300, signal })) observed.push(state);
  };
  await assert.rejects(watching(), { kind: 'expired' });
  assert.deepEqual(observed, [
    { lease: lease(), isDeleted: false },
    { lease: lease({ app: 'count' }), isDeleted: false },
    { lease: lease(), isDeleted: true },
  ]);
  assert.deepEqual(asked, [
    { namespace: 'default', fieldSelector: 'metadata.name=count', timeoutSeconds: 300 },
  ]);
});
