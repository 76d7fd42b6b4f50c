import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseSchedule } from '../../../../src/controllers/at/schedule.ts';

test('an instant is read in its zone, and its fraction is never early', () => {
  const noon = Date.UTC(2019, 3, 12, 12, 0, 0);
  assert.equal(parseSchedule('2019-04-12T12:00:00Z'), noon);
  assert.equal(parseSchedule('2019-04-12t12:00:00z'), noon);
  assert.equal(parseSchedule('2019-04-12T14:00:00+02:00'), noon);
  assert.equal(parseSchedule('2019-04-12T06:30:00-05:30'), noon);
  assert.equal(parseSchedule('2019-04-12T12:00:00.0001Z'), noon + 1);
  assert.equal(parseSchedule('2019-04-12T12:00:00.5Z'), noon + 500);
  assert.equal(parseSchedule('2019-04-12T12:00:00.1230Z'), noon + 123);
  assert.equal(parseSchedule('2019-04-12T11:59:60Z'), noon, 'a leap second');
  assert.equal(parseSchedule('0001-01-01T00:00:00Z'), Date.parse('0001-01-01T00:00:00Z'));
});

test('what is no instant is none', () => {
  for (const text of [
    '',
    'tomorrow',
    '2019-04-12',
    '2019-04-12T12:00:00',
    '2019-04-12 12:00:00Z',
    '2019-02-29T12:00:00Z',
    '2019-13-01T12:00:00Z',
    '2019-00-01T12:00:00Z',
    '2019-04-12T24:00:00Z',
    '2019-04-12T12:60:00Z',
    '2019-04-12T12:00:61Z',
    '2019-04-12T12:00:00+24:00',
    '2019-4-12T12:00:00Z',
    ' 2019-04-12T12:00:00Z',
  ]) {
    assert.equal(parseSchedule(text), undefined, text);
  }
});

test('every date that a machine writes is read as it was meant', () => {
  const date = fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true });
  fc.assert(
    fc.property(date, (instant) => {
      assert.equal(parseSchedule(instant.toISOString()), instant.getTime());
    }),
  );
});
