import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatDuration } from '../../../src/util/duration.ts';

test('formats durations as Go does', () => {
  const written = [0, 0.25, 5, 1.5, 999.999, 1280, 60_000, 80_500, 300_000, 93_600_000, -5];
  assert.deepEqual(written.map(formatDuration), [
    '0s',
    '250µs',
    '5ms',
    '1.5ms',
    '999.999ms',
    '1.28s',
    '1m0s',
    '1m20.5s',
    '5m0s',
    '26h0m0s',
    '-5ms',
  ]);
});

test('rounds to a microsecond and carries into larger units', () => {
  assert.equal(formatDuration(0.1 + 0.2), '300µs');
  assert.equal(formatDuration(59_999.9999), '1m0s');
});
