import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import { LeaderTerms } from '../../../src/leaderelection/leader-terms.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { isAbruptStop } from '../../../src/util/runnable.ts';
import { AT, Candidates } from './candidates.ts';

/** Runs a candidate whose connection to the server can be cut. */
function newTerms(context: TestContext) {
  const candidates = new Candidates();
  const { clock, server } = candidates;
  let isCut = false;
  const client = candidates.clientOver((request) => {
    if (isCut) throw new ApiError({ kind: 'unreachable', message: 'cut' });
    return server.handler(request);
  });
  const terms = new LeaderTerms(
    { client, clock, random: () => 0.5, log: silentLogger },
    { ...AT, identity: 'a' },
    30_000,
  );
  const stop = new AbortController();
  let ending: unknown;
  void terms.run(stop.signal).then(
    () => (ending = 'ended'),
    (error: unknown) => (ending = error),
  );
  context.after(() => stop.abort());
  return {
    clock,
    terms,
    stop,
    cut: (state: boolean) => void (isCut = state),
    ending: () => ending,
  };
}

test('is no candidate again before all work of the lost term has ended', async (context) => {
  const { clock, terms, stop, cut, ending } = newTerms(context);
  const last = new Deferred();
  const started: string[] = [];
  const during = (name: string, end: Promise<void>) =>
    terms.during(async (signal) => {
      started.push(name);
      await untilAborted(signal);
      await end;
    }, stop.signal);
  void during('fast', Promise.resolve());
  void during('slow', last.promise);
  await clock.advance(5000);
  assert.equal(terms.mayWrite(), true);
  cut(true);
  await clock.advance(12_000);
  cut(false);
  await clock.advance(10_000);
  assert.equal(terms.mayWrite(), false);
  assert.deepEqual(started, ['fast', 'slow']);
  last.resolve();
  await clock.advance(5000);
  assert.equal(terms.mayWrite(), true);
  assert.deepEqual(started, ['fast', 'slow', 'fast', 'slow']);
  stop.abort();
  await clock.advance(1000);
  assert.equal(ending(), 'ended');
  assert.equal(clock.pending, 0);
});

test('ends if the work of the lost term does not end in time', async (context) => {
  const { clock, terms, stop, cut, ending } = newTerms(context);
  void terms.during(() => new Deferred().promise, stop.signal);
  await clock.advance(5000);
  cut(true);
  await clock.advance(12_000);
  cut(false);
  await clock.advance(25_000);
  assert.equal(ending(), undefined);
  await clock.advance(5000);
  assert.ok(isAbruptStop(ending(), 'stopTimeout'), String(ending()));
  assert.equal(terms.mayWrite(), false);
});

test('does not start work that has ended again in the same term', async (context) => {
  const { clock, terms, stop } = newTerms(context);
  let starts = 0;
  void terms.during(() => {
    starts++;
    return Promise.resolve();
  }, stop.signal);
  await clock.advance(20_000);
  assert.equal(starts, 1);
});

test('starts no work if it is stopped before it leads', async (context) => {
  const { clock, terms, stop, cut, ending } = newTerms(context);
  cut(true);
  const working = new AbortController();
  let starts = 0;
  const during = terms.during(() => {
    starts++;
    return Promise.resolve();
  }, working.signal);
  await clock.advance(5000);
  stop.abort();
  await clock.advance(5000);
  assert.deepEqual([ending(), starts], ['ended', 0]);
  working.abort();
  await during;
});
