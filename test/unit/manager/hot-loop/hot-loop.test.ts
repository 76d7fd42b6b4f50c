import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { DEPLOYMENTS, PODS } from '../../../../src/api/builtin.ts';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import { objectKey } from '../../../../src/api/object-key.ts';
import type { KubernetesObject } from '../../../../src/api/object.ts';
import type { Resource } from '../../../../src/api/resource.ts';
import { formatPath } from '../../../../src/api/field-path.ts';
import { HotLoopDetector } from '../../../../src/manager/hot-loop/hot-loop.ts';
import type { HotLoopDecision } from '../../../../src/manager/hot-loop/hot-loop.ts';
import type { EndedCall } from '../../../../src/manager/observed-client.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { aCount } from '../../../support/objects.ts';

interface Thing extends KubernetesObject {
  spec: Record<string, unknown>;
  status: Record<string, unknown>;
}

const KEY = objectKey('default', 'web');

describe('the detector of hot loops', () => {
  let clock: FakeClock;
  let loops: HotLoopDetector;
  let ended: string[];
  let version: number;
  /** What the key names. */
  let thing: Thing;
  /** Something else that it writes. */
  let child: Thing;

  beforeEach(() => {
    clock = new FakeClock();
    ended = [];
    version = 10;
    loops = new HotLoopDetector({
      clock,
      onEnd: ({ paths }, damped) => ended.push(`${paths.map(formatPath).join()} ${damped}`),
    });
    const { metadata } = aCount({ name: 'web' });
    const about = { apiVersion: 'v1', spec: { size: 1 }, status: {} };
    thing = { ...about, kind: 'Count', metadata: { ...metadata, labels: {} } };
    child = { ...about, kind: 'Deployment', metadata: { ...metadata, uid: 'child' } };
  });

  /** The next state of an object. */
  function next(
    object: Thing,
    change: Partial<Pick<Thing, 'spec' | 'status'>>,
    labels = {},
  ): Thing {
    const { metadata } = object;
    const generation = (metadata.generation ?? 1) + (change.spec ? 1 : 0);
    return {
      ...object,
      spec: { ...object.spec, ...change.spec },
      status: { ...object.status, ...change.status },
      metadata: {
        ...metadata,
        generation,
        resourceVersion: String(version++),
        labels: { ...metadata.labels, ...labels },
      },
    };
  }

  const called = (call: Partial<EndedCall>) =>
    loops.record(KEY, { verb: 'patch', at: KEY, ms: 1, failed: false, resource: COUNTS, ...call });

  /** An event of `before` becoming `after`. */
  const event = (before: Thing, after: Thing, resource: Resource = COUNTS) =>
    loops.observe(KEY, resource, before, after, resource === COUNTS);

  /** The key writes its own object, and hears of it. */
  function write(change: Partial<Pick<Thing, 'spec' | 'status'>>, labels = {}): void {
    const before = thing;
    thing = next(thing, change, labels);
    called({ answer: thing, options: { fieldManager: 'us' } });
    event(before, thing);
  }

  /** Others write it. */
  function foreignWrite(change: Partial<Pick<Thing, 'spec' | 'status'>>, labels = {}): void {
    const before = thing;
    thing = next(thing, change, labels);
    event(before, thing);
  }

  /** Something else wakes the key. */
  const distraction = () => event(child, next(child, { status: { ready: version } }), PODS);

  /** Runs and writes `turns` times, `gapMs` apart; the verdicts that were not to run. */
  async function turn(
    turns: number,
    write: (turn: number) => void,
    gapMs = 20,
  ): Promise<Exclude<HotLoopDecision, { kind: 'sync' }>[]> {
    const held = [];
    for (let at = 0; at < turns; at++) {
      const verdict = loops.check(KEY);
      if (verdict.kind === 'sync') write(at);
      else held.push(verdict);
      await clock.advance(gapMs);
    }
    return held;
  }

  const timestamp = (at: number) => write({ status: { seenAt: `t${clock.monotonic()}-${at}` } });

  it('finds a key that writes a timestamp, wakes itself, and writes it again', async () => {
    assert.deepEqual(await turn(11, timestamp), []);
    const verdict = loops.check(KEY);
    assert.ok(verdict.kind === 'found');
    const { kind, paths, name, times, withinMs, fieldManager } = verdict.loop;
    assert.deepEqual(
      { kind, paths, name, times, withinMs, fieldManager, ms: verdict.ms },
      {
        kind: 'selfFed',
        paths: [['status', 'seenAt']],
        name: 'web',
        times: 10,
        withinMs: 180,
        fieldManager: 'us',
        ms: 1000,
      },
    );
    assert.deepEqual(loops.loops, [verdict.loop]);
  });

  it('finds a key that cannot decide between two values', async () => {
    const [first] = await turn(12, (at) => write({}, { side: at % 2 ? 'left' : 'right' }));
    assert.ok(first?.kind === 'found');
    assert.deepEqual(first.loop.paths, [['metadata', 'labels', 'side']]);
  });

  it('finds two that fight over a field, once it is as the others want it', async () => {
    const held = await turn(6, () => {
      write({}, { team: 'red' });
      foreignWrite({}, { team: 'blue', theirs: String(version) });
    });
    const [found] = held;
    assert.ok(found?.kind === 'found' && held.length === 1);
    const { kind, paths, times, withinMs } = found.loop;
    assert.deepEqual(
      { kind, paths, times, withinMs },
      { kind: 'disputed', paths: [['metadata', 'labels', 'team']], times: 5, withinMs: 80 },
    );
  });

  it('waits with its verdict on a fight until the others have their way: then they can be named', async () => {
    const reversed = () => {
      foreignWrite({}, { team: 'blue' });
      write({}, { team: 'red' });
    };
    assert.deepEqual(await turn(12, reversed), []);
    foreignWrite({}, { team: 'blue' });
    assert.equal(loops.check(KEY).kind, 'found');
  });

  it('finds a fight over the spec, and over an object that the key does not name', async () => {
    const held = await turn(6, () => {
      const before = child;
      const ours = next(child, { spec: { replicas: 3 } });
      child = next(ours, { spec: { replicas: 5 }, status: { replicas: version } });
      called({ answer: ours, resource: { ...DEPLOYMENTS } });
      event(before, ours, DEPLOYMENTS);
      event(ours, child, DEPLOYMENTS);
    });
    const [found] = held;
    assert.ok(found?.kind === 'found');
    const { resource, paths } = found.loop;
    assert.deepEqual([resource.kind, paths], ['Deployment', [['spec', 'replicas']]]);
  });

  it('knows its own write by an event that comes before the answer', async () => {
    const held = await turn(13, (at) => {
      const before = thing;
      thing = next(thing, { status: { at } });
      event(before, thing);
      called({ answer: thing });
    });
    assert.equal(held[0]?.kind, 'found');
  });

  const harmless: [what: string, write: (at: number) => void, gapMs?: number][] = [
    [
      'that others wake each time',
      (at) => {
        timestamp(at);
        distraction();
      },
    ],
    [
      'during whose runs something happens that they may have seen',
      (at) => {
        if (at % 2) distraction();
        timestamp(at);
      },
    ],
    [
      'that others wake between runs that look self-made',
      (at) => {
        timestamp(at);
        if (at % 3 === 0) distraction();
      },
    ],
    [
      'that makes progress: it creates something each time',
      (at) => {
        timestamp(at);
        called({ verb: 'create', answer: next(child, {}), resource: PODS });
      },
    ],
    [
      'that deletes something each time',
      (at) => {
        timestamp(at);
        called({ verb: 'delete', resource: PODS });
      },
    ],
    ['that changes another field each time', (at) => write({ status: { [`step${at}`]: 1 } })],
    ['whose writes fail', () => called({ failed: true })],
    [
      'whose writes are dry runs',
      (at) => {
        const before = thing;
        thing = next(thing, { status: { at } });
        called({ answer: thing, options: { dryRun: true } });
        event(before, thing);
      },
    ],
    [
      'that is overruled once, by somebody who then changes it again and again',
      (at) => {
        if (at === 0) write({}, { team: 'red' });
        foreignWrite({}, { team: `blue${at}` });
      },
    ],
    [
      'that writes more often than is kept of it: it may be others',
      (at) => {
        for (let part = 0; part < 20; part++) write({ status: { part: `${at}.${part}` } });
      },
    ],
    ['whose writes change nothing', () => called({ answer: thing })],
    [
      'that runs by plan, and whose event does not wake it',
      (at) => called({ answer: (thing = next(thing, { status: { at } })) }),
    ],
    ['that is in no hurry', timestamp, 61_000],
    [
      'that others follow, field for field, and do not contradict',
      (at) => {
        write({ spec: { size: at } });
        foreignWrite({ status: { size: at } });
      },
    ],
    [
      'whose object others change, and not in what the key writes',
      (at) => {
        write({ spec: { image: `v${at}` } });
        foreignWrite({ spec: { replicas: at } }, { revision: String(at) });
      },
    ],
    [
      'that is overruled a few times only',
      (at) => {
        write({}, { team: 'red' });
        if (at < 4) foreignWrite({}, { team: 'blue' });
        else distraction();
      },
    ],
  ];
  for (const [what, write, gapMs] of harmless) {
    it(`lets a key run ${what}`, async () => {
      assert.deepEqual(await turn(40, write, gapMs), []);
    });
  }

  it('counts runs, however often each of them writes', async () => {
    const twice = (at: number) => {
      write({ status: { phase: `a${at}` } });
      write({ status: { phase: `b${at}` } });
    };
    assert.deepEqual(await turn(11, twice), []);
    assert.equal(loops.check(KEY).kind, 'found');
  });

  it('finds a loop even if something else happens now and then', async () => {
    const held = await turn(60, (at) => {
      timestamp(at);
      if (at % 10 === 9) distraction();
    });
    assert.equal(held[0]?.kind, 'found');
  });

  describe('in a loop', () => {
    beforeEach(async () => {
      await turn(11, timestamp, 0);
      assert.equal(loops.check(KEY).kind, 'found');
    });

    /** Waits as long as it must, runs and writes; how long that was, in milliseconds. */
    async function waited(): Promise<number> {
      const verdict = loops.check(KEY);
      assert.ok(verdict.kind === 'wait');
      assert.equal(loops.check(KEY).kind, 'wait', 'asking changes nothing');
      await clock.advance(verdict.ms);
      assert.equal(loops.check(KEY).kind, 'sync');
      timestamp(0);
      return verdict.ms;
    }

    it('runs are put off from one second to five minutes', async () => {
      const delays = [];
      for (let at = 0; at < 11; at++) delays.push((await waited()) / 1000);
      assert.deepEqual(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
      assert.deepEqual(ended, []);
    });

    it('what others do meanwhile neither ends nor shortens it', async () => {
      await waited();
      foreignWrite({ status: { note: 'theirs' } }, { label: 'theirs' });
      distraction();
      assert.deepEqual(loops.check(KEY), { kind: 'wait', ms: 2000 });
    });

    it('a new spec is looked at at once, and the delays begin anew', async () => {
      await waited();
      await waited();
      foreignWrite({ spec: { size: 2 } });
      assert.equal(loops.check(KEY).kind, 'sync');
      timestamp(0);
      assert.equal(await waited(), 1000);
      assert.deepEqual(ended, []);
    });

    it('so is a deletion', () => {
      const before = thing;
      thing = next(thing, {});
      thing.metadata.deletionTimestamp = 'now';
      event(before, thing);
      assert.equal(loops.check(KEY).kind, 'sync');
    });

    it('it is over when nothing has flapped for a minute', async () => {
      await waited();
      loops.check(KEY);
      await clock.advance(59_999);
      assert.deepEqual(ended, []);
      await clock.advance(1);
      assert.deepEqual(ended, ['.status.seenAt 4']);
      assert.deepEqual(loops.loops, []);
      assert.equal(loops.check(KEY).kind, 'sync');
      assert.deepEqual(await turn(9, timestamp), [], 'the evidence is gone');
    });

    it('it is over for good: what was found then is no evidence any more', async () => {
      await clock.advance(60_000);
      assert.equal(ended.length, 1);
      assert.equal(loops.check(KEY).kind, 'sync');
    });

    it('it is over when nothing has flapped for twice the delay, if that is longer', async () => {
      for (let at = 0; at < 9; at++) await waited();
      loops.check(KEY);
      await clock.advance(599_999);
      assert.deepEqual(ended, []);
      await clock.advance(1);
      assert.equal(ended.length, 1);
    });

    it('it is over when the object is gone; its successor begins anew', () => {
      loops.observe(KEY, COUNTS, thing, undefined, true);
      assert.equal(ended.length, 1);
      assert.equal(loops.size, 0);
      assert.equal(loops.check(KEY).kind, 'sync');
      assert.equal(clock.pending, 0);
    });

    it('other keys run', () => {
      assert.equal(loops.check(objectKey('default', 'other')).kind, 'sync');
    });

    it('nothing is left of it when all is stopped', () => {
      loops.close();
      assert.deepEqual([clock.pending, loops.size, ended], [0, 0, []]);
    });
  });

  it('does not take the value that others insist on for a new spec', async () => {
    const fight = (at: number) => {
      write({ spec: { size: 0 } });
      foreignWrite({ spec: { size: 100 + at } });
    };
    const held = await turn(6, fight);
    assert.equal(held[0]?.kind, 'found');
    await clock.advance(980);
    assert.equal(loops.check(KEY).kind, 'sync');
    fight(7);
    assert.deepEqual(loops.check(KEY), { kind: 'wait', ms: 2000 });
  });

  it('remembers keys that write, the last ones only, and for a while', async () => {
    loops = new HotLoopDetector({ clock, onEnd: () => undefined }, { capacity: 3 });
    const keyOfNumber = (at: number) => objectKey('default', `k${at}`);
    const writes = (at: number) =>
      loops.record(keyOfNumber(at), {
        verb: 'update',
        at: '',
        ms: 1,
        failed: false,
        resource: COUNTS,
        answer: thing,
      });
    loops.check(KEY);
    event(thing, next(thing, {}));
    called({ verb: 'create', answer: thing });
    called({ verb: 'get' });
    assert.equal(loops.size, 0);
    for (let at = 0; at < 5; at++) writes(at);
    assert.equal(loops.size, 3);
    await clock.advance(600_001);
    writes(2);
    writes(9);
    assert.equal(loops.size, 2);
    assert.throws(
      () => new HotLoopDetector({ clock, onEnd: () => undefined }, { capacity: 0 }),
      /got 0/,
    );
  });
});
