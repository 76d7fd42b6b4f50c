import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeparateTurns } from '../../../src/replay/separate-turns.ts';

test('callers continue one after another, each after the promise reactions before it', async () => {
  const turns = new SeparateTurns();
  const order: string[] = [];
  const run = async (name: string) => {
    await turns.next();
    for (let step = 0; step < 3; step++) {
      order.push(name);
      await Promise.resolve();
    }
  };
  const other = async () => {
    for (let step = 0; step < 3; step++) {
      await Promise.resolve();
      order.push('other');
    }
  };
  await Promise.all([run('a'), run('b'), other()]);
  assert.equal(order.join(' '), 'other other other a a a b b b');
});
