import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { Lease } from '../../../src/api/builtin.ts';
import { LeaseLock } from '../../../src/leaderelection/lease-lock.ts';
import type { LeaseClient } from '../../../src/leaderelection/lease-lock.ts';
import { watchLease } from '../../../src/leaderelection/lease-watch.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { Access } from '../../support/access.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { AT, Candidates } from './candidates.ts';

let candidates: Candidates;
describe('watchLease', () => {
  beforeEach(() => {
    candidates = new Candidates();
  });

  /** Watches the lease until it is stopped, and records the observed holders. */
  function follow(
    onLease: (lease: Lease) => void = () => undefined,
    client: LeaseClient = candidates.client,
  ) {
    const observed: string[] = [];
    const { log, lines } = recordingLogger();
    const stop = new AbortController();
    const running = watchLease(
      new LeaseLock(client, AT),
      ({ lease }) => {
        observed.push(lease.spec?.holderIdentity ?? 'none');
        onLease(lease);
      },
      { clock: candidates.clock, random: () => 0.5, log },
      stop.signal,
    );
    return { observed, lines, stop, running };
  }

  const watches = () =>
    candidates.server.requests.recent.filter(({ path }) => path.includes('watch=true')).length;

  test('reports the current state and each change', async () => {
    await candidates.create({ holderIdentity: 'x' });
    const { observed, stop, running } = follow();
    await settle();
    await candidates.write({ holderIdentity: 'y' });
    await settle();
    assert.deepEqual(observed, ['x', 'y']);
    stop.abort();
    await running;
    assert.equal(candidates.clock.pending, 0);
  });

  test('reports a lease when it is created', async () => {
    const { observed, stop, running } = follow();
    await settle();
    assert.deepEqual(observed, []);
    await candidates.create({ holderIdentity: 'x' });
    await settle();
    assert.deepEqual(observed, ['x']);
    stop.abort();
    await running;
  });

  test('re-establishes a long watch soon after its end without missing a change', async () => {
    await candidates.create({ holderIdentity: 'x' });
    const { observed, stop, running } = follow();
    for (const holderIdentity of ['y', 'z']) {
      await candidates.clock.advance(20_000);
      candidates.server.faults.dropWatches();
      await candidates.write({ holderIdentity });
      await candidates.clock.advance(250);
      assert.equal(observed.at(-1), holderIdentity);
    }
    assert.equal(watches(), 3);
    stop.abort();
    await running;
  });

  test('backs off up to a minute, with up to 50 % jitter, if watches end at once', async () => {
    candidates.server.faults.beforeRequest(() => 500);
    const { lines, stop, running } = follow();
    await candidates.clock.advance(0);
    let before = 1;
    for (const pauseMs of [
      200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000,
    ]) {
      await candidates.clock.advance(1.25 * pauseMs - 1);
      assert.equal(watches(), before, `${pauseMs}`);
      await candidates.clock.advance(1);
      assert.equal(watches(), ++before, `${pauseMs}`);
    }
    assert.deepEqual(
      lines.filter(({ level }) => level === 'error' || level < 2),
      [],
      'it is no trouble: there are other ways to look',
    );
    stop.abort();
    await running;
  });

  test('logs a missing permission once, with the RBAC rule', async () => {
    await candidates.create({ holderIdentity: 'x' });
    const access = new Access(({ verb }) => verb !== 'watch');
    const client = candidates.clientOver(access.around(candidates.server.handler));
    const { observed, lines, stop, running } = follow(undefined, client);
    await candidates.clock.advance(60_000);
    const refusals = lines.filter(({ message }) => message.startsWith('Watching the lease'));
    assert.deepEqual(
      refusals.map(({ level, fields }) => [level, fields['rule']]),
      [[0, '{apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["watch"]}']],
    );
    assert.match(
      String(refusals[0]?.fields['fix']),
      /kubectl auth can-i watch leases\.coordination/,
    );
    access.isAllowed = () => true;
    await candidates.clock.advance(60_000);
    assert.deepEqual(observed, ['x']);
    stop.abort();
    await running;
  });

  test('continues after an error of the callback', async () => {
    await candidates.create({ holderIdentity: 'x' });
    const { observed, stop, running } = follow((lease) => {
      if (lease.spec?.holderIdentity === 'x') throw new SyntaxError('Malformed');
    });
    await settle();
    await candidates.write({ holderIdentity: 'y' });
    await candidates.clock.advance(250);
    assert.deepEqual(observed, ['x', 'y']);
    stop.abort();
    await running;
  });
});
