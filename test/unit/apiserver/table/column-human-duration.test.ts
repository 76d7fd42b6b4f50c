import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ageOf, humanDuration } from '../../../../src/apiserver/table/column.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const printed: readonly [ms: number, text: string][] = [
  [0, '0s'],
  [999, '0s'],
  [5 * SECOND, '5s'],
  [119 * SECOND, '119s'],
  [2 * MINUTE, '2m'],
  [2 * MINUTE + 10 * SECOND, '2m10s'],
  [9 * MINUTE + 59 * SECOND, '9m59s'],
  [10 * MINUTE + 30 * SECOND, '10m'],
  [179 * MINUTE, '179m'],
  [3 * HOUR, '3h'],
  [3 * HOUR + 5 * MINUTE, '3h5m'],
  [8 * HOUR + 5 * MINUTE, '8h'],
  [47 * HOUR, '47h'],
  [2 * DAY, '2d'],
  [2 * DAY + 3 * HOUR, '2d3h'],
  [8 * DAY + 3 * HOUR, '8d'],
  [729 * DAY, '729d'],
  [730 * DAY, '2y'],
  [731 * DAY, '2y1d'],
  [8 * 365 * DAY + 40 * DAY, '8y'],
  [-1500, '0s'],
  [-2 * SECOND, '<invalid>'],
];

for (const [ms, text] of printed) {
  test(`${ms} ms is printed as ${text}`, () => assert.equal(humanDuration(ms), text));
}

test('an age counts from an RFC 3339 timestamp, with or without a fraction or an offset', () => {
  const now = Date.UTC(2026, 0, 1, 0, 0, 10);
  assert.equal(ageOf('2026-01-01T00:00:00Z', now), '10s');
  assert.equal(ageOf('2026-01-01T00:00:00.000000Z', now), '10s');
  assert.equal(ageOf('2026-01-01T01:00:00+01:00', now), '10s');
});

test('an absent timestamp is unknown, a malformed one invalid', () => {
  assert.equal(ageOf(undefined, 0), '<unknown>');
  assert.equal(ageOf(null, 0), '<unknown>');
  assert.equal(ageOf('', 0), '<unknown>');
  assert.equal(ageOf('yesterday', 0), '<invalid>');
  assert.equal(ageOf('2026-01-01', 0), '<invalid>');
  assert.equal(ageOf('2026-99-01T00:00:00Z', 0), '<invalid>');
});
