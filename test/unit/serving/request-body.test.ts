import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { RequestBodies } from '../../../src/serving/request-body.ts';
import { settle } from '../../../src/util/fake-clock.ts';

const MIB = 1024 ** 2;

function bodyOf(...lengths: readonly number[]): PassThrough {
  const body = new PassThrough();
  for (const length of lengths) body.write(Buffer.alloc(length));
  return body;
}

const lengthOf = (body: Buffer) => body.length;

function fixture() {
  const bodies = new RequestBodies();
  const read = (
    request: PassThrough,
    maxBytes: number,
    contentLength?: number,
    { signal } = new AbortController(),
  ) =>
    bodies.read({ request, maxBytes, contentLength: contentLength?.toString(), signal }, lengthOf);
  return { read };
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
  const reading = read(first, 32 * MIB, 12 * MIB);
  const order: string[] = [];
  const second = read(bodyOf(5 * MIB).end(), 32 * MIB, 5 * MIB).then((length) => {
    order.push('second');
    return length;
  });
  // Without a length, the body may need all memory.
  const third = read(bodyOf(MIB).end(), 32 * MIB).then((length) => {
    order.push('third');
    return length;
  });
  const small = await read(bodyOf(64 * 1024).end(), MIB, 64 * 1024);
  assert.equal(small, 64 * 1024);
  await settle();
  assert.deepEqual(order, []);
  first.end(Buffer.alloc(12 * MIB));
  assert.deepEqual(await Promise.all([reading, second, third]), [12 * MIB, 5 * MIB, MIB]);
  assert.deepEqual(order, ['second', 'third']);
});

test('a request that breaks off releases its memory, also while it waits', async () => {
  const { read } = fixture();
  const broken = bodyOf(MIB);
  const reading = read(broken, 16 * MIB, 16 * MIB);
  const client = new AbortController();
  const gone = read(bodyOf(), 16 * MIB, 16 * MIB, client);
  const last = read(bodyOf(16 * MIB).end(), 16 * MIB, 16 * MIB);
  client.abort(new Error('gone'));
  await assert.rejects(gone, /gone/);
  broken.destroy(new Error('reset'));
  await assert.rejects(reading, /reset/);
  assert.equal(await last, 16 * MIB);
});
