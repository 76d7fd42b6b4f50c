import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  done,
  postpone,
  requeueAfter,
  requeueAt,
  requeueDelayMs,
  TerminalError,
} from '../../../src/workqueue/outcome.ts';

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

test('adds jitter to a delay, and computes the delay until a time', () => {
  const delayOf = (outcome: Parameters<typeof requeueDelayMs>[0]) =>
    requeueDelayMs(outcome, { now: () => 10_000 }, () => 0.5);
  assert.equal(delayOf({ kind: 'requeueAfter', ms: 1000 }), 1000);
  assert.deepEqual(requeueAfter(1000, 'poll', { jitter: 0.2 }), {
    kind: 'requeueAfter',
    ms: 1000,
    reason: 'poll',
    jitter: 0.2,
  });
  assert.equal(delayOf({ kind: 'requeueAfter', ms: 1000, jitter: 0.2 }), 1100);
  assert.deepEqual(requeueAt(12_000, 'due'), { kind: 'requeueAt', atMs: 12_000, reason: 'due' });
  assert.equal(delayOf({ kind: 'requeueAt', atMs: 12_000 }), 2000);
  assert.equal(delayOf({ kind: 'requeueAt', atMs: 9000 }), 0);
  assert.throws(() => requeueAfter(1, '', { jitter: -1 }), /jitter must not be negative/);
  assert.deepEqual(requeueAt(undefined, 'there is no next time'), done());
  assert.throws(() => requeueAt(Number.NaN), /atMs must be a finite number/);
});

test('keeps the cause of a terminal error', () => {
  const cause = new Error('spec.schedule is not a time');
  const error = new TerminalError('Invalid At', { cause });
  assert.equal(error.cause, cause);
  assert.equal(String(error), 'TerminalError: Invalid At');
});
