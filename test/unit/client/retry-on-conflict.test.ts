import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import { retryOnConflict } from '../../../src/client/retry-on-conflict.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

const conflict = () => new ApiError({ kind: 'conflict', message: 'stale', code: 409 });

// upstream: 91
test('retries a conflict after 10 ms plus at most 10 % jitter until it succeeds', async () => {
  const clock = new FakeClock();
  const times: number[] = [];
  const outcome = retryOnConflict(
    async () => {
      times.push(clock.monotonic());
      if (times.length < 3) throw conflict();
      return 'done';
    },
    { clock, random: () => 0.5 },
  );
  await clock.advance(100);
  assert.equal(await outcome, 'done');
  assert.deepEqual(times, [0, 10.5, 21]);
});

// upstream: 91
test('rejects with the fifth conflict', async () => {
  const clock = new FakeClock();
  let calls = 0;
  const errors: ApiError[] = [];
  const outcome = assert.rejects(
    retryOnConflict(
      async () => {
        calls++;
        errors.push(conflict());
        throw errors.at(-1);
      },
      { clock, random: () => 0 },
    ),
    (error) => error === errors.at(-1),
  );
  await clock.advance(1000);
  await outcome;
  assert.equal(calls, 5);
});

// upstream: 91
test('rejects with other errors at once, and stops waiting on abort', async () => {
  let calls = 0;
  const planted = new Error('planted');
  await assert.rejects(
    retryOnConflict(async () => {
      calls++;
      throw planted;
    }),
    planted,
  );
  assert.equal(calls, 1);
  const abort = new AbortController();
  const reason = new Error('enough');
  const waiting = retryOnConflict(
    async () => {
      throw conflict();
    },
    { clock: new FakeClock(), signal: abort.signal },
  );
  setImmediate(() => abort.abort(reason));
  await assert.rejects(waiting, reason);
});

// upstream: 91
test('calls the change at most as often as `steps` says', async () => {
  const clock = new FakeClock();
  const after = async (conflicts: number, steps: number): Promise<string> => {
    let calls = 0;
    const change = async () => {
      if (calls++ < conflicts) throw conflict();
      return `call ${calls}`;
    };
    const outcome = retryOnConflict(change, { clock, steps, random: () => 0 }).catch(
      () => `failed after ${calls}`,
    );
    await clock.advance(1000);
    return outcome;
  };
  assert.equal(await after(0, 1), 'call 1');
  assert.equal(await after(1, 1), 'failed after 1');
  assert.equal(await after(1, 2), 'call 2');
  assert.equal(await after(2, 2), 'failed after 2');
  assert.equal(await after(4, 5), 'call 5');
});

// upstream: 91
test('rejects at once with another error after a conflict', async () => {
  const clock = new FakeClock();
  const errors = [conflict(), new ApiError({ kind: 'notFound', message: 'gone', code: 404 })];
  const outcome = assert.rejects(
    retryOnConflict(() => Promise.reject(errors.shift()), { clock, random: () => 0 }),
    { kind: 'notFound' },
  );
  await clock.advance(10);
  await outcome;
  assert.deepEqual(errors, []);
});
