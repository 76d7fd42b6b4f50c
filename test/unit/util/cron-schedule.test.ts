import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CronSchedule } from '../../../src/util/cron-schedule.ts';

describe('A cron schedule', () => {
  for (const [schedule, from, next, timeZone] of [
    ['*/15 * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:15:00Z'],
    ['0 9-17/4 * * mon-fri', '2026-01-02T17:30:00Z', '2026-01-05T09:00:00Z'],
    ['30 4 1,15 * 5', '2026-01-03T00:00:00Z', '2026-01-09T04:30:00Z'],
    ['@yearly', '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'],
    ['0 0 29 2 *', '2026-01-01T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['0 12 * * 0', '2026-01-01T00:00:00Z', '2026-01-04T12:00:00Z'],
    ['0 0 */2 * 1', '2026-01-01T00:00:30Z', '2026-01-03T00:00:00Z'],
    ['@every 1h30m', '2026-01-01T00:00:30.5Z', '2026-01-01T01:30:30Z'],
    ['0 0 ,31, ? *-', '2026-01-01T00:00:30Z', '2026-01-31T00:00:00Z'],
    ['0 8 * * *', '2026-07-01T00:00:00Z', '2026-07-01T06:00:00Z', 'Europe/Berlin'],
    ['0 8 * * *', '2026-01-01T00:00:00Z', '2026-01-01T07:00:00Z', 'Europe/Berlin'],
    // The clock changes on March 8 and November 1 in New York.
    ['30 0 9 3 *', '2026-03-07T00:00:00Z', '2026-03-09T04:30:00Z', 'America/New_York'],
    ['30 2 * * *', '2026-03-08T00:00:00Z', '2026-03-09T06:30:00Z', 'America/New_York'],
    ['15 0 2 11 *', '2026-10-31T00:00:00Z', '2026-11-02T05:15:00Z', 'America/New_York'],
    ['0 0 8 9 *', '2026-09-01T00:00:00Z', '2026-09-08T03:00:00Z', 'America/Santiago'],
  ] as const) {
    it(`${schedule} comes after ${from} at ${next}`, () => {
      const cron = new CronSchedule(schedule, timeZone);
      const nextMs = cron.next(Date.parse(from))!;
      assert.equal(nextMs, Date.parse(next));
      assert.equal(cron.last(nextMs + 30_000, Date.parse(from)), nextMs);
      assert.equal(cron.last(nextMs - 1, Date.parse(from)), undefined);
    });
  }

  it('of the evening before a change of the clock is found from the day of the change', () => {
    const cron = new CronSchedule('30 23 7 3 *', 'America/New_York');
    const noon = Date.parse('2026-03-08T16:00:00Z');
    assert.equal(cron.last(noon, noon - 86_400_000), Date.parse('2026-03-08T04:30:00Z'));
  });

  it('that never comes has no next time', () => {
    // In Santiago, September 6 has no midnight.
    const never = new CronSchedule('0 0 6 9 *', 'America/Santiago');
    assert.equal(never.next(Date.parse('2026-01-01')), Date.parse('2027-09-06T03:00:00Z'));
    assert.equal(new CronSchedule('0 0 30 2 *').next(0), undefined);
    const cron = new CronSchedule('0 0 30 2 *', 'Europe/Berlin');
    assert.equal(cron.last(Date.parse('2026-01-01'), Date.parse('0001-01-01')), undefined);
  });

  it('is rejected if it is malformed', () => {
    for (const schedule of ['* * * *', '60 * * * *', '*/0 * * * *', '5-1 * * * *', 'a * * * *']) {
      assert.throws(() => new CronSchedule(schedule), RangeError, schedule);
      assert.ok(CronSchedule.problemOf(schedule), schedule);
    }
    assert.throws(() => new CronSchedule('* * * * *', 'Nowhere'), RangeError);
    assert.match(CronSchedule.problemOf('* * * * *', 'Nowhere') ?? '', /Nowhere/);
    assert.equal(CronSchedule.problemOf('@daily', 'Europe/Berlin'), undefined);
  });

  it('that is malformed is reported with the field and its value, once', () => {
    for (const [schedule, problem] of [
      ['61 * * * *', 'minute 61 is not between 0 and 59'],
      ['* 24-25 * * *', 'hour 24 is not between 0 and 23'],
      ['* * 0 * *', 'day of month 0 is not between 1 and 31'],
      ['* * * foo *', /^month foo is not between 1 and 12 and not one of jan, /],
      ['* * * * 1,7', /^day of week 7 is not between 0 and 6 and not one of sun, /],
      ['1e1 * * * *', 'minute 1e1 is not between 0 and 59'],
      ['* 5-1 * * *', 'hour 5-1 ends before it starts'],
      ['*/0 * * * *', 'the step of minute */0 is not a positive integer'],
      ['* 1-2-3 * * *', 'hour 1-2-3 is malformed'],
      [
        '*  * * *',
        /5 fields \(minute, hour, day of month, month, day of week\), found 4: \[\* {2}\* \* \*\]$/,
      ],
      ['@often', 'unknown macro @often'],
      ['', /found 0/],
    ] as const) {
      const found = CronSchedule.problemOf(schedule) ?? assert.fail(`${schedule} is accepted`);
      if (typeof problem === 'string') assert.equal(found, problem);
      else assert.match(found, problem);
    }
  });
});
