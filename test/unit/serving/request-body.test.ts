import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { RequestBodies } from '../../../src/serving/request-body.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { OverloadedError } from '../../../src/util/memory-budget.ts';

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
    { signal } = new AbortController(),
  ) =>
    bodies.read({ request, maxBytes, contentLength: contentLength?.toString(), signal }, lengthOf);
  return { read, clock };
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

test('large bodies wait for memory in their order, and small ones do not', async () => {
  const { read } = fixture();
  const first = bodyOf();
  const reading = read(first, 32 * UNIT, 12 * UNIT);
  const order: string[] = [];
  const second = read(bodyOf(5 * UNIT).end(), 32 * UNIT, 5 * UNIT).then((length) => {
    order.push('second');
    return length;
  });
  // Without a length, the body may need all memory.
  const third = read(bodyOf(UNIT).end(), 32 * UNIT).then((length) => {
    order.push('third');
    return length;
  });
  const small = await read(bodyOf(UNIT).end(), 32 * UNIT, UNIT);
  assert.equal(small, UNIT);
  await settle();
  assert.deepEqual(order, []);
  first.end(Buffer.alloc(12 * UNIT));
  assert.deepEqual(await Promise.all([reading, second, third]), [12 * UNIT, 5 * UNIT, UNIT]);
  assert.deepEqual(order, ['second', 'third']);
});

test('a body that waits too long for memory is refused, and a body of unknown length waits', async () => {
  const { read, clock } = fixture();
  const first = bodyOf();
  const reading = read(first, 16 * UNIT);
  const refused = assert.rejects(read(bodyOf(), 16 * UNIT, UNIT + 1), OverloadedError);
  await clock.advance(5000);
  await refused;
  first.end();
  assert.equal(await reading, 0);
});

test('a request that breaks off releases its memory, also while it waits', async () => {
  const { read } = fixture();
  const broken = bodyOf(UNIT);
  const reading = read(broken, 16 * UNIT, 16 * UNIT);
  const client = new AbortController();
  const gone = read(bodyOf(), 16 * UNIT, 16 * UNIT, client);
  const last = read(bodyOf(16 * UNIT).end(), 16 * UNIT, 16 * UNIT);
  client.abort(new Error('gone'));
  await assert.rejects(gone, /gone/);
  broken.destroy(new Error('reset'));
  await assert.rejects(reading, /reset/);
  assert.equal(await last, 16 * UNIT);
});
