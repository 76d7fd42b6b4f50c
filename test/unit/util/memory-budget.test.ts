import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { MemoryBudget, OverloadedError } from '../../../src/util/memory-budget.ts';

/** A budget of ten bytes on virtual time, with the names of started work. */
function fixture() {
  const clock = new FakeClock();
  const memory = new MemoryBudget({ bytes: 10, clock });
  const started: string[] = [];
  const start = (name: string, bytes: number, { signal } = new AbortController()) => {
    const end = new Deferred();
    const result = memory.use(bytes, signal, async () => {
      started.push(name);
      await end.promise;
      return name;
    });
    result.catch(() => undefined);
    return { result, end };
  };
  return { clock, memory, started, start };
}

test('work starts while there is memory, and waits in its order', async () => {
  const { clock, started, start } = fixture();
  const a = start('a', 4);
  const b = start('b', 6);
  start('c', 7);
  // There is memory for it when a ends, but it must not overtake.
  start('d', 1);
  await settle();
  assert.deepEqual(started, ['a', 'b']);
  a.end.resolve();
  assert.equal(await a.result, 'a');
  await settle();
  assert.deepEqual(started, ['a', 'b']);
  b.end.resolve();
  await settle();
  assert.deepEqual(started, ['a', 'b', 'c', 'd']);
  assert.equal(clock.pending, 0);
});

test('work that needs more than there is runs alone', async () => {
  const { started, start } = fixture();
  const small = start('small', 1);
  const huge = start('huge', 1000);
  start('next', 1);
  small.end.resolve();
  await settle();
  assert.deepEqual(started, ['small', 'huge']);
  huge.end.resolve();
  await settle();
  assert.deepEqual(started, ['small', 'huge', 'next']);
});

test('work that fails frees its memory', async () => {
  const { memory, started, start } = fixture();
  const { signal } = new AbortController();
  const failed = memory.use(10, signal, () => {
    throw new Error('broken');
  });
  start('next', 10);
  await assert.rejects(failed, /broken/);
  await settle();
  assert.deepEqual(started, ['next']);
});

test('work that waits too long is refused, and does not keep others waiting', async () => {
  const { clock, started, start } = fixture();
  const first = start('first', 5);
  const large = start('large', 10);
  await clock.advance(4000);
  start('small', 5);
  await clock.advance(999);
  assert.deepEqual(started, ['first']);
  await clock.advance(1);
  await assert.rejects(large.result, OverloadedError);
  assert.deepEqual(started, ['first', 'small']);
  first.end.resolve();
  await first.result;
  assert.equal(clock.pending, 0);
});

test('work whose caller leaves is not started', async () => {
  const { started, start } = fixture();
  const first = start('first', 10);
  const client = new AbortController();
  const gone = start('gone', 10, client);
  start('next', 10);
  client.abort(new Error('gone'));
  await assert.rejects(gone.result, /gone/);
  first.end.resolve();
  await settle();
  assert.deepEqual(started, ['first', 'next']);
});

test('no memory is lost if the caller leaves at the moment of the start', async () => {
  for (let turns = 0; turns < 8; turns++) {
    const { started, start } = fixture();
    const first = start('first', 10);
    const client = new AbortController();
    const leaving = start('leaving', 10, client);
    start('next', 10);
    first.end.resolve();
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    client.abort(new Error('gone'));
    leaving.end.resolve();
    await settle();
    assert.equal(started.at(-1), 'next');
  }
});
