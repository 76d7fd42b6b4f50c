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

test('a body is read up to its limit, and the request stays open', async () => {
  const bodies = new RequestBodies();
  assert.equal(await bodies.read(bodyOf(3, 4).end(), 7, lengthOf), 7);
  const long = bodyOf(3, 5);
  assert.equal(await bodies.read(long, 7, lengthOf), 'tooLarge');
  assert.ok(!long.destroyed);
});

test('large bodies share a limit, which does not affect small bodies', async () => {
  const bodies = new RequestBodies();
  const open = Array.from({ length: 3 }, () => bodyOf(20 * MIB));
  const reads = open.map((body) => bodies.read(body, 32 * MIB, lengthOf));
  await settle();
  assert.equal(await bodies.read(bodyOf(5 * MIB).end(), 32 * MIB, lengthOf), 'busy');
  assert.equal(await bodies.read(bodyOf(64 * 1024).end(), MIB, lengthOf), 64 * 1024);
  for (const body of open) body.end();
  assert.deepEqual(await Promise.all(reads), [20 * MIB, 20 * MIB, 20 * MIB]);
  assert.equal(await bodies.read(bodyOf(5 * MIB).end(), 32 * MIB, lengthOf), 5 * MIB);
});

test('a request that breaks off releases its memory', async () => {
  const bodies = new RequestBodies();
  for (let times = 0; times < 3; times++) {
    const broken = bodyOf(40 * MIB);
    const read = bodies.read(broken, 64 * MIB, lengthOf);
    await settle();
    broken.destroy(new Error('reset'));
    await assert.rejects(read, /reset/);
  }
});
