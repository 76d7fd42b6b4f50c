import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ServerClock } from '../../../../src/cli/check/server-check.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { HttpRequest } from '../../../../src/util/http.ts';

const REQUEST: HttpRequest = { method: 'GET', path: '/version', headers: {} };

describe('ServerClock', () => {
  let clock: FakeClock;
  let serverClock: ServerClock;

  beforeEach(() => {
    clock = new FakeClock();
    serverClock = new ServerClock(clock);
  });

  /** Handles a response with a date after half of `tookMs`, by a clock that is `aheadMs` ahead. */
  async function ask(aheadMs: number | undefined, tookMs = 100): Promise<void> {
    const handler = serverClock.around(async () => {
      await clock.advance(tookMs / 2);
      const date = aheadMs === undefined ? {} : { date: httpDate(clock.now() + aheadMs) };
      await clock.advance(tookMs / 2);
      return { status: 200, headers: date, body: (async function* () {})() };
    });
    await handler(REQUEST);
  }

  it('is skipped without a Date header', async () => {
    await ask(undefined);
    assert.equal(serverClock.result().result, 'skipped');
    assert.equal(serverClock.now(), clock.now());
  });

  it('reports no difference of less than a second', async () => {
    for (let at = 0; at < 20; at++) {
      await clock.advance(137);
      await ask(300);
    }
    assert.deepEqual(
      [serverClock.result().result, serverClock.result().detail],
      ['ok', "within 1s of the server's clock"],
    );
  });

  it('bounds the difference closely by several responses', async () => {
    for (let at = 0; at < 20; at++) {
      await clock.advance(137);
      await ask(60_000);
    }
    const row = serverClock.result();
    assert.equal(row.result, 'failed');
    assert.match(row.detail, /^59s behind the server's clock: Ats start at the wrong time/);
    assert.ok(Math.abs(serverClock.now() - clock.now() - 60_000) < 300);
  });

  it('accepts a small difference, and reports one in the other direction', async () => {
    await ask(-4000);
    assert.equal(serverClock.result().result, 'ok');
    assert.match(serverClock.result().detail, /^[23]s ahead of the server's clock$/);
    await ask(-3_600_000);
    assert.match(serverClock.result().detail, /^59m5[89]s ahead of the server's clock: /);
    assert.match(serverClock.result().next?.[0] ?? '', /timedatectl/);
  });
});

function httpDate(ms: number): string {
  return new Date(ms).toUTCString();
}
