import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  failed,
  allPassed,
  ok,
  formatResults,
  resultsJson,
  skipped,
  warning,
} from '../../../../src/cli/check/check-result.ts';

test('a table has a line for each check, what to do below those that failed, and a verdict', () => {
  const results = [
    ok('API server', 'answered'),
    failed('CRD counts', 'is not there', 'Install it'),
  ];
  assert.deepEqual(formatResults(results), [
    'CHECK        RESULT   DETAIL',
    'API server   ok       answered',
    'CRD counts   FAILED   is not there',
    '    Install it',
    '1 of 2 checks failed.',
  ]);
  assert.equal(allPassed(results), false);
});

test('warnings and what could not be found out are no failures, but not all is well either', () => {
  const results = [skipped('clock', 'unknown'), warning('version', 'newer', 'Upgrade')];
  assert.ok(allPassed(results));
  assert.equal(formatResults(results).at(-1), 'No check failed.');
  assert.equal(formatResults([ok('a', 'b'), skipped('c', 'd')]).at(-1), 'All checks passed.');
});

test('what a server says neither breaks a line nor drives the terminal', () => {
  const [, line] = formatResults([ok('a', 'one\ntwo\u001b[2J')]);
  assert.equal(line, 'a       ok       one two\uFFFD[2J');
});

test('scripts get the same as JSON', () => {
  assert.deepEqual(JSON.parse(resultsJson([failed('a', 'b', 'c')])), {
    ok: false,
    checks: [{ check: 'a', result: 'failed', detail: 'b', next: ['c'] }],
  });
});
