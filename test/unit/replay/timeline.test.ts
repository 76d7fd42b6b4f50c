import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readRecording } from '../../../src/replay/read-recording.ts';
import { Timeline } from '../../../src/replay/timeline.ts';
import type { ReplayReport } from '../../../src/replay/replay.ts';
import { recordings } from '../../support/recorded-run.ts';

const HEADER = {
  kind: 'header',
  format: 'crd-controller-recording',
  version: 1,
  program: { name: 'web', version: 'v1' },
  controllers: ['count'],
  namespaces: [],
  startMs: 1000,
  ms: 0,
  salt: '',
  redacted: [],
};
const PATH = '/api/v1/namespaces/default/pods/x-0';
const POD = { kind: 'Pod', metadata: { namespace: 'default', name: 'x-0' } };
const SYNC = { kind: 'sync', controller: 'count', key: 'default/x', attempt: 1, causes: [] };

/** A sync with a request, an event and a timer, a failed sync, and a request without a response. */
const LINES = [
  { kind: 'cache', ms: 0, id: 1, name: 'pods' },
  { kind: 'term', ms: 0, state: 'started', lease: true },
  { kind: 'set', ms: 1, cache: 1, object: POD },
  { ...SYNC, ms: 2, sync: 1 },
  { kind: 'request', ms: 3, sync: 1, request: 1, method: 'DELETE', path: PATH },
  { kind: 'response', ms: 5, request: 1, status: 409, headers: {}, body: { code: 409 } },
  {
    kind: 'event',
    ms: 6,
    sync: 1,
    event: { type: 'Normal', reason: 'R', message: 'm', object: 'Pod x' },
  },
  {
    kind: 'end',
    ms: 7,
    sync: 1,
    ending: { outcome: { kind: 'requeueAfter', ms: 60 } },
    now: [],
    random: [],
  },
  { ...SYNC, ms: 17, sync: 2 },
  { kind: 'end', ms: 18, sync: 2, ending: { error: 'Error: refused' }, now: [], random: [] },
  { kind: 'drop', ms: 19, cache: 1, object: POD },
  {
    kind: 'request',
    ms: 20,
    request: 2,
    method: 'POST',
    path: '/api/v1/namespaces/a/pods',
    body: POD,
  },
  { kind: 'gap', ms: 21, lines: 2, reason: 'full' },
];

describe('The timeline of a recording', () => {
  const at = recordings();
  const recorded = async (lines: readonly object[] = LINES, header: object = HEADER) => {
    const file = at('lines.ndjson');
    writeFileSync(file, [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(''));
    return readRecording(file);
  };

  it('has what happened in lanes, with durations and results', async () => {
    const { report } = new Timeline('file', await recorded());
    const { lanes, entries } = report;
    assert.deepEqual(lanes, ['program', 'pods', 'count default/x']);
    assert.deepEqual(
      entries.map(({ ms, kind, lane, text, tookMs, until, result, isFailed }) =>
        [ms, kind, lanes[lane], text, tookMs, until, result, isFailed && 'failed'].join('|'),
      ),
      [
        '0|lease|program|acquires the Lease||||',
        '1|change|pods|ADDED pods default/x-0||||',
        '2|sync|count default/x|syncs default/x: no cause|5|5|requeued after 60 ms|',
        '3|request|count default/x|delete pods default/x-0|2||409|failed',
        '6|event|count default/x|Normal R "m" of Pod x||||',
        '7|timer|count default/x|requeued after 60 ms|10|||',
        '17|sync|count default/x|syncs default/x: no cause|1||failed: Error: refused|failed',
        '19|change|pods|DELETED pods default/x-0||||',
        '20|request|program|create pods a/x-0|||no response|',
        '21|gap|program|2 lines missing: full|||missing|failed',
      ],
    );
    assert.deepEqual(
      report.notes.map(({ text }) => text),
      ['The recording lacks 2 lines'],
    );
  });

  it('has the recorded contents of each entry', async () => {
    const timeline = new Timeline('file', await recorded());
    assert.deepEqual(timeline.details(1)?.recorded, POD);
    const { recorded: exchange } = timeline.details(3) ?? assert.fail();
    const { response, path } = exchange as Record<string, unknown>;
    assert.deepEqual(
      [path, response],
      [PATH, { request: 1, status: 409, headers: {}, body: { code: 409 } }],
    );
    assert.equal(timeline.details(99), undefined);
    assert.equal(timeline.details(Number.NaN), undefined);
  });

  it('marks what differs in the replay', async () => {
    const field = { field: '.a', recorded: '1', replayed: '2' };
    const difference = {
      controller: 'count',
      key: 'default/x',
      sync: 1,
      at: new Date(0),
      causes: [],
      writes: [
        { kind: 'different', write: 'delete pods default/x-0', fields: [field] },
        { kind: 'missing', write: 'event Normal R "m" of Pod x', fields: [] },
        { kind: 'additional', write: 'create pods default/x-1', fields: [] },
      ],
      reads: [],
    } as const;
    const replayed: ReplayReport = {
      program: HEADER.program,
      differences: [difference],
      compared: 2,
      skipped: new Map(),
      missingLines: 0,
      isCut: false,
      missingCaches: [],
    };
    const timeline = new Timeline('file', await recorded(), replayed);
    const { entries, notes } = timeline.report;
    const differing = [...entries.entries()].filter(([, { isDifferent }]) => isDifferent);
    assert.deepEqual(
      differing.map(([index, { kind, text }]) => [
        kind,
        text,
        timeline.details(index)?.differences.length,
      ]),
      [
        ['sync', 'syncs default/x: no cause', 4],
        ['request', 'delete pods default/x-0', 2],
        ['event', 'Normal R "m" of Pod x', 1],
        ['request', 'create pods default/x-1', 1],
      ],
    );
    assert.deepEqual(notes, [{ tone: 'bad', text: 'Replayed 2 syncs: 1 sync differs' }]);
  });
});
