import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { Manager } from '../../../src/manager/manager.ts';
import type { Runnable } from '../../../src/util/runnable.ts';
import { AbruptStop, isAbruptStop } from '../../../src/util/runnable.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';

/** A runnable that records its start, abort and end in `journal`. It ends after `release` is resolved, if given. */
function member(name: string, journal: string[], release?: Promise<void>): Runnable {
  return {
    name,
    run: async (signal) => {
      journal.push(`${name} runs`);
      await new Promise<void>((resolve) =>
        signal.addEventListener('abort', () => resolve(), { once: true }),
      );
      journal.push(`${name} stops`);
      await release;
      journal.push(`${name} ended`);
    },
  };
}

function fixture() {
  const clock = new FakeClock();
  const errors: string[] = [];
  const log = {
    ...silentLogger,
    error: (_: unknown, message: string, fields: object = {}) =>
      void errors.push(`${message} ${JSON.stringify(fields)}`),
  };
  return { clock, errors, manager: new Manager({ clock, log }), journal: new Array<string>() };
}

describe('the manager', () => {
  it('stops its stages in reverse order, each after the end of the one before it', async () => {
    const { manager, journal } = fixture();
    const draining = new Deferred();
    manager
      .add('controllers', member('controller', journal, draining.promise))
      .add('caches', member('cache', journal))
      .add('servers', member('server', journal))
      .add('events', member('events', journal));
    const stop = new AbortController();
    const run = manager.run(stop.signal);
    await settle();
    assert.deepEqual(journal.splice(0).toSorted(), [
      'cache runs',
      'controller runs',
      'events runs',
      'server runs',
    ]);
    stop.abort();
    await settle();
    assert.deepEqual(
      journal.splice(0),
      ['controller stops'],
      'other stages run until the syncs in flight end',
    );
    draining.resolve();
    await run;
    assert.deepEqual(journal, [
      'controller ended',
      'events stops',
      'events ended',
      'cache stops',
      'cache ended',
      'server stops',
      'server ended',
    ]);
  });

  it('stops all stages in order and rejects when a runnable fails', async () => {
    const { manager, journal, errors } = fixture();
    const fault = new Deferred();
    manager.add('caches', member('cache', journal)).add('controllers', member('good', journal), {
      name: 'bad',
      run: () => fault.promise,
    });
    const run = manager.run(new AbortController().signal);
    await settle();
    fault.reject(new Error('broken'));
    await assert.rejects(run, /broken/);
    assert.deepEqual(journal.slice(-4), ['good stops', 'good ended', 'cache stops', 'cache ended']);
    assert.deepEqual(errors, ['Runnable failed {"stage":"controllers","runnable":"bad"}']);
  });

  it('rejects with the names of runnables that do not stop within the timeout, and stops the other stages', async () => {
    const { manager, journal, errors, clock } = fixture();
    manager
      .add('controllers', member('stuck', journal, new Promise(() => undefined)))
      .add('caches', member('cache', journal));
    const stop = new AbortController();
    const run = assert.rejects(
      manager.run(stop.signal),
      /^Error: Runnables did not stop within 30 s: stuck$/,
    );
    stop.abort();
    await clock.advance(29_999);
    assert.ok(!journal.includes('cache stops'));
    await clock.advance(1);
    await run;
    assert.ok(journal.includes('cache stops'));
    assert.deepEqual(errors, [
      'Runnables did not stop in time {"stage":"controllers","running":["stuck"]}',
    ]);
  });

  it('logs every failure during the stop, and rejects with the first', async () => {
    const { manager, errors } = fixture();
    const fails = (name: string): Runnable => ({
      name,
      run: (signal) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(new Error(`${name} failed`)), {
            once: true,
          }),
        ),
    });
    manager.add('caches', fails('cache')).add('controllers', fails('controller'));
    const stop = new AbortController();
    const run = manager.run(stop.signal);
    stop.abort();
    await assert.rejects(run, /controller failed/);
    assert.equal(errors.length, 2, errors.join('\n'));
  });

  it('starts nothing with an aborted signal', async () => {
    const { manager, journal } = fixture();
    await manager.add('caches', member('cache', journal)).run(AbortSignal.abort());
    assert.deepEqual(journal, []);
  });

  it('leaves no timer, and no listener on its signal', async () => {
    const { manager, clock } = fixture();
    const { signal } = new AbortController();
    manager.add('caches', { name: 'failing', run: () => Promise.reject(new Error('failed')) });
    await assert.rejects(manager.run(signal), /failed/);
    assert.deepEqual([clock.pending, getEventListeners(signal, 'abort').length], [0, 0]);
  });
});

/** An elector that acquires and loses the lease by `win` and `lose`, and records why it was stopped. */
function leadership(journal: string[]) {
  const won = new Deferred();
  const lost = new Deferred();
  let reason: unknown;
  return {
    win: () => won.resolve(),
    lose: (error: Error) => lost.reject(error),
    get reason() {
      return reason;
    },
    name: 'elector',
    run: async (signal: AbortSignal) => {
      const stopped = new Deferred();
      signal.addEventListener('abort', () => stopped.resolve(), { once: true });
      lost.promise.catch((error: unknown) => stopped.reject(error));
      await stopped.promise;
      reason = signal.reason;
      journal.push('elector ended');
    },
    acquired: (signal: AbortSignal) =>
      new Promise<boolean>((resolve) => {
        signal.addEventListener('abort', () => resolve(false), { once: true });
        void won.promise.then(() => resolve(true));
      }),
  };
}

describe('a manager whose controllers need leadership', () => {
  function leaderFixture() {
    const { clock, errors, journal } = fixture();
    const log = {
      ...silentLogger,
      error: (error: unknown, message: string) =>
        void errors.push(`${message}: ${error instanceof Error ? error.message : ''}`),
    };
    const elector = leadership(journal);
    const manager = new Manager({ clock, log }, { leadership: elector });
    const stop = new AbortController();
    return { clock, errors, journal, elector, manager, stop };
  }

  it('starts controllers after it has acquired the lease, and other stages at once', async () => {
    const { manager, elector, journal, stop } = leaderFixture();
    manager.add('caches', member('cache', journal)).add('controllers', member('work', journal));
    const run = manager.run(stop.signal);
    await settle();
    assert.deepEqual(journal, ['cache runs']);
    elector.win();
    await settle();
    assert.deepEqual(journal.splice(0), ['cache runs', 'work runs']);
    stop.abort();
    await run;
    assert.deepEqual(journal, [
      'work stops',
      'work ended',
      'elector ended',
      'cache stops',
      'cache ended',
    ]);
    assert.ok(!isAbruptStop(elector.reason));
  });

  it('starts no controller if it is stopped on standby', async () => {
    const { manager, journal, stop } = leaderFixture();
    manager.add('controllers', member('work', journal));
    const run = manager.run(stop.signal);
    await settle();
    stop.abort();
    await run;
    assert.deepEqual(journal, ['elector ended']);
  });

  it('does not release the lease while a controller runs', async () => {
    const { manager, elector, journal, stop, clock } = leaderFixture();
    const never = new Promise<void>(() => undefined);
    manager.add('controllers', member('stuck', journal, never));
    elector.win();
    const run = assert.rejects(manager.run(stop.signal), /within 30 s: stuck$/);
    await settle();
    stop.abort();
    await clock.advance(30_000);
    await run;
    assert.ok(isAbruptStop(elector.reason));
  });

  it('stops all stages at once when the lease is lost, and waits at most 1 s', async () => {
    const { manager, elector, journal, stop, clock, errors } = leaderFixture();
    const never = new Promise<void>(() => undefined);
    const reasons: unknown[] = [];
    manager
      .add('caches', member('cache', journal))
      .add('controllers', member('stuck', journal, never), {
        name: 'observer',
        run: (signal) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              reasons.push(signal.reason);
              resolve();
            });
          }),
      });
    elector.win();
    const lost = new AbruptStop('leadershipLost', 'leader election lost');
    const run = assert.rejects(manager.run(stop.signal), lost);
    await settle();
    elector.lose(lost);
    await settle();
    assert.deepEqual(reasons, [lost]);
    assert.deepEqual(journal, [
      'cache runs',
      'stuck runs',
      'cache stops',
      'stuck stops',
      'cache ended',
    ]);
    await clock.advance(1000);
    await run;
    assert.deepEqual(errors, [
      'Runnable failed: leader election lost',
      'Runnables did not stop in time: ',
    ]);
    assert.equal(clock.pending, 0);
  });

  for (const [lostMs, endMs] of [
    [5000, 6000],
    [29_500, 30_000],
  ] as const) {
    it(`ends a graceful stop after ${endMs} ms when the lease is lost after ${lostMs} ms`, async () => {
      const { manager, elector, journal, stop, clock } = leaderFixture();
      const never = new Promise<void>(() => undefined);
      manager.add('controllers', member('slow', journal, never));
      elector.win();
      const lost = new AbruptStop('leadershipLost', 'leader election lost');
      let endedMs = 0;
      const run = assert.rejects(manager.run(stop.signal), lost);
      void run.then(() => (endedMs = clock.monotonic()));
      await settle();
      stop.abort();
      await clock.advance(lostMs);
      elector.lose(lost);
      await clock.advance(2000);
      await run;
      assert.equal(endedMs, endMs);
    });
  }
});
