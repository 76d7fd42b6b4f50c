import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import { keyOf } from '../../../src/api/object-key.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import {
  apiError,
  expired,
  isCheck,
  notFound,
  thing,
  tooLarge,
  tooManyRequests,
  unreachable,
} from '../../support/fake-source.ts';
import type { ListCall, Thing, WatchCall } from '../../support/fake-source.ts';
import { reflectorFixture } from './harness.ts';
import type { ReflectorFixture } from './harness.ts';

/** Rounds of a reflector: its requests, in order, with the delays before them. */

const listedVersions = ({ source }: ReflectorFixture) =>
  source.lists.map(({ resourceVersion = '' }) => resourceVersion);

/** Advances time to the next request and returns the delay. */
async function untilRequest({ source, clock }: ReflectorFixture, number: number): Promise<number> {
  const sinceMs = clock.monotonic();
  await settle();
  while (source.requests.length <= number) await clock.advance(clock.untilNext!);
  return clock.monotonic() - sinceMs;
}

function brief(request: ListCall | WatchCall): string {
  if (request.verb === 'list' && isCheck(request)) return 'check';
  return `${request.verb} ${request.resourceVersion ?? 'latest'}`;
}

interface Ending {
  readonly how: string;
  /** Number of requests that are part of the cause. */
  readonly requests?: number;
  readonly cause: (fixture: ReflectorFixture) => void | Promise<void>;
  /** Expected delay and requests. */
  readonly next: string;
}

const inStream = (how: string, error: ApiError, next: string): Ending => ({
  how: `${how} in the stream`,
  cause: ({ source }) => source.emit({ type: 'error', error }),
  next,
});

const refused = (how: string, error: ApiError, next: string): Ending => ({
  how: `a watch refused with ${how}`,
  requests: 2,
  cause: ({ source }) => {
    source.failNext('watch', error);
    source.endWatches();
  },
  next,
});

const unverified = (how: string, error: ApiError, next: string): Ending => ({
  how: `a check refused with ${how}`,
  requests: 1,
  cause: ({ source }) => {
    source.failNext('list', error);
    source.endWatches();
  },
  next,
});

const endings: Ending[] = [
  unverified('no connection', unreachable(), '800 ms, check, watch 11'),
  unverified('503', apiError('unavailable', 'starting', 503), '800 ms, check, watch 11'),
  unverified('500', apiError('internal', 'internal error', 500), '800 ms, list latest, watch 11'),
  unverified('404', notFound(), '800 ms, list latest, watch 11'),
  unverified('429', tooManyRequests(), '800 ms, check, watch 11'),
  refused('no connection', unreachable(), '800 ms, check, watch 11'),
  refused('429', tooManyRequests(), '800 ms, check, watch 11'),
  refused('503', apiError('unavailable', 'starting', 503), '800 ms, check, watch 11'),
  refused('504', apiError('timeout', 'slow', 504), '800 ms, check, watch 11'),
  refused('410', expired(), '0 ms, list 11, watch 11'),
  refused('a version from the future', tooLarge(), '800 ms, list latest, watch 11'),
  refused('500', apiError('internal', 'internal error', 500), '800 ms, list latest, watch 11'),
  refused('403', apiError('forbidden', 'no', 403), '800 ms, list latest, watch 11'),
  refused('404', notFound(), '800 ms, list latest, watch 11'),
  refused('a page of HTML', apiError('malformed', '<html>'), '800 ms, list latest, watch 11'),
  {
    how: 'a watch that ran its time',
    cause: async ({ clock, source }) => {
      for (let minute = 0; minute < 5; minute++) {
        await clock.advance(60_000);
        source.bookmark();
      }
      await settle();
      source.endWatches();
    },
    next: '0 ms, watch 11',
  },
  {
    how: 'a watch that ends before its time',
    cause: ({ source }) => source.endWatches(),
    next: '0 ms, check, watch 11',
  },
  {
    how: 'a watch that ends without an event or a bookmark',
    requests: 2,
    cause: async ({ clock, source }) => {
      source.endWatches();
      source.activity = { lastMs: Infinity };
      await clock.advance(299_000);
      source.endWatches();
    },
    next: '0 ms, check, watch 11',
  },
  {
    how: 'a watch that ends within a second, without an event,',
    requests: 2,
    cause: async ({ source }) => {
      source.endWatches();
      await settle();
      source.endWatches();
    },
    next: '800 ms, list 11, watch 11',
  },
  {
    how: 'a watch that ends within a second, after an event,',
    requests: 2,
    cause: async ({ source }) => {
      source.endWatches();
      await settle();
      source.put('b');
      await settle();
      source.endWatches();
    },
    next: '0 ms, check, watch 12',
  },
  {
    how: 'a cut connection',
    cause: ({ source }) => source.resetWatches(),
    next: '0 ms, check, watch 11',
  },
  {
    how: 'a line that is no event',
    cause: ({ source }) => source.resetWatches(apiError('malformed', 'no JSON')),
    next: '800 ms, list 11, watch 11',
  },
  inStream('410', expired(), '0 ms, list 11, watch 11'),
  inStream('410 with reason Gone', apiError('gone', 'gone', 410), '0 ms, list 11, watch 11'),
  inStream('429', tooManyRequests(), '800 ms, check, watch 11'),
  inStream('500', apiError('internal', 'corrupt', 500), '800 ms, list 11, watch 11'),
  inStream('403', apiError('forbidden', 'no', 403), '800 ms, list 11, watch 11'),
];

for (const { how, requests = 0, cause, next } of endings) {
  // upstream: 1, 34d, 34e, 34g, 34m
  test(`continues with ${next} after ${how}`, async () => {
    const fixture = reflectorFixture();
    const { source } = fixture;
    await fixture.start();
    source.put('a');
    await fixture.clock.advance(2000);
    const soFar = source.requests.length + requests;
    await cause(fixture);
    const waitedMs = await untilRequest(fixture, soFar);
    await settle();
    const asked = source.requests.slice(soFar).map(brief);
    assert.equal([`${waitedMs} ms`, ...asked].join(', '), next);
    assert.equal(source.openWatches, 1);
    const open = source.watches.filter(({ signal }) => !signal?.aborted);
    assert.deepEqual(open, [source.watches.at(-1)], 'every other watch was closed');
    await fixture.stop();
    assert.equal(source.openWatches, 0);
  });
}

/** Ends a watch in a way that causes a relist, and waits for it. */
async function relist(fixture: ReflectorFixture): Promise<void> {
  await settle();
  const soFar = fixture.source.requests.length;
  fixture.source.emit({ type: 'error', error: expired() });
  await untilRequest(fixture, soFar);
  await settle();
}

// upstream: 19
test('relists at the last resourceVersion: 0, then 10', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  await relist(fixture);
  assert.deepEqual(listedVersions(fixture), ['0', '10']);
  await fixture.stop();
});

// upstream: 16
test('uses a custom page size in the first list and in relists', async () => {
  const fixture = reflectorFixture('refused', {}, { pageSize: 4 });
  const objects = Array.from({ length: 10 }, (_, at) => thing(`thing-${at}`));
  fixture.source.restore(10, objects);
  await fixture.start();
  await relist(fixture);
  assert.deepEqual(
    fixture.source.lists.map(({ resourceVersion = '', limit }) => `${resourceVersion} ${limit}`),
    ['0 4', ' 4', ' 4', '10 4', ' 4', ' 4'],
  );
  for (const delta of fixture.deltas) {
    assert.deepEqual(delta.type === 'replaced' && delta.objects, objects);
  }
  await fixture.stop();
});

// upstream: 20
test('lists the latest state at once after an expired resourceVersion', async () => {
  const fixture = reflectorFixture();
  await fixture.start();
  fixture.source.skip();
  fixture.source.failNext('list', expired());
  await relist(fixture);
  assert.deepEqual(listedVersions(fixture), ['0', '10', '']);
  await relist(fixture);
  assert.deepEqual(listedVersions(fixture), ['0', '10', '', '11']);
  await fixture.stop();
});

// upstream: 22
test('lists the latest state after "too large resource version", in three encodings', async () => {
  const fixture = reflectorFixture();
  const words = 'Too large resource version';
  const encodings = [
    { reason: 'Timeout', details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } },
    { reason: 'Timeout', details: { causes: [{ message: words }] } },
    { reason: 'Timeout', message: words },
  ].map((status) => ApiError.fromStatus(status, 504));
  fixture.source.skip(10);
  await fixture.start();
  for (const error of encodings) {
    fixture.source.skip(10);
    fixture.source.failNext('list', error);
    await relist(fixture);
  }
  assert.deepEqual(listedVersions(fixture), ['0', '20', '', '30', '', '40', '']);
  await fixture.stop();
});

// upstream: 21
test('lists everything, then the latest, if a token expires in a relist', async () => {
  const asked: string[] = [];
  let wholeLists = 0;
  const inner = reflectorFixture().source;
  const objects = Array.from({ length: 501 }, (_, at) => thing(`thing-${at}`));
  inner.restore(10, objects);
  const fixture = reflectorFixture('refused', {
    source: {
      list: (request) => {
        const { resourceVersion = '', limit = 'all', continueToken } = request;
        asked.push(`${continueToken ? 'more' : resourceVersion} ${limit}`);
        if (limit === 'all' && ++wholeLists === 2) throw expired();
        return inner.list(request);
      },
      watch: (request) => inner.watch(request),
    },
  });
  const again = async () => {
    inner.failNext('continue', expired());
    inner.emit({ type: 'error', error: expired() });
    await settle();
    assert.equal(fixture.reflector.progress.phase, 'waiting');
    await fixture.clock.advance(fixture.clock.untilNext!);
  };
  await fixture.start();
  assert.deepEqual(asked.splice(0), ['0 500', 'more 500']);
  await again();
  assert.deepEqual(asked.splice(0), ['10 500', 'more 500', '10 all']);
  await again();
  assert.deepEqual(asked.splice(0), ['10 500', 'more 500', '10 all', ' 500', 'more 500']);
  assert.equal(fixture.reflector.progress.phase, 'watching');
  await fixture.stop();
});

// upstream: 12
test('delays after each 429, without a list until a watch fails', async () => {
  const fixture = reflectorFixture();
  const { source, clock } = fixture;
  await fixture.start();
  await clock.advance(2000);
  source.failNext('watch', tooManyRequests());
  source.endWatches();
  await settle();
  assert.equal(clock.untilNext, 800);
  await clock.advance(800);
  source.emit({ type: 'error', error: tooManyRequests() });
  await settle();
  assert.equal(clock.untilNext, 1600);
  await clock.advance(1600);
  assert.equal(source.lists.length, 1);
  source.endWatches();
  await settle();
  assert.equal(clock.untilNext, 3200);
  await clock.advance(3200);
  assert.equal(source.lists.length, 2);
  await fixture.stop();
});

for (const random of [0, 0.25, 0.999_999]) {
  // upstream: 34b
  test(`keeps every delay between its base and twice its base, with random ${random}`, async () => {
    const fixture = reflectorFixture('refused', { random: () => random });
    fixture.source.failNext('list', unreachable(), 8);
    await fixture.start();
    const bases = [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000];
    for (const base of bases) {
      const delayMs = fixture.clock.untilNext!;
      assert.ok(delayMs >= base && delayMs < 2 * base, `${delayMs} ms with a base of ${base}`);
      assert.equal(delayMs.toFixed(3), (base * (1 + random)).toFixed(3));
      await fixture.clock.advance(delayMs);
    }
    await fixture.stop();
  });
}

// upstream: 9
test('ends with the server’s state, without duplicates, after any failures', async () => {
  const fixture = reflectorFixture();
  const { source, clock } = fixture;
  source.put('a', 1);
  source.failNext('list', apiError('internal', 'internal error', 500));
  source.failNext('watch', unreachable());
  source.failNext('watch', apiError('internal', 'internal error', 500), 2);
  await fixture.start();
  await clock.advance(10_000);
  source.put('b', 2);
  await settle();
  source.emit({ type: 'error', error: apiError('internal', 'corrupt', 500) });
  source.remove('a');
  source.failNext('list', expired(), 2);
  await clock.advance(30_000);
  source.put('c', 3);
  source.resetWatches();
  source.put('b', 4);
  await clock.advance(5000);
  const cache = new Map<string, Thing>();
  for (const delta of fixture.deltas) {
    if (delta.type === 'replaced') {
      cache.clear();
      for (const object of delta.objects) {
        assert.equal(cache.has(keyOf(object)), false);
        cache.set(keyOf(object), object);
      }
    } else if (delta.type === 'changed') cache.set(delta.key, delta.object);
    else if (delta.type === 'deleted') assert.ok(cache.delete(delta.key));
  }
  assert.deepEqual([...cache.values()], source.objects);
  assert.deepEqual(
    source.objects.map(({ spec }) => spec.value),
    [4, 3],
  );
  await fixture.stop();
});

// upstream: 4
test('abandons a watch without a response on abort', async () => {
  let asked = 0;
  const inner = reflectorFixture().source;
  const fixture = reflectorFixture('refused', {
    source: {
      list: (request) => inner.list(request),
      watch: ({ signal, sendInitialEvents }) => {
        if (sendInitialEvents) throw apiError('invalid', 'no streaming', 422);
        asked++;
        return new Promise<never>((_, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason as Error));
        });
      },
    },
  });
  await fixture.start();
  assert.equal(asked, 1);
  await fixture.stop();
  assert.deepEqual([fixture.clock.pending, asked], [0, 1]);
  assert.deepEqual(fixture.shown(), []);
});

test('reports a missing resource only until the next response', async () => {
  const fixture = reflectorFixture();
  fixture.source.missing = true;
  await fixture.start();
  assert.equal(fixture.reflector.progress.missing, true);
  fixture.source.failNext('list', unreachable());
  await fixture.clock.advance(fixture.clock.untilNext!);
  assert.equal(fixture.reflector.progress.missing, false);
  assert.match(fixture.reflector.progress.reason!, /ECONNREFUSED/);
  await fixture.clock.advance(fixture.clock.untilNext!);
  assert.equal(fixture.reflector.progress.missing, true);
  await fixture.stop();
});

for (const error of [
  apiError('invalid', 'resourceVersion: Invalid value: "10"', 422),
  apiError('badRequest', 'invalid resource version', 400),
]) {
  // upstream: 34j
  test(`does not send a resourceVersion again that the server cannot parse (${error.code})`, async () => {
    const fixture = reflectorFixture();
    await fixture.start();
    fixture.source.failNext('list', error);
    await relist(fixture);
    assert.deepEqual(listedVersions(fixture), ['0', '10', '']);
    fixture.source.failNext('list', error, 2);
    await relist(fixture);
    assert.equal(fixture.reflector.progress.phase, 'waiting', 'it was not the resourceVersion');
    await fixture.stop();
  });
}
