import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { listAll } from '../../../src/cache/pager.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { expired, FakeSource, thing } from '../../support/fake-source.ts';

test('however many objects, pages and expired tokens: each object once, from the fewest requests', async () => {
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
        // A list anew is of another time than the first page was.
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
