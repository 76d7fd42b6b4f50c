import assert from 'node:assert/strict';
import { beforeEach, describe, it, test } from 'node:test';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import { queuePages, hottest, slowest } from '../../../src/serving/queue-pages.ts';
import type { KeyOwner } from '../../../src/serving/controller-view.ts';
import type { HotLoop } from '../../../src/manager/hot-loop/written-object.ts';
import type { Pages } from '../../../src/serving/routes.ts';
import { SyncHistory, SyncRecorder } from '../../../src/manager/sync-history.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { formatCause } from '../../../src/workqueue/queue-item.ts';
import type { Cause } from '../../../src/workqueue/queue-item.ts';
import { WorkQueue } from '../../../src/workqueue/work-queue.ts';
import type { SyncResult } from '../../../src/workqueue/sync-report.ts';

const ADDED: Cause = { text: 'Count added', times: 1 };

const key = (name: string): ObjectKey => objectKey('default', name);

const LOOP: HotLoop = {
  key: key('hot'),
  kind: 'disputed',
  resource: COUNTS,
  namespace: 'default',
  name: 'hot',
  paths: [['metadata', 'labels', 'team']],
  times: 5,
  withinMs: 80,
  fieldManager: 'us',
};

describe('the queue pages', () => {
  let clock: FakeClock;
  let queue: WorkQueue<ObjectKey>;
  let history: SyncHistory;
  let pages: Pages;
  let owner: KeyOwner | undefined;
  let objects: KubernetesObject[];

  beforeEach(() => {
    owner = undefined;
    objects = [];
    clock = new FakeClock();
    queue = new WorkQueue<ObjectKey>({ name: 'count', clock });
    history = new SyncHistory();
    pages = queuePages({
      controllers: () => [
        {
          name: 'count',
          queue,
          hotLoops: [LOOP],
          reconciled: 'counts',
          informers: [COUNT_INFORMER],
        },
      ],
      history,
      clock,
      owner: () => owner,
      redact: (text) => text.replaceAll('hunter2', '***'),
    });
  });

  const COUNT_INFORMER = {
    name: 'counts',
    resource: COUNTS,
    lister: { list: () => objects, get: () => undefined },
  };

  const count = (name: string, ...conditions: object[]) =>
    ({
      metadata: { namespace: 'default', name },
      status: { conditions },
    }) as unknown as KubernetesObject;

  const get = (path: string, query = ''): { status: number; body: unknown } => {
    const { status, body } = pages.get(path)?.(new URLSearchParams(query)) ?? assert.fail();
    return { status, body: JSON.parse(body) };
  };

  function startSync(name: string): SyncRecorder {
    const run = {
      reconcileID: '0badcafe',
      causes: [ADDED],
      omittedCauses: 0,
      attempt: 1,
      delayedMs: 0,
      queuedMs: 1,
    };
    const recorder = new SyncRecorder('count', key(name), run, [], clock);
    history.start(recorder);
    return recorder;
  }

  /** A failed sync of `key`. */
  function run(name: string, tookMs: number): void {
    const recorder = startSync(name);
    recorder.finish({ result: 'error', tookMs, error: new Error('password is hunter2') });
    history.finish(recorder);
  }

  function succeed(name: string): void {
    const recorder = startSync(name);
    recorder.finish({ result: 'done', tookMs: 1 });
    history.finish(recorder);
  }

  it('show queues, hot loops, and the keys that take the most time', async () => {
    queue.add(key('running'));
    queue.tryTake();
    queue.add(key('waiting'), { cause: 'Pod default/x deleted' });
    queue.add(key('later'), { afterMs: 9000 });
    queue.add(key('soon'), { afterMs: 5000 });
    await clock.advance(1000);
    startSync('running');
    run('quick', 1.00049);
    run('slow', 5000);
    const { status, body } = get('/debug/queues');
    assert.equal(status, 200);
    const startedAt = new Date(clock.now()).toISOString();
    const ran = { controller: 'count', result: 'error', startedAt, causes: [ADDED] };
    const waiting = { tenant: '', priority: 0, causes: [] };
    assert.deepEqual(body, {
      controllers: [
        {
          controller: 'count',
          ready: {
            count: 1,
            keys: [
              {
                ...waiting,
                key: 'default/waiting',
                causes: [{ text: 'Pod default/x deleted', times: 1 }],
                queuedMs: 1000,
              },
            ],
            oldestMs: 1000,
          },
          delayed: {
            count: 2,
            keys: [
              { ...waiting, key: 'default/soon', dueInMs: 4000 },
              { ...waiting, key: 'default/later', dueInMs: 8000 },
            ],
          },
          processing: {
            count: 1,
            keys: [{ key: 'default/running', forMs: 1000, again: false, causes: [ADDED] }],
          },
          hotLoops: [
            {
              key: 'default/hot',
              kind: 'disputed',
              object: 'counts.demo.mark8s.io default/hot',
              fields: ['.metadata.labels.team'],
              times: 5,
              withinMs: 80,
              fieldManager: 'us',
            },
          ],
          objects: { ready: 0, notReady: 0, stalled: 0, unknown: 0 },
          failing: 2,
          syncs: 2,
          failures: 2,
          lastFailure: { key: 'default/slow', at: startedAt },
        },
      ],
      busiest: [
        { controller: 'count', key: 'default/slow', syncs: 1, failures: 1, busyMs: 5000 },
        { controller: 'count', key: 'default/quick', syncs: 1, failures: 1, busyMs: 1 },
        { controller: 'count', key: 'default/running', syncs: 0, failures: 0, busyMs: 0 },
      ],
      slowest: [
        { ...ran, key: 'default/slow', tookMs: 5000 },
        { ...ran, key: 'default/quick', tookMs: 1 },
      ],
      hottest: [],
      attention: ['slow', 'quick'].map((name) => ({
        controller: 'count',
        key: key(name),
        syncs: 1,
        failures: 1,
        problem: 'failing',
        since: startedAt,
        message: 'password is ***',
      })),
    });
  });

  it('list all keys with their states and last results', async () => {
    queue.add(key('running'));
    queue.tryTake();
    startSync('running');
    run('failed', 7);
    queue.add(key('failed'), { afterMs: 9000 });
    queue.add(key('new'));
    run('idle', 5);
    await clock.advance(1000);
    const none = { controller: 'count', syncs: 0, failures: 0, busyMs: 0 };
    const startedAt = new Date(clock.now() - 1000).toISOString();
    const problem = { problem: 'failing', message: 'password is ***' };
    const failed = { ...none, ...problem, syncs: 1, failures: 1, startedAt, result: 'error' };
    assert.deepEqual(get('/debug/keys').body, {
      count: 4,
      keys: [
        { ...failed, key: key('idle'), state: 'idle', busyMs: 5, tookMs: 5 },
        { ...failed, key: key('failed'), state: 'delayed', stateMs: 8000, busyMs: 7, tookMs: 7 },
        { ...none, key: key('running'), state: 'running', stateMs: 1000, startedAt },
        { ...none, key: key('new'), state: 'ready', stateMs: 1000 },
      ],
    });
  });

  it('show at most 100 keys per state, or fewer on request, and their number', () => {
    for (let at = 0; at < 150; at++) queue.add(key(`k${at}`));
    for (const [query, shown] of [
      ['', 100],
      ['limit=1000', 100],
      ['limit=7', 7],
      ['limit=0', 0],
      ['limit=-1', 100],
      ['limit=', 100],
    ] as const) {
      const { body } = get('/debug/queues', query);
      const { controllers } = body as { controllers: { ready: { count: number; keys: [] } }[] };
      const { count, keys } = controllers[0]?.ready ?? assert.fail();
      assert.deepEqual([count, keys.length], [150, shown], query);
    }
  });

  it('list at most 10,000 keys, with the state of those that the queue lists last', () => {
    for (let at = 0; at < 10_000; at++) queue.add(key(`k${at}`));
    queue.add(key('last'));
    run('last', 1);
    run('idle', 1);
    const { count, keys } = get('/debug/keys').body as {
      count: number;
      keys: { key: string; state: string }[];
    };
    assert.deepEqual([count, keys.length], [10_002, 10_000]);
    assert.deepEqual(
      keys.slice(0, 2).map(({ key, state }) => [key, state]),
      [
        ['default/idle', 'idle'],
        ['default/last', 'ready'],
      ],
    );
  });

  it('show first what needs attention: failing keys, stalled and not ready objects, the oldest first', async () => {
    const since = (second: number) => `1970-01-01T00:00:0${second}Z`;
    objects = [
      count('young', {
        type: 'Ready',
        status: 'False',
        message: '1 of 3',
        lastTransitionTime: since(9),
      }),
      count('old', {
        type: 'Ready',
        status: 'False',
        message: 'hunter2',
        lastTransitionTime: since(1),
      }),
      count('stalled', {
        type: 'Stalled',
        status: 'True',
        message: 'no',
        lastTransitionTime: since(5),
      }),
      count('failing', { type: 'Ready', status: 'False', message: 'refused' }),
      count('well', { type: 'Ready', status: 'True' }),
      count('new'),
    ];
    run('failing-since', 1);
    await clock.advance(1000);
    for (let at = 0; at < 7; at++) run('failing-since', 1);
    run('failing', 1);
    run('recovered', 1);
    succeed('recovered');
    run('long-ago', 1);
    for (let at = 0; at < 5; at++) succeed('long-ago');
    startSync('failing');
    const { attention, controllers } = get('/debug/queues').body as {
      attention: { key: string; problem: string; message: string }[];
      controllers: { objects: object; failing: number }[];
    };
    assert.deepEqual(
      attention.map((item) => [item.key.slice(8), item.problem, item.message]),
      [
        ['failing-since', 'failing', 'password is ***'],
        ['failing', 'failing', 'password is ***'],
        ['stalled', 'stalled', 'no'],
        ['old', 'notReady', '***'],
        ['young', 'notReady', '1 of 3'],
        ['recovered', 'recovered', 'password is ***'],
      ],
    );
    assert.deepEqual(controllers[0]?.objects, { ready: 1, notReady: 3, stalled: 1, unknown: 1 });
    assert.equal(controllers[0]?.failing, 2);
    const { keys } = get('/debug/keys').body as { keys: Record<string, unknown>[] };
    assert.equal(keys.length, 9, 'cached objects are listed');
    const listed = keys.find((row) => row['key'] === 'default/old');
    assert.deepEqual(
      [listed?.['state'], listed?.['condition'], listed?.['problem'], listed?.['message']],
      ['idle', 'notReady', 'notReady', '***'],
    );
  });

  it('show the state and the last syncs of a key, with masked credentials', () => {
    run('hot', 7);
    queue.add(key('hot'), { afterMs: 2000, cause: 'postponed: in a hot loop' });
    const { status, body } = get('/debug/why', 'key=default/hot');
    const { controllers } = body as {
      controllers: {
        state: string;
        dueInMs: number;
        causes: Cause[];
        hotLoop: { kind: string };
        history: { last: { causes: Cause[]; end: { error: string } }[] };
      }[];
    };
    const [why] = controllers;
    assert.equal(status, 200);
    assert.deepEqual(
      [why?.state, why?.dueInMs, why?.causes, why?.hotLoop.kind],
      ['delayed', 2000, [{ text: 'postponed: in a hot loop', times: 1 }], 'disputed'],
    );
    const [last] = why?.history.last ?? [];
    assert.deepEqual(
      [last?.causes.map(formatCause), last?.end.error],
      [['Count added'], 'password is ***'],
    );
  });

  it('name the replica that syncs a key', () => {
    const error = () => (get('/debug/why', 'key=default/x').body as { error: string }).error;
    assert.doesNotMatch(error(), /Ask/);
    owner = { lease: 'system/demo-1', holder: 'me', isThisProcess: true };
    assert.doesNotMatch(error(), /Ask/);
    owner = { lease: 'system/demo-1', holder: 'other', isThisProcess: false };
    assert.match(error(), /Ask other, which holds its Lease system\/demo-1/);
    owner = { ...owner, holder: '' };
    assert.match(error(), /no process syncs it now/);
    run('x', 1);
    assert.deepEqual((get('/debug/why', 'key=default/x').body as { owner: KeyOwner }).owner, owner);
  });

  it('respond with 404 for an unknown key, and with 400 without a key', () => {
    assert.equal(get('/debug/why', 'key=default/unknown').status, 404);
    assert.equal(get('/debug/why').status, 400);
    run('a', 1);
    assert.equal(get('/debug/why', 'key=default/a&controller=count').status, 200);
    assert.equal(get('/debug/why', 'key=default/a&controller=foo').status, 404);
  });
});

/** Histories of syncs by key, with start and duration of each sync. */
function historyOf(runs: Record<string, readonly (readonly [atMs: number, tookMs?: number])[]>) {
  const history = new SyncHistory();
  for (const [name, ofKey] of Object.entries(runs)) {
    for (const [atMs, tookMs] of ofKey) {
      const run = {
        reconcileID: '0badcafe',
        causes: [{ text: `at ${atMs}`, times: 1 }],
        omittedCauses: 0,
        attempt: 1,
        delayedMs: 0,
        queuedMs: 0,
      };
      const recorder = new SyncRecorder('count', objectKey('ns', name), run, [], {
        now: () => atMs,
        monotonic: () => atMs,
      });
      history.start(recorder);
      if (tookMs === undefined) continue;
      const end: SyncResult = { result: 'done', tookMs };
      recorder.finish(end);
      history.finish(recorder);
    }
  }
  return history.all();
}

test('slowest ranks keys by their slowest sync, with its causes', () => {
  const keys = historyOf({
    a: [
      [0, 5],
      [100, 900],
      [2000, 1],
    ],
    b: [[7, 300]],
    c: [[8]],
  });
  assert.deepEqual(
    slowest(keys, 5).map(({ key, tookMs, causes }) => [key, tookMs, causes[0]?.text]),
    [
      ['ns/a', 900, 'at 100'],
      ['ns/b', 300, 'at 7'],
    ],
  );
  assert.equal(slowest(keys, 1).length, 1);
});

test('hottest ranks keys by syncs per minute, which decrease with time, and omits keys with one sync', () => {
  const keys = historyOf({
    once: [[59_999, 1]],
    steady: [
      [0, 1],
      [30_000, 1],
      [60_000, 1],
    ],
    burst: [
      [50_000, 1],
      [50_010, 1],
      [50_020, 1],
    ],
  });
  const ranking = (nowMs: number) =>
    hottest(keys, 5, nowMs).map(({ key, syncsPerMinute }) => [key, Math.round(syncsPerMinute)]);
  assert.deepEqual(ranking(60_000), [
    ['ns/burst', 12],
    ['ns/steady', 2],
  ]);
  assert.deepEqual(ranking(1_800_000), [
    ['ns/burst', 0],
    ['ns/steady', 0],
  ]);
  assert.deepEqual(hottest(keys, 1, 60_000)[0]?.causes, [{ text: 'at 50020', times: 1 }]);
});
