import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { render } from '../../../../src/cli/top/render.ts';
import type { Size } from '../../../../src/cli/top/render.ts';
import { DaemonMonitor } from '../../../../src/cli/top/daemon-monitor.ts';
import { snapshotOf } from './snapshots.ts';
import type { SnapshotOptions } from './snapshots.ts';

const WIDE: Size = { width: 200, height: Infinity };

function lines(options: SnapshotOptions = {}, size: Size = WIDE, colour = false): string[] {
  const monitor = new DaemonMonitor('127.0.0.1:6060');
  monitor.record(snapshotOf(options));
  return render(monitor.view(0), size, colour);
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
        'QUEUE  READY  DELAYED  WORKERS  WAIT P50  P99  SYNC P99  ADDS/S  RETRIES/S  ERRORS/S  HOT LOOPS',
        'count      0        0      0/2         -    -         -    0.10          -         -          0',
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
      /^default\/slow-0 +count  12\.3s  error   retry after an error: quota exceeded; \?\[2J\?\?\?$/,
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

function withoutColours(line: string): string {
  const [first = '', ...rest] = line.split('\u001b[');
  return first + rest.map((part) => part.slice(part.indexOf('m') + 1)).join('');
}
