import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Throttle } from '../../../src/client/throttle.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

/** Serves an empty object. */
const serveObject: HttpHandler = async () => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: (async function* () {
    yield Buffer.from('{}');
  })(),
});

/** Returns when each of several concurrent callers may send, in milliseconds. */
async function sent(throttle: Throttle, clock: FakeClock, callers: number): Promise<number[]> {
  const startMs = clock.monotonic();
  const times: number[] = [];
  const waits = Array.from({ length: callers }, () =>
    throttle.wait().then(() => times.push(clock.monotonic() - startMs)),
  );
  await clock.advance(60_000);
  await Promise.all(waits);
  return times;
}

test('sends a burst at once, then one request per interval, in order', async () => {
  const clock = new FakeClock();
  const throttle = new Throttle({ qps: 2, burst: 3, clock });
  assert.deepEqual(await sent(throttle, clock, 6), [0, 0, 0, 500, 1000, 1500]);
});

test('refills the bucket up to the burst', async () => {
  const clock = new FakeClock();
  const throttle = new Throttle({ qps: 2, burst: 3, clock });
  await sent(throttle, clock, 3);
  await clock.advance(3_600_000);
  assert.deepEqual(await sent(throttle, clock, 5), [0, 0, 0, 500, 1000]);
});

test('returns the waiting time, and an abort ends the wait', async () => {
  const clock = new FakeClock();
  const throttle = new Throttle({ qps: 1, burst: 1, clock });
  assert.equal(await throttle.wait(), 0);
  const waiting = throttle.wait();
  const stop = new AbortController();
  const aborted = throttle.wait(stop.signal);
  await clock.advance(400);
  stop.abort();
  assert.equal(await aborted, 400);
  await clock.advance(600);
  assert.equal(await waiting, 1000);
});

test('rejects rates that permit no request', () => {
  const clock = new FakeClock();
  for (const [qps, burst] of [
    [0, 1],
    [-1, 1],
    [Number.NaN, 1],
    [1, 0],
    [1, 0.5],
  ] as const) {
    assert.throws(() => new Throttle({ qps, burst, clock }), RangeError);
  }
  assert.ok(new Throttle({ qps: 0.1, burst: 1, clock }));
});

test('applies the rate limit to retries', async () => {
  const clock = new FakeClock();
  const times: number[] = [];
  const handler: HttpHandler = async () => {
    times.push(clock.monotonic());
    const status = times.length < 3 ? 503 : 200;
    async function* body() {
      yield new TextEncoder().encode('{}');
    }
    return {
      status,
      headers: { 'retry-after': '1', 'content-type': 'application/json' },
      body: body(),
    };
  };
  const client = new HttpClient({ handler, server: 'https://test', clock, qps: 0.1, burst: 1 });
  const startMs = clock.monotonic();
  const answer = client.raw({ path: '/version' });
  await clock.advance(60_000);
  await answer;
  assert.deepEqual(
    times.map((ms) => ms - startMs),
    [0, 10_000, 20_000],
  );
});

test('permits bursts of twice the rate by default, and logs long waits', async () => {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const client = new HttpClient({
    handler: serveObject,
    server: 'https://test',
    clock,
    log,
    qps: 1,
  });
  const calls = Array.from({ length: 4 }, () => client.raw({ path: '/version' }));
  await clock.advance(2000);
  await Promise.all(calls);
  const waits = () =>
    lines
      .splice(0)
      .flatMap(({ level, message, fields }) =>
        message === 'Waited before sending request'
          ? [[level, fields['delay'], fields['verb']]]
          : [],
      );
  assert.deepEqual(waits(), [
    [3, '1s', 'GET'],
    [2, '2s', 'GET'],
  ]);
  const fast = new HttpClient({
    handler: serveObject,
    server: 'https://test',
    clock,
    log,
    qps: 20,
  });
  const many = Array.from({ length: 42 }, () => fast.raw({ path: '/version' }));
  await clock.advance(100);
  await Promise.all(many);
  assert.deepEqual(waits(), [[3, '0.1s', 'GET']]);
});
