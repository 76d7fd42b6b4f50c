/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { roleOf } from '../../../../../src/serving/page/browser/election.ts';
import {
  countText,
  duration,
  foldSyncs,
  isFailedResult,
  percent,
  problemsOf,
  verdictLine,
  rate,
  timeOfDay,
} from '../../../../../src/serving/words.ts';
import type { KeyData } from '../../../../../src/serving/page/browser/key-state.ts';
import { isFailure } from '../../../../../src/serving/page/browser/monitor.ts';
import { keyText } from '../../../../../src/serving/page/browser/report.ts';
import { toneOfCondition } from '../../../../../src/serving/page/browser/results.ts';
import { linkTo, linkToKey, parseRoute } from '../../../../../src/serving/page/browser/route.ts';
import type { ProcessStatus } from '../../../../../src/serving/debug-pages.ts';
import type { ClusterReport } from '../../../../../src/serving/page/cluster-report.ts';
import type { KeysReport } from '../../../../../src/serving/key-list.ts';
import type { FoundObject } from '../../../../../src/serving/object-page.ts';
import type { SyncView } from '../../../../../src/serving/controller-view.ts';
import { expanded, importViews } from './view-elements.ts';
import type { ViewElement } from './view-elements.ts';

const { ClusterView, KeyDetails, keyOfFound, LeasesCard, selectedKeys, VerdictCard } =
  await importViews();

type Content = ViewElement | string;

function elements(content: readonly Content[]): ViewElement[] {
  return content.flatMap((one) =>
    typeof one === 'string' ? [] : [one, ...elements(one.children)],
  );
}

function textOf(content: Content): string {
  return typeof content === 'string' ? content : content.children.map(textOf).join('');
}

/** Texts of the cells of all tables, without symbols. */
function rowsOf(content: readonly Content[]): string[][] {
  return elements(content)
    .filter(({ tag }) => tag === 'tbody')
    .flatMap(({ children }) => elements(children))
    .filter(({ tag }) => tag === 'tr')
    .map(({ children }) => children.map((cell) => textOf(cell).replace(/^[✓▲✕○] /, '')));
}

const NOW = '2026-01-01T00:01:00Z';
const NOW_MS = Date.parse(NOW);

function statusOf(leases: readonly (readonly [lease: string, holder: string])[]): ProcessStatus {
  const observed = { acquireTime: '2026-01-01T00:00:00Z', seenMsAgo: 5 };
  return {
    version: 'v1',
    now: NOW,
    upMs: 1,
    informers: [],
    election: {
      identity: 'me',
      leases: leases.map(([lease, holder]) => ({ ...observed, lease, holder })),
    },
    process: {
      residentBytes: 1,
      heapBytes: 1,
      heapLimitBytes: 1,
      cpuMs: 1,
      loopActiveMs: 1,
      loopIdleMs: 1,
    },
  };
}

describe('the role on the page', () => {
  const { election: _, ...single } = statusOf([]);

  it('is that of the Leases', () => {
    const textOfRole = (status: ProcessStatus) => roleOf(status).text;
    assert.equal(textOfRole(single), 'Single replica');
    assert.equal(roleOf(single).note, 'No leader election');
    assert.equal(textOfRole(statusOf([['a', 'me']])), 'Leader');
    assert.equal(textOfRole(statusOf([['a', 'other']])), 'Standby');
    assert.match(roleOf(statusOf([['a', 'other']])).note, /leader other/);
    assert.match(roleOf(statusOf([['a', '']])).note, /no leader known/);
    const shards = statusOf([
      ['0', 'me'],
      ['1', 'other'],
      ['2', 'me'],
    ]);
    assert.equal(textOfRole(shards), 'Owner of 2 of 3 shards');
    assert.deepEqual(
      rowsOf(expanded(LeasesCard({ status: shards }))).map((row) => row.toSpliced(1, 1)),
      [
        ['0', 'this process', '1m 0s', '5ms ago'],
        ['1', 'another replica', '1m 0s', '5ms ago'],
        ['2', 'this process', '1m 0s', '5ms ago'],
      ],
    );
    assert.equal(LeasesCard({ status: single }), null);
  });
});

describe('the verdict', () => {
  it('has what is wrong with its time, its command and a link, and whether /readyz passes', () => {
    const since = new Date(NOW_MS - 5000).toISOString();
    const missing = {
      tone: 'bad',
      text: 'Not installed: x',
      step: 'Run:',
      command: 'kubectl apply',
    } as const;
    const keys = { controller: 'count', key: 'ns/a' };
    const pending = { tone: 'warning', text: 'count ns/a is not ready', since, keys } as const;
    const verdict = { isReady: false, problems: [missing, { ...pending, detail: '0 of 3 Pods' }] };
    const shown = expanded(VerdictCard({ status: { ...statusOf([]), verdict } }));
    const text = shown.map(textOf).join('');
    for (const part of ['Not installed: x', 'Run:', 'kubectl apply', '/readyz fails']) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.ok(text.includes(`not ready since ${timeOfDay(since).slice(0, 8)}: 0 of 3 Pods`), text);
    const link = elements(shown).find(({ tag }) => tag === 'a');
    assert.equal(link?.attributes['href'], linkToKey('count', 'ns/a'));
    assert.match(verdictLine(pending, NOW_MS + 3 * 86_400_000), /since \w+ \d+ \d\d:/);
    const texts = (isReady: boolean) =>
      problemsOf({ isReady, problems: [] }).map((one) => verdictLine(one, NOW_MS));
    assert.match(texts(true).join(), /^Nothing is wrong/);
    assert.deepEqual(texts(false), []);
  });
});

describe('a search', () => {
  const object = (key: string, owner?: string): FoundObject => ({
    resource: 'pods',
    kind: 'Pod',
    key,
    state: 'ready',
    message: '',
    ...(owner !== undefined && { owner: { controller: 'count', key: owner } }),
  });
  const found = (text: string, ...objects: FoundObject[]) =>
    keyOfFound({ count: objects.length, objects }, text)?.key;

  it('leads to the key that owns the found objects', () => {
    assert.equal(found('web-0', object('ns/web-0', 'ns/web')), 'ns/web');
    const pods = [object('ns/web-0', 'ns/web'), object('ns/web-1', 'ns/web')];
    assert.equal(found('web', ...pods), 'ns/web');
    assert.equal(found('web', ...pods, object('ns/web-x', 'ns/x')), undefined);
    assert.equal(found('ns/web-0', ...pods, object('ns/web-x', 'ns/x')), 'ns/web');
    assert.equal(found('web', ...pods, object('ns/webs')), undefined);
    assert.equal(found('web'), undefined);
  });
});

const SYNC: SyncView = {
  reconcileID: '0badcafe',
  startedAt: '2026-01-01T00:00:00Z',
  causes: [{ text: 'Count changed', times: 2, changes: [{ field: '.spec.count', before: '1' }] }],
  omittedCauses: 3,
  attempt: 2,
  delayedMs: 10,
  queuedMs: 20,
  postponed: [{ reason: 'hot loop', times: 1, ms: 5 }],
  calls: [
    { verb: 'get', resource: 'pods', at: 'ns/a', afterMs: 1, ms: 2 },
    {
      verb: 'patch',
      resource: 'pods',
      at: 'ns/b',
      code: 409,
      error: 'conflict',
      afterMs: 3,
      ms: 4,
    },
    { verb: 'PUT', resource: '', at: 'https://dns.test/a', code: 201, afterMs: 7, ms: 5 },
  ],
  omittedCalls: 1,
  end: { tookMs: 30, result: 'error', error: 'refused', requeueAfterMs: 2000, reason: 'backoff' },
};

describe('the view of a key', () => {
  const failingSince = SYNC.startedAt;
  const counts = { syncs: 1, failures: 1, busyMs: 30, failingSince };
  const history = { controller: 'count', key: 'ns/a', ...counts };
  const state = {
    controller: 'count',
    state: 'delayed',
    dueInMs: 2000,
    history: { ...history, last: [SYNC] },
  };
  const dataOf = (why: object): KeyData =>
    ({
      why: { key: 'ns/a', controllers: [state], ...why },
      object: undefined,
      nowMs: NOW_MS,
    }) as unknown as KeyData;
  const textOfView = (data: KeyData | undefined, controller?: string) =>
    expanded(KeyDetails({ name: 'ns/a', controller, data }))
      .map(textOf)
      .join('\n');

  it('shows why it ran, how long it waited, its calls, its outcome, and the next sync', () => {
    const text = textOfView(dataOf({}));
    for (const part of [
      'Count changed (2 times)',
      '.spec.count1 → absent',
      'and 3 more causes',
      '✕ error 30ms, attempt 2',
      'Waited 10ms delayed and 20ms for a worker; hot loop: 5ms (1 time)',
      'error; again after 2.0s (backoff)',
      'refused',
      'conflict',
      'and 1 more call',
      'in 2.0s',
      '1 sync, 1 failed',
    ]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.ok(!text.includes('Lease'));
  });

  it('says who syncs a key of another replica', () => {
    const owner = { lease: 'system/x-1', holder: 'other', isThisProcess: false };
    const text = textOfView(dataOf({ owner }));
    assert.match(text, /system\/x-1, held by other/);
    assert.match(text, /in another process/);
    const own = textOfView(dataOf({ owner: { ...owner, isThisProcess: true } }));
    assert.match(own, /held by this process/);
    assert.doesNotMatch(own, /another process/);
    assert.match(textOfView(dataOf({ owner: { ...owner, holder: '' } })), /held by no process/);
    const unknown = { why: undefined, unknown: 'Ask other', object: undefined, nowMs: 0 };
    assert.match(textOfView(unknown), /Ask other\./);
    const owned = { kind: 'Count', key: 'ns/a', uid: '1', isSelected: true, isDeleting: false };
    const object: KeyData['object'] = {
      resource: 'counts',
      key: 'ns/a',
      condition: { state: 'notReady', message: '0 of 3 Pods' },
      tree: { ...owned, conditions: [], owned: [] },
      ownedProblems: ['Pod ns/a-0 and 2 more: no node'],
      omitted: 0,
      events: [],
    };
    assert.match(
      textOfView({ ...unknown, object }),
      /0 of 3 Pods[^]*2 more: no node[^]*Ask other\./,
    );
    const ready = { ...object, condition: { state: 'ready', message: 'All ready' } } as const;
    assert.doesNotMatch(textOfView({ ...unknown, object: ready }), /no node/);
    assert.match(textOfView(undefined), /Loading/);
  });

  it('shows the controller of the route, or the first one', () => {
    const controllers = [state, { ...state, controller: 'foo' }];
    assert.match(textOfView(dataOf({ controllers })), /Controller count[^]*Also infoo/);
    assert.match(textOfView(dataOf({ controllers }), 'foo'), /Controller foo[^]*Also incount/);
  });

  it('folds equal syncs that follow each other', () => {
    const at = (second: number, more: Partial<SyncView> = {}): SyncView => ({
      ...SYNC,
      reconcileID: String(second),
      startedAt: `2026-01-01T00:00:0${second}Z`,
      ...more,
    });
    const other = { end: { tookMs: 1, result: 'error', error: 'other' } };
    const due = (reason: string) => ({ end: { tookMs: 1, result: 'requeueAfter', reason } });
    const { end: _, ...running } = at(7);
    const requeued = [at(5, due('the schedule is due')), at(6, due('the lease expires'))];
    assert.deepEqual(
      foldSyncs([
        at(0),
        at(1, other),
        at(2),
        at(3, { queuedMs: 9 }),
        at(4),
        ...requeued,
        running,
      ]).map(({ sync, times, since }) => [sync.reconcileID, times, since.slice(-3)]),
      [
        ['7', 1, '07Z'],
        ['6', 1, '06Z'],
        ['5', 1, '05Z'],
        ['4', 3, '02Z'],
        ['1', 1, '01Z'],
        ['0', 1, '00Z'],
      ],
    );
  });

  it('has the same as text', () => {
    const [known] = dataOf({}).why?.controllers ?? [];
    const text = keyText('ns/a', known ?? assert.fail());
    for (const line of [
      'count ns/a: waits after an error, next sync in 2.0s',
      '  error: refused',
      '  cause: Count changed (2 times)',
      '    .spec.count: 1 -> absent',
      '  call: get pods ns/a ok 2ms',
      '  call: patch pods ns/b 409 conflict 4ms',
      '  call: PUT https://dns.test/a 201 5ms',
    ]) {
      assert.ok(text.split('\n').includes(line), `${line} in ${text}`);
    }
  });
});

describe('the list of keys', () => {
  const row = { syncs: 0, failures: 0, busyMs: 0 };
  const report: KeysReport = {
    count: 4,
    keys: [
      { ...row, controller: 'a', key: 'ns/One', state: 'idle', startedAt: '2026-01-01T00:00:00Z' },
      {
        ...row,
        controller: 'a',
        key: 'ns/two',
        state: 'delayed',
        stateMs: 5,
        failures: 2,
        result: 'error',
        problem: 'failing',
        condition: 'notReady',
      },
      { ...row, controller: 'b', key: 'ns/one', state: 'running', stateMs: 5, syncs: 9 },
      { ...row, controller: 'b', key: 'other/three', state: 'running', stateMs: 50 },
    ],
  };
  const keysFor = (query: string) =>
    selectedKeys(report, parseRoute(`#/keys?${query}`)).map(({ key }) => key.split('/')[1]);

  it('has filters and orders', () => {
    assert.deepEqual(keysFor('sort=key'), ['One', 'one', 'two', 'three']);
    assert.deepEqual(keysFor('sort=key&down=true'), ['three', 'two', 'one', 'One']);
    assert.deepEqual(keysFor('sort=state'), ['three', 'one', 'two', 'One']);
    assert.deepEqual(keysFor('sort=failures')[0], 'two');
    assert.deepEqual(keysFor('sort=syncs')[0], 'one');
    assert.deepEqual(keysFor('sort=last')[0], 'One', 'the last synced key comes first');
    assert.deepEqual(keysFor('')[0], 'two', 'the failing key comes first');
    assert.deepEqual(keysFor('state=retry'), ['two']);
    assert.deepEqual(keysFor('state=delayed'), ['two']);
    assert.deepEqual(keysFor('result=failed'), ['two']);
    assert.deepEqual(keysFor('condition=notReady&result=error'), ['two']);
    assert.deepEqual(keysFor('namespace=other'), ['three']);
    assert.deepEqual(keysFor('text=ONE&sort=key'), ['One', 'one']);
    assert.deepEqual(keysFor('controller=b&sort=key'), ['one', 'three']);
    assert.deepEqual(keysFor('state=running&text=thr'), ['three']);
  });
});

describe('the view of the cluster', () => {
  const request = { path: '/p', user: '', at: NOW };
  const report: ClusterReport = {
    url: 'https://x',
    revision: 1,
    watches: 2,
    requests: 3,
    objects: [
      { resource: 'clusterroles.rbac.authorization.k8s.io', count: 73 },
      { resource: 'pods', count: 4 },
      { resource: 'foos.samplecontroller.k8s.io', count: 1 },
    ],
    recent: [
      { ...request, verb: 'create', agent: 'kubectl/1 (x)', status: 201 },
      { ...request, verb: 'update', agent: 'kube-controller-manager', status: 409 },
      { ...request, verb: 'get', agent: 'a', status: 404 },
      { ...request, verb: 'watch', agent: 'a' },
    ],
    events: [],
    faults: { '/debug/faults/fail-next-write': '0', '/debug/faults/cut-watches': '1' },
  };
  const set: string[] = [];
  const view = (query: string, more: Partial<ClusterReport> = {}) =>
    expanded(
      ClusterView({
        report: { ...report, ...more },
        route: parseRoute(`#/cluster?${query}`),
        setFault: (path, value) => set.push(`${path}=${value}`),
        go: () => undefined,
      }),
    );

  it('lists the kinds of users before those of the system', () => {
    const folded = elements(view('')).find(({ tag }) => tag === 'details') ?? assert.fail();
    assert.match(textOf(folded), /^73 objects/);
    assert.deepEqual(rowsOf([folded]), [['clusterroles.rbac.authorization.k8s.io', '', '73']]);
    const [first, second] = rowsOf(view(''));
    assert.deepEqual([first?.[0], second?.[0]], ['pods', 'foos.samplecontroller.k8s.io']);
  });

  it('selects requests', () => {
    const shown = (query: string) =>
      rowsOf(view(query))
        .filter((row) => row.length === 6)
        .map(([, verb]) => verb);
    assert.deepEqual(rowsOf(view('')).at(-1)?.slice(1), ['create', '/p', '–', 'kubectl/1', '201']);
    assert.deepEqual(shown(''), ['create']);
    assert.deepEqual(shown('requests=all writes'), ['create', 'update']);
    assert.deepEqual(shown('requests=failures'), ['update', 'get', 'watch']);
    assert.deepEqual(shown('requests=all'), ['create', 'update', 'get', 'watch']);
  });

  it('sets and cancels faults', () => {
    const press = (more: Partial<ClusterReport> = {}) => {
      const button = elements(view('', more)).find(({ tag }) => tag === 'button');
      const { onClick } = button?.attributes ?? {};
      if (typeof onClick === 'function') onClick();
      return button && textOf(button);
    };
    assert.equal(press(), 'Fail the next write');
    const faults = { '/debug/faults/fail-next-write': '503' };
    assert.equal(press({ faults }), 'Cancel');
    assert.deepEqual(set, ['faults/fail-next-write=503', 'faults/fail-next-write=0']);
    assert.match(view('', { faults }).map(textOf).join(''), /waiting for a write/);
    const text = view('').map(textOf).join('');
    assert.match(text, /done 1 time[^s]/);
    assert.match(text, /done 0 times/);
  });
});

it('formats figures', () => {
  assert.deepEqual(
    [undefined, -1, 0, 0.5, 1, 999.4, 1000, 9999, 59_499, 60_000, 3_600_000, 86_400_000].map((ms) =>
      duration(ms),
    ),
    ['–', '0ms', '0ms', '<1ms', '1ms', '999ms', '1.0s', '10.0s', '59s', '1m 0s', '1h 0m', '1d 0h'],
  );
  assert.deepEqual(
    [rate(0), rate(0.001), rate(0.5), rate(12.34), rate(123.4), rate(undefined)],
    ['0', '<0.01', '0.50', '12.3', '123', '–'],
  );
  assert.deepEqual([percent(0.126), percent(undefined)], ['13 %', '–']);
  assert.deepEqual([countText(1, 'key'), countText(2, 'key')], ['1 key', '2 keys']);
});

it('shows times of day with two digits and milliseconds', () => {
  const local = new Date(2026, 0, 2, 3, 4, 5, 6);
  assert.equal(timeOfDay(local.toISOString()), '03:04:05.006');
  assert.equal(timeOfDay('soon'), 'soon');
});

it('tells failures and problems from success', () => {
  assert.deepEqual(['200', '302', '404', '500', '<error>'].map(isFailure), [
    false,
    false,
    true,
    true,
    true,
  ]);
  assert.deepEqual(
    ['done', 'requeueAfter', 'error', 'terminalError', 'panic', undefined].map(isFailedResult),
    [false, false, true, true, true, false],
  );
  assert.deepEqual(
    [
      ['Ready', 'True'],
      ['Ready', 'False'],
      ['Stalled', 'True'],
      ['Stalled', 'False'],
      ['Ready', 'Unknown'],
    ].map(([type = '', status = '']) => toneOfCondition({ type, status })),
    ['good', 'warning', 'warning', 'good', 'neutral'],
  );
});

it('keeps the view and its filters in the fragment', () => {
  const link = linkToKey('count', 'ns/a b&c');
  assert.deepEqual(parseRoute(link), {
    view: 'key',
    query: { controller: 'count', key: 'ns/a b&c' },
  });
  assert.equal(linkTo('keys', { text: '', state: undefined }), '#/keys');
  assert.deepEqual(parseRoute(''), { view: '', query: {} });
});
