import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import { QuietConflicts } from '../../../src/manager/sync-failures.ts';
import { done } from '../../../src/workqueue/outcome.ts';
import type { Outcome } from '../../../src/workqueue/outcome.ts';

const CONFLICT = new ApiError({ kind: 'conflict', message: 'changed' });

/** Returns a function that runs the sync of a key with a result. */
function syncs() {
  let result: Outcome | Error = done();
  const wrapped = new QuietConflicts<string>().wrap(async () => {
    if (result instanceof Error) throw result;
    return result;
  });
  return async (key: string, next: Outcome | Error) => {
    result = next;
    return wrapped(key, undefined).catch((error: unknown) => error);
  };
}

test('the first five conflicts of a key in a row are postponed, with growing delays', async () => {
  const sync = syncs();
  const delays: number[] = [];
  for (let conflict = 0; conflict < 5; conflict++) {
    const outcome = (await sync('a', CONFLICT)) as Extract<Outcome, { readonly ms: number }>;
    delays.push(outcome.ms);
  }
  assert.deepEqual(
    delays,
    delays.toSorted((a, b) => a - b),
  );
  assert.ok(Number(delays.at(-1)) > Number(delays[0]));
  assert.equal(await sync('a', CONFLICT), CONFLICT);
  assert.notEqual(await sync('b', CONFLICT), CONFLICT, 'another key');
});

for (const [what, result] of [
  ['a sync', done()],
  ['another error', new Error('other')],
] as const) {
  test(`conflicts are counted again after ${what}`, async () => {
    const sync = syncs();
    for (let conflict = 0; conflict < 5; conflict++) await sync('a', CONFLICT);
    assert.equal(await sync('a', result), result);
    assert.notEqual(await sync('a', CONFLICT), CONFLICT);
  });
}
