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

test('formats a line for each check, next steps below failed checks, and a summary', () => {
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

test('does not count warnings and skipped checks as failures', () => {
  const results = [skipped('clock', 'unknown'), warning('version', 'newer', 'Upgrade')];
  assert.ok(allPassed(results));
  assert.equal(formatResults(results).at(-1), 'No check failed.');
  assert.equal(formatResults([ok('a', 'b'), skipped('c', 'd')]).at(-1), 'All checks passed.');
});

test('escapes line breaks and control characters of server messages', () => {
  const [, line] = formatResults([ok('a', 'one\ntwo\u001b[2J\u009b\u202e')]);
  assert.equal(line, 'a       ok       one two\\u001b[2J\\u009b\\u202e');
});

test('formats the results as JSON', () => {
  assert.deepEqual(JSON.parse(resultsJson([failed('a', 'b', 'c')])), {
    ok: false,
    checks: [{ check: 'a', result: 'failed', detail: 'b', next: ['c'] }],
  });
});
