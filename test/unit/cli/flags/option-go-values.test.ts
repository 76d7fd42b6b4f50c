import assert from 'node:assert/strict';
import { test } from 'node:test';
import { durationOption } from '../../../../src/cli/flags/option.ts';

const parseGoDuration = durationOption({ help: '' }).parse;

test('parses durations as Go does, in milliseconds', () => {
  const durations: readonly [string, number][] = [
    ['0', 0],
    ['-0', 0],
    ['0s', 0],
    ['5s', 5000],
    ['500ms', 500],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['.5s', 500],
    ['1.s', 1000],
    ['+2m', 120_000],
    ['1us', 0.001],
    ['1µs', 0.001],
    ['1μs', 0.001],
    ['250ns', 0.00025],
    ['1m1m', 120_000],
  ];
  for (const [text, ms] of durations) assert.equal(parseGoDuration(text), ms, text);
});

test('rejects a number without a unit, with a suggestion', () => {
  assert.throws(() => parseGoDuration('30'), {
    name: 'SyntaxError',
    message: 'missing unit in duration "30": did you mean "30s"?',
  });
});

test('rejects invalid durations', () => {
  for (const text of [
    '',
    '-',
    's',
    '1x',
    '1h 30m',
    '1hh',
    '.s',
    '1e3s',
    'h1',
    '--1s',
    '1H',
    '-1m',
  ]) {
    assert.throws(() => parseGoDuration(text), SyntaxError, JSON.stringify(text));
  }
});

test('rejects durations that overflow int64 nanoseconds', () => {
  assert.equal(parseGoDuration('2562047h'), 2_562_047 * 3_600_000);
  assert.throws(() => parseGoDuration('2562048h'), /too long/);
  assert.throws(() => parseGoDuration(`${'9'.repeat(400)}h`), /too long/);
});
