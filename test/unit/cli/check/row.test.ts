import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  failed,
  allPassed,
  ok,
  rowLines,
  rowsJson,
  skipped,
  warning,
} from '../../../../src/cli/check/row.ts';

test('a table has a line for each check, what to do below those that failed, and a verdict', () => {
  const rows = [ok('API server', 'answered'), failed('CRD counts', 'is not there', 'Install it')];
  assert.deepEqual(rowLines(rows), [
    'CHECK        RESULT   DETAIL',
    'API server   ok       answered',
    'CRD counts   FAILED   is not there',
    '    Install it',
    '1 of 2 checks failed.',
  ]);
  assert.equal(allPassed(rows), false);
});

test('warnings and what could not be found out are no failures, but not all is well either', () => {
  const rows = [skipped('clock', 'unknown'), warning('version', 'newer', 'Upgrade')];
  assert.ok(allPassed(rows));
  assert.equal(rowLines(rows).at(-1), 'No check failed.');
  assert.equal(rowLines([ok('a', 'b'), skipped('c', 'd')]).at(-1), 'All checks passed.');
});

test('what a server says neither breaks a line nor drives the terminal', () => {
  const [, line] = rowLines([ok('a', 'one\ntwo\u001b[2J')]);
  assert.equal(line, 'a       ok       one two\uFFFD[2J');
});

test('scripts get the same as JSON', () => {
  assert.deepEqual(JSON.parse(rowsJson([failed('a', 'b', 'c')])), {
    ok: false,
    checks: [{ check: 'a', result: 'failed', detail: 'b', next: ['c'] }],
  });
});
