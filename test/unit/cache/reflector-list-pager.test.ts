import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { ApiError } from '../../../src/api/api-error.ts';
import { listAll } from '../../../src/cache/reflector-list.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { apiError, expired, FakeSource, thing } from '../../support/fake-source.ts';

function sourceWith(count: number): FakeSource {
  const source = new FakeSource(new FakeClock());
  for (let at = 0; at < count; at++) source.put(`thing-${at}`);
  return source;
}

// upstream: 33
test('needs one request for an empty list', async () => {
  const source = sourceWith(0);
  const list = await listAll(source, { limit: 4, resourceVersion: '0' });
  assert.deepEqual(list, { items: [], resourceVersion: '10', paginated: false });
  assert.equal(source.requests.length, 1);
});

// upstream: 33
test('needs one request for a list of one page', async () => {
  const source = sourceWith(4);
  const list = await listAll(source, { limit: 4 });
  assert.equal(list.items.length, 4);
  assert.equal(list.paginated, false);
  assert.equal(source.requests.length, 1);
});

// upstream: 16
test('follows all pages, without a resourceVersion after the first', async () => {
  const source = sourceWith(10);
  const list = await listAll(source, { limit: 4, resourceVersion: '0' });
  assert.deepEqual(
    list.items.map(({ metadata }) => metadata.name),
    Array.from({ length: 10 }, (_, at) => `thing-${at}`),
  );
  assert.equal(list.paginated, true);
  assert.deepEqual(
    source.lists.map(({ resourceVersion, limit }) => [resourceVersion, limit]),
    [
      ['0', 4],
      [undefined, 4],
      [undefined, 4],
    ],
  );
});

test('returns the resourceVersion of the first page', async () => {
  const source = sourceWith(3);
  const listing = listAll(
    {
      list: async (request) => {
        const page = await source.list(request);
        source.skip(100);
        return page;
      },
    },
    { limit: 2 },
  );
  assert.equal((await listing).resourceVersion, '13');
});

// upstream: 33
test('rejects with an error of a later page', async () => {
  const source = sourceWith(10);
  const error = apiError('internal', 'etcd is unavailable', 500);
  source.failNext('continue', error);
  await assert.rejects(listAll(source, { limit: 4 }), error);
});

// upstream: 33
test('rejects with an expired first page', async () => {
  const source = sourceWith(10);
  source.failNext('list', expired());
  await assert.rejects(listAll(source, { limit: 4, resourceVersion: '10' }), {
    kind: 'expired',
  });
  assert.equal(source.requests.length, 1);
});

// upstream: 21, 33
test('lists everything at the first resourceVersion after a continue token expired', async () => {
  const source = sourceWith(10);
  source.failNext('continue', expired());
  const list = await listAll(source, { limit: 4, resourceVersion: '10' });
  assert.equal(list.items.length, 10);
  assert.equal(list.paginated, true);
  assert.deepEqual(
    source.lists.map(({ resourceVersion, limit }) => [resourceVersion, limit]),
    [
      ['10', 4],
      [undefined, 4],
      ['10', undefined],
    ],
  );
});

// upstream: 34
test('ends between two pages on abort', async () => {
  const source = sourceWith(10);
  const controller = new AbortController();
  const reason = new Error('enough');
  const listing = listAll(
    {
      list: async (request) => {
        const page = await source.list(request);
        controller.abort(reason);
        return page;
      },
    },
    { limit: 4, signal: controller.signal },
  );
  await assert.rejects(listing, reason);
  assert.equal(source.requests.length, 1);
});

// upstream: 34
test('rejects if the server repeats a continue token', async () => {
  const page = { items: [], resourceVersion: '10', continueToken: 'again' };
  await assert.rejects(
    listAll({ list: async () => page }, { limit: 4 }),
    (error) => error instanceof ApiError && error.kind === 'malformed',
  );
});

// upstream: 33
test('returns each object once, for any number of pages and expired tokens', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(60),
      fc.integer({ min: 1, max: 20 }),
      fc.constantFrom(undefined, '0', '10'),
      fc.option(fc.nat(5), { nil: undefined }),
      async (count, limit, resourceVersion, expiresAfter) => {
        const source = new FakeSource(new FakeClock());
        const { signal } = new AbortController();
        const objects = Array.from({ length: count }, (_, at) => thing(`thing-${at}`));
        source.restore(10, objects);
        const pages = Math.max(1, Math.ceil(count / limit));
        const expires = expiresAfter !== undefined && expiresAfter < pages - 1;
        let continued = 0;
        const list = await listAll(
          {
            list: async (request) => {
              if (request.continueToken && continued++ === expiresAfter) {
                source.failNext('continue', expired());
              }
              const page = await source.list(request);
              source.skip();
              return page;
            },
          },
          { limit, signal, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
        );
        assert.deepEqual(list.items, objects);
        assert.equal(list.paginated, pages > 1);
        // A new list has another resourceVersion than the first page.
        assert.equal(list.resourceVersion, String(expires ? 11 + expiresAfter : 10));
        assert.equal(source.lists.length, expires ? expiresAfter + 3 : pages);
        for (const request of source.lists) {
          const whole = request.limit === undefined;
          assert.equal(
            request.resourceVersion,
            request.continueToken ? undefined : resourceVersion,
          );
          assert.equal(request.signal, signal);
          assert.equal(whole, expires && request === source.lists.at(-1));
        }
      },
    ),
  );
});
