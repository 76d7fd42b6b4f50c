import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newQueueItem } from '../../../src/workqueue/queue-item.ts';
import type { QueueItem } from '../../../src/workqueue/queue-item.ts';
import { ReadyKeys } from '../../../src/workqueue/ready-keys.ts';

const AGEING_TURNS = 10;

/** Ready keys by name. */
function newKeys() {
  const ready = new ReadyKeys<QueueItem<string>>();
  const items = new Map<string, QueueItem<string>>();
  return {
    get size() {
      return ready.size;
    },
    add: (key: string, priority: number, tenant: string) => {
      const item = newQueueItem(key, tenant, priority, 0);
      items.set(key, item);
      ready.add(item);
    },
    remove: (key: string) => ready.remove(items.get(key) ?? assert.fail()),
    next: () => ready.next()?.key,
  };
}

function drain(keys: ReturnType<typeof newKeys>): string[] {
  const order: string[] = [];
  for (let key = keys.next(); key !== undefined; key = keys.next()) order.push(key);
  return order;
}

// upstream: 92k
test('returns keys of one priority and tenant in order of arrival', () => {
  const keys = newKeys();
  for (const key of ['c', 'a', 'b']) keys.add(key, 0, '');
  assert.equal(keys.size, 3);
  assert.deepEqual(drain(keys), ['c', 'a', 'b']);
  assert.equal(keys.size, 0);
});

// upstream: 92k
test('returns higher priorities first', () => {
  const keys = newKeys();
  keys.add('low', -100, '');
  keys.add('normal', 0, '');
  keys.add('high', 5, '');
  keys.add('normal too', 0, '');
  assert.deepEqual(drain(keys), ['high', 'normal', 'normal too', 'low']);
});

// upstream: 92n
test('lets tenants take turns', () => {
  const keys = newKeys();
  for (let i = 0; i < 5; i++) keys.add(`flood ${i}`, 0, 'flood');
  keys.add('b0', 0, 'b');
  keys.add('c0', 0, 'c');
  keys.add('b1', 0, 'b');
  const order = ['flood 0', 'b0', 'c0', 'flood 1', 'b1', 'flood 2', 'flood 3', 'flood 4'];
  assert.deepEqual(drain(keys), order);
});

test('appends a tenant that is added again to the round', () => {
  const keys = newKeys();
  keys.add('a0', 0, 'a');
  keys.add('b0', 0, 'b');
  keys.add('c0', 0, 'c');
  assert.equal(keys.next(), 'a0');
  keys.add('a1', 0, 'a');
  assert.deepEqual(drain(keys), ['b0', 'c0', 'a1']);
});

test('removes a key without a trace', () => {
  const keys = newKeys();
  keys.add('a', 0, 'x');
  keys.add('b', 0, 'x');
  keys.add('c', 0, 'x');
  keys.remove('b');
  assert.equal(keys.size, 2);
  assert.deepEqual(drain(keys), ['a', 'c']);
});

test('gives no turn to a tenant or priority whose last key was removed', () => {
  const keys = newKeys();
  keys.add('x1', 0, 'x');
  keys.add('y1', 0, 'y');
  keys.add('high', 5, 'x');
  keys.remove('x1');
  keys.remove('high');
  assert.deepEqual(drain(keys), ['y1']);
});

// upstream: 92n
test('gives low priority a turn at a fixed interval', () => {
  const keys = newKeys();
  for (let i = 0; i < 3; i++) keys.add(`low ${i}`, -100, '');
  const order: string[] = [];
  for (let turn = 0; turn < 40; turn++) {
    keys.add(`high ${turn}`, 0, '');
    order.push(keys.next() ?? '');
  }
  const turnsOfLow = order.flatMap((key, turn) => (key.startsWith('low') ? [turn] : []));
  assert.deepEqual(turnsOfLow, [AGEING_TURNS, 2 * AGEING_TURNS + 1, 3 * AGEING_TURNS + 2]);
});

test('gives each of many priorities a turn within the bound', () => {
  const keys = newKeys();
  const levels = 20;
  const lastTurn = new Map<string, number>();
  for (let level = 0; level < levels; level++) keys.add(`level ${level}`, level, '');
  for (let turn = 0; turn < 500; turn++) {
    const key = keys.next() ?? '';
    assert.ok(turn - (lastTurn.get(key) ?? 0) <= AGEING_TURNS + levels, `${key} at ${turn}`);
    lastTurn.set(key, turn);
    keys.add(key, Number(key.split(' ')[1]), '');
  }
  assert.equal(lastTurn.size, levels);
});
