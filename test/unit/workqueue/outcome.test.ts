import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, postpone, requeueAfter, TerminalError } from '../../../src/workqueue/outcome.ts';

test('creates each kind of outcome', () => {
  assert.deepEqual(done(), { kind: 'done' });
  assert.deepEqual(requeueAfter(1500), { kind: 'requeueAfter', ms: 1500 });
  assert.deepEqual(postpone(1500), { kind: 'postponed', ms: 1500 });
  const reason = 'the schedule is due';
  assert.deepEqual(requeueAfter(1, reason), { kind: 'requeueAfter', ms: 1, reason });
  assert.deepEqual(postpone(1, reason), { kind: 'postponed', ms: 1, reason });
});

test('treats a negative delay as 0 and rejects one that is not a number', () => {
  assert.deepEqual(requeueAfter(-5), { kind: 'requeueAfter', ms: 0 });
  assert.throws(() => requeueAfter(Number.NaN), RangeError);
  assert.throws(() => requeueAfter(Infinity), RangeError);
  assert.throws(() => postpone(Number.NaN), /^RangeError: postpone: /);
});

test('keeps the cause of a terminal error', () => {
  const cause = new Error('spec.schedule is not a time');
  const error = new TerminalError('Invalid At', { cause });
  assert.equal(error.cause, cause);
  assert.equal(String(error), 'TerminalError: Invalid At');
});
