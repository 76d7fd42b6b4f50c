import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { Lease } from '../../../src/api/builtin.ts';
import { LeaseLock } from '../../../src/leaderelection/lease-lock.ts';
import type { LeaseClient } from '../../../src/leaderelection/lease-lock.ts';
import { followLease } from '../../../src/leaderelection/lease-watch.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { Access } from '../../support/access.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { AT, Candidates } from './candidates.ts';

let world: Candidates;
describe('the watch of a lease', () => {
  beforeEach(() => {
    world = new Candidates();
  });

  /** Follows the lease until it is stopped; what was heard, by holder. */
  function follow(
    hear: (lease: Lease | undefined) => void = () => undefined,
    client: LeaseClient = world.client,
  ) {
    const heard: string[] = [];
    const { log, lines } = recordingLogger();
    const stop = new AbortController();
    const running = followLease(
      new LeaseLock(client, AT),
      (lease) => {
        heard.push(lease?.spec?.holderIdentity ?? 'nobody');
        hear(lease);
      },
      { clock: world.clock, random: () => 0, log },
      stop.signal,
    );
    return { heard, lines, stop, running };
  }

  const watches = () =>
    world.server.requests.recent.filter(({ path }) => path.includes('watch=true')).length;

  test('the lease is told as it is, and then as it changes', async () => {
    await world.create({ holderIdentity: 'x' });
    const { heard, stop, running } = follow();
    await settle();
    await world.write({ holderIdentity: 'y' });
    await settle();
    assert.deepEqual(heard, ['x', 'y']);
    stop.abort();
    await running;
    assert.equal(world.clock.pending, 0);
  });

  test('one that there is not is told of when it is created', async () => {
    const { heard, stop, running } = follow();
    await settle();
    assert.deepEqual(heard, []);
    await world.create({ holderIdentity: 'x' });
    await settle();
    assert.deepEqual(heard, ['x']);
    stop.abort();
    await running;
  });

  test('a watch that lasted is begun anew a moment after its end, and nothing is missed', async () => {
    await world.create({ holderIdentity: 'x' });
    const { heard, stop, running } = follow();
    for (const holderIdentity of ['y', 'z']) {
      await world.clock.advance(20_000);
      world.server.faults.dropWatches();
      await world.write({ holderIdentity });
      await world.clock.advance(200);
      assert.equal(heard.at(-1), holderIdentity);
    }
    assert.equal(watches(), 3);
    stop.abort();
    await running;
  });

  test('watches that end at once are begun at a slowing pace, of a minute at last', async () => {
    world.server.faults.beforeRequest(() => 500);
    const { lines, stop, running } = follow();
    await world.clock.advance(0);
    let before = 1;
    for (const pauseMs of [
      200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000,
    ]) {
      await world.clock.advance(pauseMs - 1);
      assert.equal(watches(), before, `${pauseMs}`);
      await world.clock.advance(1);
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

  test('a permission that is missing is told once, with the rule', async () => {
    await world.create({ holderIdentity: 'x' });
    const access = new Access(({ verb }) => verb !== 'watch');
    const client = world.clientFor(access.around(world.server.handler));
    const { heard, lines, stop, running } = follow(undefined, client);
    await world.clock.advance(60_000);
    const told = lines.filter(({ message }) => message.startsWith('May not watch'));
    assert.deepEqual(
      told.map(({ level, fields }) => [level, fields['rule']]),
      [[0, '{apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["watch"]}']],
    );
    assert.match(String(told[0]?.fields['fix']), /kubectl auth can-i watch leases\.coordination/);
    access.isAllowed = () => true;
    await world.clock.advance(60_000);
    assert.deepEqual(heard, ['x']);
    stop.abort();
    await running;
  });

  test('a listener that cannot make sense of a state hears of the next', async () => {
    await world.create({ holderIdentity: 'x' });
    const { heard, stop, running } = follow((lease) => {
      if (lease?.spec?.holderIdentity === 'x') throw new SyntaxError('Malformed');
    });
    await settle();
    await world.write({ holderIdentity: 'y' });
    await world.clock.advance(200);
    assert.deepEqual(heard, ['x', 'y']);
    stop.abort();
    await running;
  });
});
