import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import { PODS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { ReflectorProgress } from '../../../src/cache/progress.ts';
import { unreachable } from '../../../src/client/transport/connection-error.ts';
import type { AttentionItem } from '../../../src/serving/attention.ts';
import { informerHealthChecks } from '../../../src/serving/health-checks.ts';
import { verdictOf } from '../../../src/serving/verdict.ts';
import type { VerdictDeps } from '../../../src/serving/verdict.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

const REFUSED = unreachable(
  Object.assign(new Error(), { code: 'ECONNREFUSED' }),
  'https://10.0.0.1',
);

describe('the verdict', () => {
  let clock: FakeClock;
  let pods: ReflectorProgress;
  let counts: ReflectorProgress;
  let hasSynced: boolean;

  beforeEach(() => {
    clock = new FakeClock();
    pods = new ReflectorProgress(clock, 60_000);
    counts = new ReflectorProgress(clock, 60_000);
    hasSynced = true;
    pods.listed();
    counts.listed();
  });

  const verdict = (more: Partial<VerdictDeps> = {}) => {
    const informers = [
      { name: 'pods', resource: PODS, hasSynced, progress: pods },
      { name: 'counts.demo.mark8s.io', resource: COUNTS, hasSynced, progress: counts },
    ];
    const shown = verdictOf({
      clock,
      readiness: informerHealthChecks(() => informers, clock),
      informers,
      attention: { items: [], counts: new Map() },
      hotLoops: new Map(),
      installCommand: 'install',
      checkCommand: 'check',
      ...more,
    });
    for (const { text, step } of shown.problems) assert.match(step ?? '', /^[A-Z].*[.:]$/, text);
    return shown;
  };
  const texts = (more: Partial<VerdictDeps> = {}) =>
    verdict(more).problems.map(({ tone, text, detail }) => [tone, text, detail]);

  it('is empty if nothing is wrong', () => {
    assert.deepEqual(verdict(), { isReady: true, problems: [] });
  });

  it('says since when the API server is unreachable, at once, and fails with /readyz', async () => {
    counts.failed(new ApiError({ kind: 'notFound', message: '', code: 404 }));
    await clock.advance(5000);
    const since = new Date(clock.now()).toISOString();
    pods.failed(REFUSED);
    counts.failed(REFUSED);
    for (const isReady of [true, false]) {
      const { problems, ...rest } = verdict();
      assert.deepEqual(rest, { isReady });
      const [problem, ...others] = problems;
      assert.deepEqual(
        [problem?.tone, problem?.text, problem?.since, problem?.detail, others],
        ['bad', 'API server unreachable', since, 'connection refused (https://10.0.0.1)', []],
      );
      assert.match(problem?.step ?? '', /^Check that the server runs.*may be old/);
      await clock.advance(60_000);
      pods.failed(REFUSED);
      counts.failed(REFUSED);
    }
    counts.recovered();
    counts.listed();
    assert.equal(texts()[0]?.[1], 'API server unreachable for pods');
    pods.recovered();
    pods.listed();
    assert.deepEqual(verdict(), { isReady: true, problems: [] });
  });

  it('names resources that are not served, denied, stalled or not synced', async () => {
    counts.failed(new ApiError({ kind: 'notFound', message: '', code: 404 }));
    counts.missing = true;
    const [missing] = verdict().problems;
    assert.match(missing?.text ?? '', /CustomResourceDefinition.*counts\.demo\.mark8s\.io/);
    assert.equal(missing?.command, 'install');
    assert.equal(verdict().isReady, true, 'as /readyz');
    counts.failed(new ApiError({ kind: 'forbidden', message: 'secret', code: 403 }));
    assert.deepEqual(texts(), [
      ['bad', 'No permission to list and watch counts.demo.mark8s.io', 'forbidden'],
    ]);
    assert.equal(verdict().problems[0]?.command, 'check');
    counts.failed(new ApiError({ kind: 'unreachable', message: 'No response' }));
    assert.equal(texts()[0]?.[2], 'unreachable', 'the client does not name a server');
    counts.recovered();
    hasSynced = false;
    assert.deepEqual(texts(), [
      ['warning', 'Waiting for caches to sync: pods, counts.demo.mark8s.io', undefined],
    ]);
    hasSynced = true;
    await clock.advance(61_000);
    counts.listed();
    const [stalled, ...others] = verdict().problems;
    assert.equal(stalled?.text, 'Watches stalled: pods');
    assert.deepEqual(others, []);
    assert.equal(verdict().isReady, false);
  });

  it('has the checks that fail for other reasons, and the role', () => {
    const readiness = [{ name: 'webhook', check: () => 'no certificate' }];
    assert.deepEqual(texts({ readiness }), [['bad', 'Check webhook fails', 'no certificate']]);
    const lease = { acquireTime: '2026-01-01T00:00:00Z', seenMsAgo: 1 };
    const election = (...holders: string[]) => ({
      identity: 'me',
      leases: holders.map((holder, at) => {
        const { acquireTime, seenMsAgo } = lease;
        return { acquireTime, seenMsAgo, lease: `sys/x-${at}`, holder };
      }),
    });
    assert.deepEqual(texts({ election: election('me') }), []);
    assert.deepEqual(texts({ election: election('other') }), [
      ['neutral', 'Standing by', 'other syncs the keys'],
    ]);
    assert.deepEqual(texts({ election: election('other', '') }), [
      ['warning', 'No replica holds the Lease sys/x-1', undefined],
      ['neutral', 'Standing by', 'other replicas sync the keys'],
    ]);
    assert.equal(texts({ election: election() })[0]?.[0], 'warning');
  });

  it('has the oldest key of each controller and problem, the worst first', () => {
    const item = (key: string, problem: AttentionItem['problem']): AttentionItem => ({
      controller: 'count',
      key,
      problem,
      since: `since ${key}`,
      message: `message ${key}`,
    });
    const items = [
      item('ns/c', 'failing'),
      item('ns/a', 'notReady'),
      item('ns/b', 'notReady'),
      item('ns/d', 'recovered'),
    ];
    const attention = { items, counts: new Map() };
    const { problems } = verdict({ attention, hotLoops: new Map([['count', 2]]) });
    const withoutSteps = problems.map(({ step: _, ...problem }) => problem);
    assert.deepEqual(withoutSteps, [
      {
        tone: 'bad',
        text: 'count ns/c fails',
        since: 'since ns/c',
        detail: 'message ns/c',
        keys: { controller: 'count', key: 'ns/c', result: 'failed' },
      },
      {
        tone: 'warning',
        text: '2 objects of count are not ready',
        since: 'since ns/a',
        detail: 'ns/a: message ns/a',
        keys: { controller: 'count', condition: 'notReady' },
      },
      { tone: 'warning', text: 'count: 2 in a hot loop', keys: { controller: 'count' } },
    ]);
  });
});
