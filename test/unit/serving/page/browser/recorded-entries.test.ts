import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  changedRange,
  lanePathsOf,
  nearestEntry,
  selectEntries,
} from '../../../../../src/serving/page/browser/recorded-entries.ts';
import type {
  TimelineEntry,
  TimelineReport,
} from '../../../../../src/serving/page/timeline-report.ts';

const ENTRIES: readonly TimelineEntry[] = [
  { kind: 'change', ms: 0, lane: 1, text: 'ADDED pods default/web-0' },
  {
    kind: 'sync',
    ms: 0,
    lane: 2,
    text: 'syncs default/web',
    tookMs: 100,
    until: 3,
    isFailed: true,
  },
  { kind: 'request', ms: 50, lane: 2, text: 'create pods default/web-1', tookMs: 10 },
  { kind: 'lease', ms: 1000, lane: 0, text: 'stops leading', isDifferent: true },
];
const REPORT: TimelineReport = {
  title: 'web',
  file: 'file',
  startMs: 0,
  notes: [],
  lanes: ['program', 'pods', 'count default/web'],
  entries: ENTRIES,
};
const select = (query: Readonly<Record<string, string>>, report = REPORT) =>
  selectEntries(report, { view: '', query });

describe('the entries of a recording', () => {
  it('are selected by text, kind, result, lane and time', () => {
    for (const [query, rows] of [
      [{}, [0, 1, 2, 3]],
      [{ text: 'DEFAULT/web' }, [0, 1, 2]],
      [{ text: 'web', kind: 'request' }, [2]],
      [{ state: 'failed' }, [1]],
      [{ state: 'different' }, [3]],
      [{ lane: 'count default/web' }, [1, 2]],
      [{ from: '70', to: '500' }, [1]],
      [{ from: 'x' }, [0, 1, 2, 3]],
      [{ axis: 'order', from: '3' }, [1, 2, 3]],
    ] as const) {
      assert.deepEqual(select(query).rows, rows, JSON.stringify(query));
    }
    assert.deepEqual(
      [...select({}).byLane],
      [
        [0, [3]],
        [1, [0]],
        [2, [1, 2]],
      ],
    );
  });

  it('are on an axis of their order if time is virtual', () => {
    const { startMs: _, ...virtual } = REPORT;
    assert.deepEqual(select({}, virtual).all, { from: 0, to: 4 });
    assert.deepEqual(select({}).all, { from: 0, to: 1000 });
  });

  it('are drawn as one path for each class', () => {
    assert.deepEqual(lanePathsOf(REPORT, [1, 2], select({})), [
      { class: 'run', path: 'M0 6h26v11h-26z' },
      { class: 'failure', path: 'M0 0h26v4h-26z' },
      { class: 'call', path: 'M12 18h4v5h-4z' },
    ]);
    const many = Array.from({ length: 10_000 }, (_, ms) => ({ ...ENTRIES[0]!, ms }));
    const report = { ...REPORT, entries: many };
    const [drawn] = lanePathsOf(report, [...many.keys()], select({}, report));
    assert.equal(drawn?.path, 'M0 6h250v11h-250z');
  });

  it('are found near a place, the shortest first', () => {
    const of = (share: number) => nearestEntry(REPORT, [1, 2], select({}), share);
    assert.deepEqual([of(0.02), of(0.055), of(0.9)], [1, 2, 1]);
  });

  it('are shown in a range that stays within the recording', () => {
    const all = { from: 0, to: 100 };
    const of = (
      from: number,
      to: number,
      ...change: [Parameters<typeof changedRange>[1], number?]
    ) => {
      const range = changedRange({ all, range: { from, to } }, ...change);
      return [range.from, range.to];
    };
    assert.deepEqual(of(0, 100, 'in', 90), [50, 100]);
    assert.deepEqual(of(20, 60, 'in'), [30, 50]);
    assert.deepEqual(of(20, 90, 'out'), [0, 100]);
    assert.deepEqual(of(20, 40, 'earlier'), [10, 30]);
    assert.deepEqual(of(70, 90, 'later'), [80, 100]);
    assert.deepEqual(of(85, 95, 'later'), [90, 100]);
  });
});
