import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KeyPageData } from '../../../../src/cli/top/key-page.ts';
import { press, START } from '../../../../src/cli/top/model.ts';
import { objectKey } from '../../../../src/api/object-key.ts';
import { renderView, renderScreen } from '../../../../src/cli/top/render.ts';
import type { ScreenSize } from '../../../../src/cli/top/render.ts';
import { ProgramMonitor } from '../../../../src/cli/top/program-monitor.ts';
import type { SyncRecord } from '../../../../src/manager/sync-history.ts';
import { snapshotOf } from './snapshots.ts';
import type { SnapshotOptions } from './snapshots.ts';

const WIDE: ScreenSize = { width: 200, height: Infinity };

function lines(options: SnapshotOptions = {}, size: ScreenSize = WIDE, colour = false): string[] {
  const monitor = new ProgramMonitor('127.0.0.1:6060');
  monitor.record(snapshotOf(options));
  return renderView(monitor.view(0), size, colour);
}

const election = (holder: string) => ({
  identity: 'me',
  leases: [{ lease: 'sys/x', holder, acquireTime: '2026-09-01T00:00:30Z', seenMsAgo: 1 }],
});

const FULL: SnapshotOptions = {
  status: {
    informers: [
      ...Array.from({ length: 6 }, (_, at) => ({
        name: `kind-${at}`,
        state: 'watching' as const,
        stateForMs: 3_723_000,
        hasSynced: true,
        inactiveMs: 500,
        objects: 10 ** at,
      })),
      {
        name: 'counts.demo.mark8s.io',
        state: 'missing',
        stateForMs: 5000,
        hasSynced: false,
        inactiveMs: 90_061_000,
        objects: 0,
        error: 'notFound',
      },
    ],
  },
  queues: {
    hottest: [
      {
        controller: 'count',
        key: 'default/hot',
        syncsPerMinute: 240.4,
        causes: [{ text: 'Count default/hot changed: .spec.count', times: 3 }],
      },
    ],
    slowest: Array.from({ length: 20 }, (_, at) => ({
      controller: 'count',
      key: `default/slow-${at}`,
      tookMs: 12_345 - 100 * at,
      result: 'error',
      causes: [
        { text: 'retry after an error: quota exceeded', times: 1 },
        { text: '\u001b[2J\u0007深い', times: 1 },
      ],
    })),
  },
};

describe('render', () => {
  it('shows the version, the process, queues, informers and keys', () => {
    assert.deepEqual(
      lines({
        metrics: [
          'process_resident_memory_bytes 104857600',
          'workqueue_adds_total{controller="count"} 6',
          'controller_runtime_max_concurrent_reconciles{controller="count"} 2',
        ],
      }),
      [
        'website-controller v1.2.3 at 127.0.0.1:6060, up 1m',
        'no leader election',
        'cpu -, memory 100MiB, heap -, event loop lag p99 -; rates since the start',
        '',
        'QUEUE  READY  NOT READY  STALLED  WAITING  DELAYED  WORKERS  WAIT P50  P99  SYNC P99  ADDS/S  RETRIES/S  ERRORS/S  HOT LOOPS',
        'count      0          0        0        0        0      0/2         -    -         -    0.10          -         -          0',
        '',
        'INFORMER  STATE     FOR  OBJECTS  ACTIVE  ERROR',
        'pods      watching   1m        3  1s ago',
        '',
        'HOTTEST KEY',
        'no key was synced twice',
        '',
        'SLOWEST KEY',
        'no key was synced yet',
      ],
    );
  });

  it('shows the leader, and since when it leads', () => {
    const second = (holder: string) => lines({ status: { election: election(holder) } })[1];
    assert.equal(second('me'), 'leader for 30s; identity me');
    assert.equal(second('you'), 'standby; leader you for 30s; identity me');
    assert.equal(second(''), 'no leader; identity me');
    const shard = (lease: string, holder: string) => ({
      lease,
      holder,
      acquireTime: undefined,
      seenMsAgo: 1,
    });
    const leases = [shard('sys/x-0', 'me'), shard('sys/x-1', 'you'), shard('sys/x-2', 'me')];
    assert.equal(
      lines({ status: { election: { identity: 'me', leases } } })[1],
      'owner of 2 of 3 shards: 0,2; identity me',
    );
    assert.equal(
      lines({ status: { election: { identity: 'me', leases: [] } } })[1],
      'leader not known yet; identity me',
    );
  });

  it('shows the causes of syncs, and informers with problems first', () => {
    const text = lines(FULL);
    const after = (title: string) => text[text.findIndex((line) => line.startsWith(title)) + 1];
    assert.match(
      after('INFORMER') ?? '',
      /^counts\.demo\.mark8s\.io  missing, not synced +5s +0  1d1h ago  notFound$/,
    );
    assert.match(
      after('HOTTEST') ?? '',
      /^default\/hot  count +240  Count default\/hot changed: \.spec\.count \(3 times\)$/,
    );
    assert.match(
      after('SLOWEST') ?? '',
      /^default\/slow-0 +count  12\.3s  error   retry after an error: quota exceeded; \?\[2J\?深い$/,
    );
  });

  it('fits any terminal size, and keeps the most important columns and sections', () => {
    for (const width of [1, 10, 40, 79, 200]) {
      for (const height of [1, 5, 10, 24, 60]) {
        const text = lines(FULL, { width, height });
        assert.ok(text.length <= height, `${width}x${height}: ${text.length} lines`);
        for (const line of text) {
          assert.ok(line.length <= width, `${width}x${height}: ${line}`);
        }
      }
    }
    const small = lines(FULL, { width: 40, height: 12 });
    assert.ok(
      small.some((line) => line.startsWith('QUEUE  READY')),
      small.join('\n'),
    );
    assert.ok(
      small.some((line) => line.startsWith('INFORMER')),
      small.join('\n'),
    );
    const medium = lines(FULL, { width: 200, height: 22 });
    assert.equal(medium.at(-1), '... and 18 more', 'informers leave room for keys');
    assert.equal(
      lines(FULL, { width: 200, height: 35 }).filter((line) => line === '... and 6 more').length,
      1,
    );
  });

  it('uses colours only if the terminal has them', () => {
    assert.ok(!lines(FULL).join('').includes('\u001b'));
    const painted = lines(FULL, WIDE, true);
    assert.ok(painted[0]?.startsWith('\u001b[1mwebsite-controller\u001b[22m'));
    const bare = painted.map((line) => withoutColours(line).trimEnd());
    assert.deepEqual(bare, lines(FULL), 'and are the same otherwise');
  });
});

describe('renderScreen', () => {
  /** Returns the screen after some keys. */
  function screen(options: SnapshotOptions, keys: readonly string[] = [], more: Shown = {}) {
    const monitor = new ProgramMonitor('127.0.0.1:6060');
    if (options.atMs !== undefined) monitor.recordFailure('connection refused', options.atMs);
    else monitor.record(snapshotOf(options));
    const size = { width: 100, height: 30, ...more.size };
    let state = START;
    const draw = () => renderScreen(monitor.view(0), state, more.key, size, more.colour ?? false);
    for (const key of keys) state = press(state, key, draw()) ?? assert.fail();
    const { text } = draw();
    assert.equal(text.length, size.height);
    return text;
  }
  interface Shown {
    readonly size?: Partial<ScreenSize>;
    readonly colour?: boolean;
    readonly key?: KeyPageData;
  }

  it('marks the selected row, with and without colours', () => {
    const marked = (text: readonly string[]) => text.filter((line) => line.startsWith('> '));
    assert.deepEqual(marked(screen(FULL, ['j'])).length, 1);
    assert.match(marked(screen(FULL, ['j']))[0] ?? '', /^> counts\.demo\.mark8s\.io  missing/);
    const coloured = screen(FULL, ['j'], { colour: true });
    assert.ok(marked(coloured)[0]?.startsWith('> \u001b[7mcounts'));
  });

  it('shows the rows around the selected one, and how many are above and below', () => {
    const text = screen(FULL, ['backTab', ...Array<string>(10).fill('j')]);
    assert.ok(
      text.some((line) => line.startsWith('> default/slow-10 ')),
      text.join('\n'),
    );
    assert.ok(
      text.some((line) => /\.\.\. and \d above, \d below$/.test(line)),
      text.join('\n'),
    );
    assert.match(screen(FULL, ['backTab', 'end']).at(-2) ?? '', /and \d+ above$/);
  });

  it('shows the selected row on any screen', () => {
    for (const height of [9, 14, 24, 60]) {
      const text = screen(FULL, ['backTab', 'G'], { size: { height, width: 30 } });
      assert.ok(
        text.some((line) => line.startsWith('> default/slow-19')),
        text.join('\n'),
      );
    }
    for (const height of [1, 2, 5])
      screen(FULL, ['w', 'x', 'enter'], { size: { height, width: 1 } });
  });

  it('shows the keys of a queue, with the errors of those that wait for a retry', () => {
    const causes = [{ text: 'retry after an error: quota exceeded', times: 1 }];
    const queue = {
      controller: 'count',
      ready: { count: 1, keys: [{ key: 'default/next', queuedMs: 20, causes: [] }] },
      delayed: { count: 1, keys: [{ key: 'default/later', dueInMs: 1500, causes }] },
      processing: {
        count: 1,
        keys: [{ key: 'default/now', forMs: 5, again: false, causes: [] }],
      },
      hotLoops: [
        { key: 'default/loop', object: 'pods x', fields: ['.a'], times: 20, withinMs: 1000 },
      ],
    };
    const text = screen({ queues: { controllers: [queue] } }, ['enter']).join('\n');
    assert.match(text, /Queue count\n/);
    assert.match(text, /default\/now +syncing +5ms\n/);
    assert.match(text, /default\/next +waits for a worker +20ms\n/);
    assert.match(
      text,
      /default\/later +waits after an error +1\.5s  retry after an error: quota exceeded/,
    );
    assert.match(text, /default\/loop +20 +1s +pods x +\.a/);
  });

  it('shows why a key ran: causes, waits, calls, the error and the next retry', () => {
    const last = [sync('aaaaaaaa', 'done'), sync('bbbbbbbb', 'error')];
    const failingSince = '2026-09-01T00:00:00.000Z';
    const totals = { syncs: 9, failures: 1, busyMs: 90, failingSince };
    const history = { controller: 'count', key: KEY, ...totals, last };
    const key: KeyPageData = {
      controllers: [{ controller: 'count', state: 'delayed', dueInMs: 900, causes: [], history }],
      owner: { lease: 'system/x-1', holder: 'other', isThisProcess: false },
      object: {
        condition: { state: 'notReady', message: '0 of 3 Pods', since: failingSince },
        ownedProblems: ['Pod q/x-0 and 2 more: no node'],
      },
    };
    const text = screen({}, ['w', 'q', '/', 'x', 'enter'], { key }).join('\n');
    assert.match(
      text,
      /OBJECT +not ready since .*: 0 of 3 Pods\n +Pod q\/x-0 and 2 more: no node\nQUEUE/,
    );
    assert.match(text, /STATE +waits after an error, due in 900ms\n/);
    assert.match(text, /LEASE +system\/x-1, held by other\n/);
    assert.match(text, /SYNCS +9, of which 1 failed; 90ms in total/);
    assert.match(text, /error  12ms  attempt 2  bbbbbbbb\n +why +Count q\/x changed: \.spec\n/);
    assert.match(text, /waited +delayed 100ms, queued 3ms, hot loop: 1s\n/);
    assert.match(text, /calls +create pods q\/x-0 403 forbidden 4ms\n +\.\.\. and 2 more\n/);
    assert.match(text, /error +quota exceeded\n +next +in 1s\n/);
    assert.ok(text.indexOf('bbbbbbbb') < text.indexOf('aaaaaaaa'), 'the newest is first');
    const unknown: KeyPageData = { controllers: [], error: 'Ask other' };
    assert.match(screen({}, ['w', 'x', 'enter'], { key: unknown }).join('\n'), /Ask other\./);
    assert.match(screen({}, ['w', 'x', 'enter']).join('\n'), /Loading/);
  });

  it('shows the filter, the prompt and the help', () => {
    assert.match(screen(FULL, ['/', 'h', 'o']).at(-1) ?? '', /^\/ho /);
    assert.match(screen(FULL, ['/', 'h', 'o', 'enter', ' ']).at(-1) ?? '', /^PAUSED  filter: ho /);
    assert.match(screen(FULL, ['?']).join('\n'), /Ctrl-Z +Suspend/);
  });

  it('shows how to set the address if there was never a response', () => {
    assert.match(screen({ atMs: 0 }).join('\n'), /connection refused\n\nSet --address/);
  });

  it('shows all of the worst problem on a narrow terminal', () => {
    const [text, detail, step] = [
      'Watches stalled: pods',
      'no activity '.repeat(20),
      'Wait. '.repeat(20),
    ];
    const problems = [{ tone: 'bad', text, detail, step, command: 'fix '.repeat(30) }] as const;
    const { length } = problems;
    const shown = screen({ status: { verdict: { isReady: false, problems } } }).join(' ');
    for (const [word, times] of [
      ['activity', 20],
      ['Wait', 20],
      ['fix', 30],
    ] as const) {
      assert.equal(shown.split(word).length - length, times, word);
    }
  });

  it('shows first what is wrong, in the words of the debug page', () => {
    const since = new Date('2026-09-01T00:00:55Z').toISOString();
    const key = { controller: 'count', key: 'default/web', since, message: '0 of 3 Pods' };
    const status = {
      verdict: {
        isReady: false,
        problems: [
          { tone: 'bad', text: 'Not installed: counts', step: 'Run:', command: 'kubectl apply' },
          { tone: 'bad', text: 'Not installed: others', step: 'Run:' },
          { tone: 'warning', text: 'count default/web is not ready', since, detail: 'no Pods' },
        ],
      },
    } as const;
    const text = screen({ status, queues: { attention: [{ ...key, problem: 'notReady' }] } });
    assert.deepEqual(
      text.slice(1, 7).map((line) => line.replace(/\d+:\d+:55/, 'TIME')),
      [
        'Not installed: counts',
        '  Run:',
        '  kubectl apply',
        'Not installed: others',
        'count default/web is not ready since TIME: no Pods',
        '/readyz fails',
      ],
    );
    const table = text.findIndex((line) => line.includes('NEEDS ATTENTION'));
    assert.match(text[table + 1] ?? '', /default\/web +count +not ready +\S+:55 +0 of 3 Pods/);
    assert.ok(table < text.findIndex((line) => line.includes('WORKERS')));
  });
});

const KEY = objectKey('q', 'x');

function sync(reconcileID: string, result: 'done' | 'error'): SyncRecord {
  const failed = {
    calls: [
      {
        verb: 'create',
        resource: 'pods',
        at: 'q/x-0',
        code: 403,
        error: 'forbidden',
        afterMs: 1,
        ms: 4,
      },
    ],
    omittedCalls: 2,
    end: { result, tookMs: 12, error: 'quota exceeded', requeueAfterMs: 1000 },
  } as const;
  const succeeded = { calls: [], omittedCalls: 0, end: { result, tookMs: 12 } };
  return {
    controller: 'count',
    key: KEY,
    reconcileID,
    startedAt: '2026-09-01T00:00:00.000Z',
    causes: [{ text: 'Count q/x changed: .spec', times: 1 }],
    omittedCauses: 0,
    attempt: 2,
    delayedMs: 100,
    queuedMs: 3,
    postponed: [{ reason: 'hot loop', times: 1, ms: 1000 }],
    ...(result === 'error' ? failed : succeeded),
  };
}

function withoutColours(line: string): string {
  const [first = '', ...rest] = line.split('\u001b[');
  return first + rest.map((part) => part.slice(part.indexOf('m') + 1)).join('');
}
