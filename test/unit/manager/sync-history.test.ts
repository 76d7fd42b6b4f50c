import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import { PODS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { formatCall, SyncHistory, SyncRecorder } from '../../../src/manager/sync-history.ts';
import type { SyncRun, SyncResult } from '../../../src/workqueue/sync-report.ts';

const KEY = objectKey('default', 'web');
const RUN: SyncRun = {
  reconcileID: '0badcafe',
  causes: [{ text: 'Count added', times: 2 }],
  omittedCauses: 0,
  attempt: 1,
  delayedMs: 0,
  queuedMs: 3,
};
const POSTPONED = [{ reason: 'waiting for a cache to show own writes', times: 2, ms: 100 }];

describe('SyncRecorder', () => {
  const clock = { now: () => Date.UTC(2026, 0, 1), monotonic: () => monotonicMs };
  let monotonicMs = 0;
  const recorder = () => new SyncRecorder('count', KEY, RUN, POSTPONED, clock);

  it('records causes, API calls and the result of a sync', () => {
    const run = recorder();
    monotonicMs += 10;
    run.recordCall({
      verb: 'patch',
      resource: COUNTS,
      at: KEY,
      options: { subresource: 'status' },
      ms: 2.4,
      failed: false,
    });
    const error = new ApiError({ kind: 'conflict', message: 'modified', code: 409 });
    run.recordCall({ verb: 'create', resource: PODS, at: KEY, ms: 5, failed: true, error });
    run.recordCall({
      verb: 'raw',
      at: '/version',
      ms: 1,
      failed: true,
      error: new TypeError('no'),
    });
    assert.equal(run.record.end, undefined);
    run.finish({ result: 'error', tookMs: 9, requeueAfterMs: 5, error });
    const { calls, ...record } = run.record;
    assert.deepEqual(record, {
      ...RUN,
      controller: 'count',
      key: KEY,
      postponed: POSTPONED,
      startedAt: '2026-01-01T00:00:00.000Z',
      omittedCalls: 0,
      end: { result: 'error', tookMs: 9, requeueAfterMs: 5, reason: undefined, error: 'modified' },
    });
    assert.deepEqual(calls.map(formatCall), [
      'patch counts.demo.mark8s.io/status default/web ok 2ms',
      'create pods default/web 409 conflict 5ms',
      'raw /version TypeError 1ms',
    ]);
    assert.deepEqual(
      calls.map(({ afterMs }) => afterMs),
      [7.6, 5, 9],
    );
  });

  it('records a bounded amount of data', () => {
    const run = recorder();
    for (let at = 0; at < 50; at++) {
      run.recordCall({ verb: 'raw', at: 'x'.repeat(10_000), ms: 1, failed: false });
    }
    run.finish({ result: 'error', tookMs: 1, error: new Error('y'.repeat(10_000)) });
    assert.deepEqual([run.record.calls.length, run.record.omittedCalls], [20, 30]);
    assert.ok(JSON.stringify(run.record).length < 20 * 400);
  });
});

describe('SyncHistory', () => {
  let history: SyncHistory;
  let clock: FakeClock;

  beforeEach(() => {
    clock = new FakeClock();
    history = new SyncHistory({ keys: 3, syncsPerKey: 2 });
  });

  function run(controller: string, name: string, end: SyncResult | undefined, id = '1'): void {
    const recorder = new SyncRecorder(
      controller,
      objectKey('ns', name),
      { ...RUN, reconcileID: id },
      [],
      clock,
    );
    history.start(recorder);
    if (!end) return;
    recorder.finish(end);
    history.finish(recorder);
  }

  it('returns the last syncs of a key, including the running one, and totals', () => {
    run('count', 'a', { result: 'done', tookMs: 10 }, '1');
    run('count', 'a', { result: 'terminalError', tookMs: 5, error: new Error('no') }, '2');
    run('count', 'a', undefined, '3');
    const { last, ...totals } = history.of('count', 'ns/a') ?? assert.fail();
    assert.deepEqual(totals, {
      controller: 'count',
      key: 'ns/a',
      syncs: 2,
      failures: 1,
      busyMs: 15,
      failingSince: last[0]?.startedAt,
    });
    assert.deepEqual(
      last.map(({ reconcileID, end }) => [reconcileID, end?.result]),
      [
        ['2', 'terminalError'],
        ['3', undefined],
      ],
    );
  });

  it('knows since when a key fails, and the last failure of a controller', async () => {
    const failed = (name: string) =>
      run('count', name, { result: 'error', tookMs: 1, error: new Error('no') });
    const failingSince = () => history.of('count', 'ns/a')?.failingSince;
    failed('a');
    const first = history.of('count', 'ns/a')?.last[0]?.startedAt;
    await clock.advance(5000);
    for (let at = 0; at < 9; at++) failed('a');
    assert.equal(failingSince(), first);
    failed('b');
    run('count', 'a', { result: 'done', tookMs: 1 });
    assert.equal(failingSince(), undefined);
    const at = new Date(clock.now()).toISOString();
    assert.deepEqual(history.totals('count'), {
      syncs: 12,
      failures: 11,
      lastFailure: { key: 'ns/b', at },
    });
    assert.deepEqual(history.totals('foo'), { syncs: 0, failures: 0 });
  });

  it('separates controllers, and keeps the most recently synced keys', () => {
    run('count', 'a', { result: 'done', tookMs: 1 });
    run('foo', 'a', { result: 'done', tookMs: 1 });
    run('count', 'b', { result: 'done', tookMs: 1 });
    run('count', 'a', { result: 'done', tookMs: 1 });
    run('count', 'c', undefined);
    assert.deepEqual(
      history.all().map(({ controller, key }) => `${controller} ${key}`),
      ['count ns/c', 'count ns/a', 'count ns/b'],
    );
    assert.equal(history.of('foo', 'ns/a'), undefined);
    assert.equal(history.of('count', 'ns/a')?.syncs, 2);
  });

  it('forgets the least recently synced keys above the memory limit', () => {
    history = new SyncHistory({ bytes: 4300, syncsPerKey: 1 });
    const error = new Error('x'.repeat(200));
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const name of names) run('count', name, { result: 'error', tookMs: 1, error });
    const keys = () => history.all().map(({ key }) => key);
    assert.deepEqual(keys(), ['ns/f', 'ns/e', 'ns/d', 'ns/c']);
    for (let at = 0; at < 20; at++) run('count', 'f', { result: 'done', tookMs: 1 });
    for (const name of names) run('count', name, { result: 'done', tookMs: 1 });
    assert.equal(keys().length, 6, 'runs that are forgotten weigh nothing');
  });

  it('rejects invalid limits', () => {
    assert.throws(() => new SyncHistory({ keys: 0 }), /keys.*got 0/);
    assert.throws(() => new SyncHistory({ syncsPerKey: 1.5 }), /syncsPerKey.*got 1.5/);
  });
});
