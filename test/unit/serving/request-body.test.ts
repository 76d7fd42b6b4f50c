import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { RequestBodies } from '../../../src/serving/request-body.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { SlowBodyError } from '../../../src/util/body-memory.ts';

/** Maximum length of a small body. */
const UNIT = 64 * 1024;

function bodyOf(...lengths: readonly number[]): PassThrough {
  const body = new PassThrough();
  for (const length of lengths) body.write(Buffer.alloc(length));
  return body;
}

const lengthOf = (body: Buffer) => body.length;

function fixture() {
  const clock = new FakeClock();
  const bodies = new RequestBodies({ bytes: 16 * UNIT, clock });
  const read = (
    request: PassThrough,
    maxBytes: number,
    contentLength?: number,
    { signal = new AbortController().signal, address = 'a' } = {},
  ) => {
    const body = { request, maxBytes, contentLength: contentLength?.toString(), address, signal };
    const length = bodies.read(body, lengthOf);
    length.catch(() => undefined);
    return length;
  };
  /** Starts bodies that announce the maximum and stop after `bytes`. */
  const stalled = async (count: number, bytes: number, address = 'a') => {
    const reading = Array.from({ length: count }, () =>
      read(bodyOf(bytes), 112 * UNIT, 112 * UNIT, { address }),
    );
    await settle();
    return { reading };
  };
  return { read, stalled, clock };
}

test('a body is read up to its limit, and the request stays open', async () => {
  const { read } = fixture();
  assert.equal(await read(bodyOf(3, 4).end(), 7), 7);
  const long = bodyOf(3, 5);
  assert.equal(await read(long, 7), undefined);
  assert.ok(!long.destroyed);
  assert.equal(await read(bodyOf(), 7, 8), undefined);
  assert.equal(await read(bodyOf(), 7, Number.NaN), undefined);
});

test('bodies that were announced and not sent use no memory', async () => {
  const { read, stalled } = fixture();
  await stalled(20, 0);
  await stalled(20, UNIT);
  assert.equal(await read(bodyOf(12 * UNIT).end(), 32 * UNIT, 12 * UNIT), 12 * UNIT);
});

test('a body below the minimum rate is given up, also if it is small', async () => {
  const { read, clock } = fixture();
  const nothing = read(bodyOf(), 112 * UNIT, 10);
  const request = bodyOf(1);
  const drip = read(request, 112 * UNIT, 10);
  for (let second = 0; second < 3; second++) {
    request.write('x');
    await clock.advance(1000);
  }
  await assert.rejects(nothing, SlowBodyError);
  await assert.rejects(drip, SlowBodyError);
  const fast = bodyOf(8 * UNIT);
  const reading = read(fast, 112 * UNIT);
  await clock.advance(5000);
  assert.equal(await read(bodyOf(UNIT).end(), UNIT), UNIT);
  fast.end();
  assert.equal(await reading, 8 * UNIT);
});

test('the slowest incomplete bodies are given up when the memory is used up', async () => {
  const { read, stalled, clock } = fixture();
  const { reading: slow } = await stalled(6, 4 * UNIT);
  const other = read(bodyOf(12 * UNIT).end(), 32 * UNIT, 12 * UNIT);
  await settle();
  assert.equal(await read(bodyOf(UNIT).end(), UNIT), UNIT, 'a small body does not wait');
  await clock.advance(300);
  assert.equal(await other, 12 * UNIT);
  let lost = 0;
  for (const each of slow) void each.catch(() => lost++);
  await settle();
  assert.ok(lost >= 2 && lost <= 5, `${lost} of 6 were given up`);
});

test('bodies that hold much do not delay another one by their turns', async () => {
  const { read, stalled, clock } = fixture();
  await stalled(50, 8 * UNIT);
  const body = bodyOf(3 * UNIT);
  const other = read(body, 32 * UNIT, 12 * UNIT);
  await settle();
  body.end(Buffer.alloc(9 * UNIT));
  let length: number | undefined;
  void other.then((received) => (length = received));
  await clock.advance(1000);
  assert.equal(length, 12 * UNIT);
});

test('one body continues if all wait for memory', async () => {
  const { read, clock } = fixture();
  const requests = Array.from({ length: 4 }, () => bodyOf(6 * UNIT));
  const reading = requests.map((request) => read(request, 32 * UNIT));
  await settle();
  for (const request of requests) request.end(Buffer.alloc(4 * UNIT));
  await clock.advance(100);
  assert.deepEqual(await Promise.all(reading), Array(4).fill(10 * UNIT));
});

test('an address below its share does not wait for bodies of other addresses', async () => {
  const { read, stalled } = fixture();
  await stalled(100, 4 * UNIT);
  const address = 'b';
  const body = bodyOf(4 * UNIT).end(Buffer.alloc(3 * UNIT));
  assert.equal(await read(body, 112 * UNIT, 7 * UNIT, { address }), 7 * UNIT);
});

test('a request that breaks off, or that waits too long, releases its memory', async () => {
  const { read, clock } = fixture();
  const broken = bodyOf(16 * UNIT);
  const reading = read(broken, 32 * UNIT);
  const client = new AbortController();
  const gone = read(bodyOf(4 * UNIT), 16 * UNIT, 16 * UNIT, { signal: client.signal });
  await settle();
  client.abort(new Error('gone'));
  await assert.rejects(gone, /gone/);
  broken.destroy(new Error('reset'));
  await assert.rejects(reading, /reset/);
  assert.equal(await read(bodyOf(16 * UNIT).end(), 16 * UNIT, 16 * UNIT), 16 * UNIT);
  await clock.advance(10_000);
});
