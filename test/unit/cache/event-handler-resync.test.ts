import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResyncTimer } from '../../../src/cache/event-handler.ts';
import type { Resyncing } from '../../../src/cache/event-handler.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

function newFixture() {
  const clock = new FakeClock();
  const members = new Set<Resyncing>();
  let fired = 0;
  const timer = new ResyncTimer(clock, members, () => fired++);
  const join = (resyncPeriodMs: number): Resyncing => {
    const nextResyncMs = clock.monotonic() + resyncPeriodMs;
    const member = { resyncPeriodMs, nextResyncMs, resyncDue: false };
    members.add(member);
    timer.arm();
    return member;
  };
  /** Returns the due members and resets them. */
  const due = (all: readonly Resyncing[]): boolean[] =>
    all.map((member) => {
      const { resyncDue } = member;
      member.resyncDue = false;
      return resyncDue;
    });
  return { clock, members, timer, join, due, fired: () => fired };
}

// upstream: 3, 65
test('follows the shortest interval and keeps each member’s own', async () => {
  const { clock, members, timer, join } = newFixture();
  const seen: (number | undefined)[] = [];
  const periods = [12 * HOUR, 0, MINUTE, 55 * SECOND, 5 * SECOND];
  const all = periods.map((period) => {
    const member = join(period);
    seen.push(clock.untilNext);
    return member;
  });
  assert.deepEqual(seen, [12 * HOUR, 12 * HOUR, MINUTE, 55 * SECOND, 5 * SECOND]);
  assert.deepEqual(
    all.map(({ resyncPeriodMs }) => resyncPeriodMs),
    periods,
  );
  members.delete(all[4]!);
  timer.arm();
  assert.equal(clock.untilNext, 55 * SECOND);
  assert.equal(clock.pending, 1);
  timer.stop();
  assert.equal(clock.pending, 0);
});

test('needs no timer for members without a resync', () => {
  const { clock, join } = newFixture();
  join(0);
  join(0);
  assert.equal(clock.pending, 0);
});

// upstream: 3
test('marks only the members whose interval has passed', async () => {
  const { clock, join, due, fired } = newFixture();
  const all = [0, 2 * SECOND, 3 * SECOND].map(join);
  const seen: boolean[][] = [];
  for (let second = 1; second <= 6; second++) {
    await clock.advance(SECOND);
    seen.push(due(all));
  }
  assert.deepEqual(
    seen.map(([none, two, three]) => [none, two, three].map(Number).join('')),
    ['000', '010', '001', '010', '000', '011'],
  );
  assert.equal(fired(), 4, 'no call without a due member');
});

// upstream: 64
test('marks a member once if the timer fires late', async () => {
  const { clock, join, due, fired } = newFixture();
  const member = join(2 * SECOND);
  member.nextResyncMs -= 7 * SECOND;
  await clock.advance(2 * SECOND);
  assert.deepEqual(due([member]), [true]);
  assert.equal(member.nextResyncMs, 4 * SECOND);
  assert.equal(fired(), 1);
});

test('does not fire for a removed member', async () => {
  const { clock, members, join, fired } = newFixture();
  members.delete(join(SECOND));
  await clock.advance(10 * SECOND);
  assert.deepEqual([fired(), clock.pending], [0, 0]);
});
