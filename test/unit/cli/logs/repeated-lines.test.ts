import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { createLogging } from '../../../../src/cli/logs/logging.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { Logger } from '../../../../src/util/logger.ts';

let clock: FakeClock;
let lines: string[];
let flush: () => void;
let log: Logger;

describe('RepeatedLines', () => {
  beforeEach(() => {
    clock = new FakeClock();
    lines = [];
    log = createLogging(
      { format: 'text', verbosity: 6, vmodule: [], skipHeaders: true, addDirHeader: false },
      {
        write: (line) => lines.push(line.trimEnd()),
        now: () => clock.now(),
        pid: 7,
        clock,
        atEnd: (what) => (flush = what),
      },
    ).log;
  });

  const times = (count: number, what: (index: number) => void) => {
    for (let index = 0; index < count; index++) what(index);
  };
  const refused = (attempt: number, name = 'web') =>
    log.error(new Error('refused'), 'Error syncing', {
      count: `default/${name}`,
      attempt,
      requeueAfter: `${attempt}.5s`,
    });

  describe('for identical lines', () => {
    test('writes ten a minute, then the latest with the number of suppressed lines', async () => {
      times(50, refused);
      assert.equal(lines.length, 10);
      await clock.advance(59_999);
      assert.equal(lines.length, 10);
      log.info('another');
      lines.pop();
      await clock.advance(1);
      // Nothing more is suppressed, so there is no timer.
      assert.equal(clock.pending, 0);
      assert.deepEqual(lines.slice(10), [
        '"Error syncing" err="refused" count="default/web" attempt=49 requeueAfter="49.5s" suppressed=40 latest="1m0s ago"',
      ]);
      times(12, refused);
      assert.equal(lines.length, 21);
    });

    test('writes all lines of a low rate, without a summary', async () => {
      for (let index = 0; index < 60; index++) {
        refused(index);
        await clock.advance(6001);
      }
      assert.equal(lines.length, 60);
      assert.ok(lines.every((line) => !line.includes('suppressed')));
      assert.equal(clock.pending, 0);
    });

    test('writes all lines of verbosity 3 and above', () => {
      times(30, () => log.v(3).info('Requeued'));
      assert.equal(lines.length, 30);
      times(30, () => log.v(2).info('Created'));
      assert.equal(lines.length, 40);
    });

    test('writes the summary at the end of the process, once', async () => {
      times(11, refused);
      times(12, (index) => refused(index, 'other'));
      flush();
      const written = lines
        .slice(20)
        .map((line) => /count="[^"]*"|suppressed=\d+/g[Symbol.match](line));
      assert.deepEqual(written, [
        ['count="default/web"', 'suppressed=1'],
        ['count="default/other"', 'suppressed=2'],
      ]);
      await clock.advance(120_000);
      assert.equal(lines.length, 22);
    });
  });

  describe('a line is different', () => {
    test('for another object, error, state or logger', () => {
      times(20, (index) => refused(0, `web-${index}`));
      times(20, (index) => log.error(new Error(`status ${index}`), 'Failed'));
      times(20, (index) => log.info('Scaled', { replicas: index }));
      times(20, (index) => log.named(`n${index}`).info('Scaled'));
      times(20, (index) => log.info('Scaled', { to: { replicas: index } }));
      assert.equal(lines.length, 100);
    });

    test('for each state; the summary says when the state was last reported', async () => {
      for (let index = 0; index < 15; index++) {
        log.info('Unhealthy');
        await clock.advance(1000);
        log.info('Healthy');
        await clock.advance(1000);
      }
      await clock.advance(60_000);
      assert.deepEqual(lines.slice(20), [
        '"Unhealthy" suppressed=5 latest="32s ago"',
        '"Healthy" suppressed=5 latest="32s ago"',
      ]);
    });

    test('but not for another duration, attempt or reconcileID', () => {
      times(20, (index) =>
        log.info('Waiting', {
          delay: `1h${index}m0s`,
          took: `${index / 4}ms`,
          failures: index,
          reconcileID: `0000000${index}`,
        }),
      );
      assert.equal(lines.length, 10);
    });
  });

  test('writes a summary in time if another line came first', async () => {
    refused(0);
    await clock.advance(30_000);
    times(20, () => log.info('Later'));
    times(20, refused);
    await clock.advance(30_000);
    assert.match(lines.at(-1) ?? '', /^"Error syncing".* suppressed=11 /);
    await clock.advance(30_000);
    assert.match(lines.at(-1) ?? '', /^"Later" suppressed=10 /);
    assert.equal(lines.length, 22);
  });

  test('limits the number of remembered lines without losing a summary', () => {
    times(15, refused);
    times(5000, (index) => log.info('x'.repeat(300), { index }));
    assert.equal(lines.filter((line) => line.includes('suppressed=5 ')).length, 1);
    assert.equal(lines.length, 10 + 1 + 5000);
    times(15, refused);
    assert.equal(lines.length, 10 + 1 + 5000 + 10);
  });
});
