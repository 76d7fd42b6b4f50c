import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServerReachability } from '../../../src/client/server-reachability.ts';

test('reports the last return of a server after an absence of at least 2 s', () => {
  for (const [failed, answered, returnedMs] of [
    [[], [5000], -Infinity],
    [[1000], [2999], -Infinity],
    [[1000], [3000], 3000],
    [[1000, 2500], [3000], 3000],
    [[1000], [2000, 9000], -Infinity],
    [[1000], [4000, 9000], 4000],
  ] as const) {
    const server = new ServerReachability();
    for (const ms of failed) server.failed(ms);
    for (const ms of answered) server.answered(ms);
    assert.equal(server.returnedMs, returnedMs, JSON.stringify([failed, answered]));
  }
});

test('calls each listener at each response until it is removed', () => {
  const server = new ServerReachability();
  const calls: string[] = [];
  const remove = server.onAnswer(() => calls.push('a'));
  server.onAnswer(() => calls.push('b'));
  server.failed(0);
  server.answered(1);
  remove();
  server.answered(2);
  assert.deepEqual(calls, ['a', 'b', 'b']);
});
