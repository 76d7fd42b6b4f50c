import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import {
  occurrenceFields,
  RateLimitedLog,
  subjectFields,
} from '../../../src/util/rate-limited-log.ts';
import type { RateLimitedLogOptions } from '../../../src/util/rate-limited-log.ts';

function newFixture(options?: RateLimitedLogOptions) {
  const clock = new FakeClock();
  const log = new RateLimitedLog(clock, options);
  const lines: string[] = [];
  const report = (cause: string, subject = 'a') =>
    log.report(cause, subject, ({ times, total, subjects, moreSubjects }) =>
      lines.push(`${cause}: ${times} of ${total}, ${subjects.join(' ')} +${moreSubjects}`),
    );
  return { clock, log, report, lines: () => lines.splice(0) };
}

test('writes the first report of a cause at once and the other reports of a window as one line', async () => {
  const { clock, report, lines } = newFixture();
  assert.equal(report('down', 'a'), true);
  assert.deepEqual(lines(), ['down: 1 of 1, a +0']);
  for (let at = 0; at < 40; at++) assert.equal(report('down', `s${at % 20}`), false);
  await clock.advance(59_999);
  assert.deepEqual(lines(), []);
  await clock.advance(1);
  assert.deepEqual(lines(), ['down: 40 of 41, s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 +10']);
  report('down', 'z');
  assert.deepEqual(lines(), []);
  await clock.advance(60_000);
  assert.deepEqual(lines(), ['down: 1 of 42, z +0']);
});

test('drops a cause that was not reported for a window, without a timer', async () => {
  const { clock, report, lines } = newFixture();
  report('down');
  assert.equal(clock.pending, 0);
  await clock.advance(60_000);
  report('down');
  assert.deepEqual(lines(), ['down: 1 of 1, a +0', 'down: 1 of 1, a +0']);
});

test('does not suppress a cause because of another one', () => {
  const { report, lines } = newFixture();
  for (let at = 0; at < 5; at++) report(`cause ${at}`);
  assert.equal(lines().length, 5);
});

test('collects the reports within gatherMs in the first line', async () => {
  const { clock, report, lines } = newFixture({ gatherMs: 1000 });
  assert.equal(report('down', 'a'), true);
  await clock.advance(999);
  assert.equal(report('down', 'b'), true);
  assert.deepEqual(lines(), []);
  await clock.advance(1);
  assert.deepEqual(lines(), ['down: 2 of 2, a b +0']);
  assert.equal(report('down', 'c'), false);
});

test('writes the first reports up to the burst at once', async () => {
  const { clock, report, lines } = newFixture({ burst: 3 });
  for (let at = 0; at < 5; at++) report('down');
  assert.equal(lines().length, 3);
  await clock.advance(60_000);
  assert.deepEqual(lines(), ['down: 2 of 5, a +0']);
});

test('writes a cause at once if it occurs again after its end', async () => {
  const { clock, log, report, lines } = newFixture();
  report('down');
  report('down');
  log.end('down');
  assert.equal(clock.pending, 0);
  report('down');
  assert.deepEqual(lines(), ['down: 1 of 1, a +0', 'down: 1 of 1, a +0']);
});

test('shortens the window of a cause', async () => {
  const { clock, log, report, lines } = newFixture({ windowMs: 300_000 });
  report('down');
  await clock.advance(10_000);
  report('down');
  log.shorten('down', 60_000);
  log.shorten('down', 90_000);
  await clock.advance(49_999);
  assert.equal(lines().length, 1);
  await clock.advance(1);
  assert.deepEqual(lines(), ['down: 1 of 2, a +0']);
});

test('writes suppressed reports on flush', () => {
  const { clock, log, report, lines } = newFixture();
  for (let at = 0; at < 3; at++) report('down');
  lines();
  log.flush();
  assert.deepEqual(lines(), ['down: 2 of 3, a +0']);
  log.flush();
  assert.deepEqual(lines(), []);
  assert.equal(clock.pending, 0);
});

test('limits the number of causes and writes the suppressed reports of a dropped cause', () => {
  const { report, lines } = newFixture();
  report('first');
  report('first');
  for (let at = 0; at < 1000; at++) report(`cause ${at}`);
  assert.ok(lines().includes('first: 1 of 2, a +0'));
});

test('returns fields with one or several subjects and the number of further subjects', () => {
  assert.deepEqual(subjectFields('key', 'keys', { subjects: ['a'], moreSubjects: 0 }), {
    key: 'a',
  });
  assert.deepEqual(subjectFields('key', 'keys', { subjects: ['a', 'b'], moreSubjects: 3 }), {
    keys: 'a, b',
    more: 3,
  });
});

test('returns the number of reports if there are several', () => {
  const seen = { total: 5, forMs: 0, subjects: ['a'], moreSubjects: 0 };
  assert.deepEqual(occurrenceFields('key', 'keys', { ...seen, times: 1 }), { key: 'a' });
  assert.deepEqual(occurrenceFields('key', 'keys', { ...seen, times: 2 }), { times: 2, key: 'a' });
});
