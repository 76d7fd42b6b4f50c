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
import type { FinishedCall } from '../../../../src/client/observed-client.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { aCount } from '../../../support/objects.ts';

interface Thing extends KubernetesObject {
  spec: Record<string, unknown>;
  status: Record<string, unknown>;
}

const KEY = objectKey('default', 'web');

describe('HotLoopDetector', () => {
  let clock: FakeClock;
  let loops: HotLoopDetector;
  let ended: string[];
  let version: number;
  /** Object of the key. */
  let thing: Thing;
  /** Another object that the key writes. */
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

  /** Returns the next state of an object. */
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

  const called = (call: Partial<FinishedCall>) =>
    loops.record(KEY, { verb: 'patch', at: KEY, ms: 1, failed: false, resource: COUNTS, ...call });

  /** Records an event with a change from `before` to `after`. */
  const event = (before: Thing, after: Thing, resource: Resource = COUNTS) =>
    loops.observe(KEY, resource, before, after, resource === COUNTS);

  /** Writes the object of the key, with its event. */
  function write(change: Partial<Pick<Thing, 'spec' | 'status'>>, labels = {}): void {
    const before = thing;
    thing = next(thing, change, labels);
    called({ answer: thing, options: { fieldManager: 'us' } });
    event(before, thing);
  }

  /** Writes the object as another client. */
  function otherWrite(change: Partial<Pick<Thing, 'spec' | 'status'>>, labels = {}): void {
    const before = thing;
    thing = next(thing, change, labels);
    event(before, thing);
  }

  /** Records another event that triggers the key. */
  const otherEvent = () => event(child, next(child, { status: { ready: version } }), PODS);

  /** Syncs and writes `turns` times at intervals of `gapMs`; returns the decisions to postpone. */
  async function turn(
    turns: number,
    write: (turn: number) => void,
    gapMs = 20,
  ): Promise<Exclude<HotLoopDecision, { kind: 'sync' }>[]> {
    const held = [];
    for (let at = 0; at < turns; at++) {
      const decision = loops.check(KEY);
      if (decision.kind === 'sync') write(at);
      else held.push(decision);
      await clock.advance(gapMs);
    }
    return held;
  }

  const timestamp = (at: number) => write({ status: { seenAt: `t${clock.monotonic()}-${at}` } });

  it('detects a key that writes a timestamp in each sync', async () => {
    assert.deepEqual(await turn(11, timestamp), []);
    const decision = loops.check(KEY);
    assert.ok(decision.kind === 'found');
    const { kind, paths, name, times, withinMs, fieldManager } = decision.loop;
    assert.deepEqual(
      { kind, paths, name, times, withinMs, fieldManager, ms: decision.ms },
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
    assert.deepEqual(loops.loops, [decision.loop]);
  });

  it('detects a key that alternates between two values', async () => {
    const [first] = await turn(12, (at) => write({}, { side: at % 2 ? 'left' : 'right' }));
    assert.ok(first?.kind === 'found');
    assert.deepEqual(first.loop.paths, [['metadata', 'labels', 'side']]);
  });

  it('detects conflicting writes to a field once the other client has written it', async () => {
    const held = await turn(6, () => {
      write({}, { team: 'red' });
      otherWrite({}, { team: 'blue', theirs: String(version) });
    });
    const [found] = held;
    assert.ok(found?.kind === 'found' && held.length === 1);
    const { kind, paths, times, withinMs } = found.loop;
    assert.deepEqual(
      { kind, paths, times, withinMs },
      { kind: 'disputed', paths: [['metadata', 'labels', 'team']], times: 5, withinMs: 80 },
    );
  });

  it('reports conflicting writes only while the field has the value of the other client', async () => {
    const reversed = () => {
      otherWrite({}, { team: 'blue' });
      write({}, { team: 'red' });
    };
    assert.deepEqual(await turn(12, reversed), []);
    otherWrite({}, { team: 'blue' });
    assert.equal(loops.check(KEY).kind, 'found');
  });

  it('detects conflicting writes to the spec and to other objects', async () => {
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

  describe('of an object that the key deletes and creates again', () => {
    type Sent = { readonly metadata: object; readonly spec: object };
    const sent: Sent = { metadata: { namespace: 'default', name: 'web-0' }, spec: { image: 'a' } };
    const recreate = (changes: object, sentNow: Sent = sent, at: string = 'default/web-0') => {
      const name = at.endsWith('*') ? `web-${version}` : 'web-0';
      const created = next(child, {});
      const answer = {
        ...created,
        ...changes,
        metadata: { ...created.metadata, ...sentNow.metadata, name },
      };
      called({ verb: 'create', at, resource: PODS, sent: sentNow, answer });
      called({ verb: 'delete', at: `default/${name}`, resource: PODS });
      version++;
    };

    it('detects it, and names the fields that the server changed', async () => {
      const held = await turn(8, () => recreate({ spec: { image: 'registry/a', more: 1 } }));
      const [found] = held;
      assert.ok(found?.kind === 'found');
      const { kind, paths, name, times } = found.loop;
      assert.deepEqual(
        { kind, paths, name, times },
        { kind: 'recreated', paths: [['spec', 'image']], name: 'web-0', times: 5 },
      );
    });

    it('postpones the key longer each time, until the object stays', async () => {
      const write = () => recreate({});
      await turn(7, write);
      const delays: number[] = [];
      for (let round = 0; round < 4; round++) {
        const decision = loops.check(KEY);
        assert.ok(decision.kind !== 'sync');
        delays.push(decision.ms);
        await clock.advance(decision.ms);
        assert.equal(loops.check(KEY).kind, 'sync');
        write();
      }
      assert.ok(
        delays.every((ms, at) => at === 0 || ms > (delays[at - 1] ?? 0)),
        String(delays),
      );
      await clock.advance(600_000);
      assert.deepEqual(loops.loops, []);
      assert.equal(loops.check(KEY).kind, 'sync');
    });

    it('counts objects with generated names if the server changes them', async () => {
      const own = {
        metadata: { namespace: 'default', generateName: 'web-' },
        spec: { image: 'a' },
      };
      const same = () => recreate({ spec: { image: 'a' } }, own, 'default/web-*');
      assert.deepEqual(await turn(12, same), []);
      const changed = () => recreate({ spec: { image: 'b' } }, own, 'default/web-*');
      assert.equal((await turn(8, changed))[0]?.kind, 'found');
    });

    it('counts other desired states, unless another object has changed meanwhile', async () => {
      const other = (at: number) => {
        const spec = { image: `a${at}` };
        recreate({ spec }, { ...sent, spec });
      };
      const [found] = await turn(7, other);
      assert.ok(found?.kind === 'found');
      assert.deepEqual([found.loop.changedBy, found.loop.paths], ['key', [['spec', 'image']]]);
      loops.close();
      const asked = (at: number) => {
        otherWrite({ spec: { at } });
        other(at);
      };
      assert.deepEqual(await turn(12, asked), []);
    });

    it('does not count slow replacements', async () => {
      assert.deepEqual(await turn(12, () => recreate({}), 61_000), []);
    });

    describe('because another client deletes it', () => {
      const generated = { ...sent, metadata: { namespace: 'default', generateName: 'web-' } };
      let uids = 0;
      const create = (sentNow: Sent, at: string, isEarly = false) => {
        const { metadata } = next(child, {});
        const uid = `pod-${uids++}`;
        const name = at.endsWith('*') ? `web-${uid}` : 'web-0';
        const pod = { ...child, metadata: { ...metadata, ...sentNow.metadata, name, uid } };
        const answered = () =>
          called({ verb: 'create', at, resource: PODS, sent: sentNow, answer: pod });
        const vanishes = () => loops.observe(KEY, PODS, pod, undefined, false);
        if (!isEarly) answered();
        return { vanishes, answered };
      };

      for (const [what, sentNow, at] of [
        ['with one name', sent, 'default/web-0'],
        ['with generated names', generated, 'default/web-*'],
      ] as const) {
        it(`detects objects ${what} that vanish at once`, async () => {
          const held = await turn(8, () => create(sentNow, at).vanishes());
          assert.ok(held[0]?.kind === 'found');
          assert.deepEqual([held[0].loop.changedBy, held[0].loop.times], ['deletion', 5]);
        });
      }

      it('detects deletions that it sees before the responses', async () => {
        const held = await turn(9, () => {
          const { vanishes, answered } = create(sent, 'default/web-0', true);
          vanishes();
          answered();
        });
        assert.equal(held[0]?.kind, 'found');
      });

      it('does not postpone the replacement of objects that have lived, or while others live', async () => {
        const lived = await turn(
          12,
          () => {
            const { vanishes } = create(sent, 'default/web-0');
            clock.after(11_000, vanishes);
          },
          11_010,
        );
        assert.deepEqual(lived, []);
        const some = await turn(12, (at) => {
          const { vanishes } = create(generated, 'default/web-*');
          if (at % 2 === 0) vanishes();
        });
        assert.deepEqual(some, []);
      });
    });

    const kind = { apiVersion: 'v1', kind: 'Count', name: 'web' };
    const controller = { ...kind, uid: 'u1', controller: true };
    const owned = { namespace: 'default', ownerReferences: [controller] };

    it('counts objects that the key releases, several in each sync', async () => {
      const generateName = 'web-';
      const labels = { app: 'a' };
      const own = { metadata: { ...owned, generateName, labels }, spec: { image: 'a' } };
      let pods: KubernetesObject[] = [];
      const create = () => {
        const { metadata } = next(child, {});
        const name = `web-${version++}`;
        const labelled = { ...metadata, ...owned, generateName, name, labels: {} };
        const answer = { ...child, metadata: labelled, spec: { image: 'a' } };
        called({ verb: 'create', at: 'default/web-*', resource: PODS, sent: own, answer });
        return answer;
      };
      const [found] = await turn(8, () => {
        for (const pod of pods) {
          const { ownerReferences: _, ...metadata } = pod.metadata;
          called({ resource: PODS, answer: { ...pod, metadata } });
        }
        pods = [create(), create(), create()];
      });
      assert.ok(found?.kind === 'found');
      const { paths, changedBy, times } = found.loop;
      assert.deepEqual(
        [paths, changedBy, times],
        [[['metadata', 'labels', 'app']], 'admission', 5],
      );
    });

    it('counts objects that admission gives to another owner, whatever their names', async () => {
      const taken = [{ ...controller, uid: 'u2' }];
      const [found] = await turn(8, () => {
        const name = `web-${version}`;
        const { metadata } = next(child, {});
        const answer = { ...child, metadata: { ...metadata, name, ownerReferences: taken } };
        const own = { metadata: { ...owned, name }, spec: {} };
        called({ verb: 'create', at: `default/${name}`, resource: PODS, sent: own, answer });
        version++;
      });
      assert.ok(found?.kind === 'found');
      assert.deepEqual(found.loop.paths, [['metadata', 'ownerReferences', 0, 'uid']]);
    });

    for (const [when, alternates] of [
      ['once it has changed them again', true],
      ['or later if each sync starts before it has', false],
    ] as const) {
      it(`names the fields that another client changes, ${when}`, async () => {
        let pod: Thing | undefined;
        const found = await turn(14, (at) => {
          if (pod && (at % 2 === 1 || !alternates)) {
            const before = pod;
            pod = next(pod, { spec: { image: 'b' } });
            event(before, pod, PODS);
            if (alternates) return;
          }
          const { metadata } = next(child, {});
          const answer = {
            ...child,
            spec: { image: 'a' },
            metadata: { ...metadata, name: 'web-0' },
          };
          called({ verb: 'delete', at: 'default/web-0', resource: PODS });
          called({ verb: 'create', at: 'default/web-0', resource: PODS, sent, answer });
          pod = answer;
          version++;
        });
        assert.ok(found[0]?.kind === 'found');
        assert.deepEqual(
          [found[0].loop.changedBy, found[0].loop.paths],
          ['others', [['spec', 'image']]],
        );
      });
    }
  });

  it('counts the changes of the 16 fields that were changed last', async () => {
    const field = (at: number) => write({ status: { [`at${at}`]: clock.monotonic() } });
    assert.deepEqual(await turn(170, (at) => field(at % 17)), []);
    assert.equal((await turn(170, (at) => field(at % 16)))[0]?.kind, 'found');
  });

  it('recognizes its own write if the event arrives before the response', async () => {
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
      'that other events trigger each time',
      (at) => {
        timestamp(at);
        otherEvent();
      },
    ],
    [
      'with other events during its syncs',
      (at) => {
        if (at % 2) otherEvent();
        timestamp(at);
      },
    ],
    [
      'with other events between self-triggered syncs',
      (at) => {
        timestamp(at);
        if (at % 3 === 0) otherEvent();
      },
    ],
    [
      'that creates an object in each sync',
      (at) => {
        timestamp(at);
        called({ verb: 'create', answer: next(child, {}), resource: PODS });
      },
    ],
    [
      'that deletes an object in each sync',
      (at) => {
        timestamp(at);
        called({ verb: 'delete', resource: PODS });
      },
    ],
    ['that changes another field in each sync', (at) => write({ status: { [`step${at}`]: 1 } })],
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
      'whose field another client overwrites once and then keeps changing',
      (at) => {
        if (at === 0) write({}, { team: 'red' });
        otherWrite({}, { team: `blue${at}` });
      },
    ],
    [
      'that writes more versions than are remembered',
      (at) => {
        for (let part = 0; part < 20; part++) write({ status: { part: `${at}.${part}` } });
      },
    ],
    ['whose writes change nothing', () => called({ answer: thing })],
    [
      'that is requeued and whose events do not trigger it',
      (at) => called({ answer: (thing = next(thing, { status: { at } })) }),
    ],
    ['with long intervals', timestamp, 61_000],
    [
      'whose changes another client follows in other fields',
      (at) => {
        write({ spec: { size: at } });
        otherWrite({ status: { size: at } });
      },
    ],
    [
      'whose object other clients change in other fields',
      (at) => {
        write({ spec: { image: `v${at}` } });
        otherWrite({ spec: { replicas: at } }, { revision: String(at) });
      },
    ],
    [
      'whose field another client overwrites a few times',
      (at) => {
        write({}, { team: 'red' });
        if (at < 4) otherWrite({}, { team: 'blue' });
        else otherEvent();
      },
    ],
  ];
  for (const [what, write, gapMs] of harmless) {
    it(`does not postpone a key ${what}`, async () => {
      assert.deepEqual(await turn(40, write, gapMs), []);
    });
  }

  it('counts syncs, not writes', async () => {
    const twice = (at: number) => {
      write({ status: { phase: `a${at}` } });
      write({ status: { phase: `b${at}` } });
    };
    assert.deepEqual(await turn(11, twice), []);
    assert.equal(loops.check(KEY).kind, 'found');
  });

  it('detects a loop despite occasional other events', async () => {
    const held = await turn(60, (at) => {
      timestamp(at);
      if (at % 10 === 9) otherEvent();
    });
    assert.equal(held[0]?.kind, 'found');
  });

  describe('in a loop', () => {
    beforeEach(async () => {
      await turn(11, timestamp, 0);
      assert.equal(loops.check(KEY).kind, 'found');
    });

    /** Waits for the delay, syncs and writes; returns the delay in milliseconds. */
    async function waited(): Promise<number> {
      const decision = loops.check(KEY);
      assert.ok(decision.kind === 'wait');
      assert.equal(loops.check(KEY).kind, 'wait', 'asking changes nothing');
      await clock.advance(decision.ms);
      assert.equal(loops.check(KEY).kind, 'sync');
      timestamp(0);
      return decision.ms;
    }

    it('postpones syncs by 1 s to 5 min', async () => {
      const delays = [];
      for (let at = 0; at < 11; at++) delays.push((await waited()) / 1000);
      assert.deepEqual(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
      assert.deepEqual(ended, []);
    });

    it('keeps the delay if other clients change the object', async () => {
      await waited();
      otherWrite({ status: { note: 'theirs' } }, { label: 'theirs' });
      otherEvent();
      assert.deepEqual(loops.check(KEY), { kind: 'wait', ms: 2000 });
    });

    it('syncs a new spec immediately and resets the delay', async () => {
      await waited();
      await waited();
      otherWrite({ spec: { size: 2 } });
      assert.equal(loops.check(KEY).kind, 'sync');
      timestamp(0);
      assert.equal(await waited(), 1000);
      assert.deepEqual(ended, []);
    });

    it('syncs a deletion immediately', () => {
      const before = thing;
      thing = next(thing, {});
      thing.metadata.deletionTimestamp = 'now';
      event(before, thing);
      assert.equal(loops.check(KEY).kind, 'sync');
    });

    it('ends after one minute without changes', async () => {
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

    it('resets the counts after the end', async () => {
      await clock.advance(60_000);
      assert.equal(ended.length, 1);
      assert.equal(loops.check(KEY).kind, 'sync');
    });

    it('ends after twice the delay without changes, if that is longer', async () => {
      for (let at = 0; at < 9; at++) await waited();
      loops.check(KEY);
      await clock.advance(599_999);
      assert.deepEqual(ended, []);
      await clock.advance(1);
      assert.equal(ended.length, 1);
    });

    it('ends when the object is deleted; a new object starts without history', () => {
      loops.observe(KEY, COUNTS, thing, undefined, true);
      assert.equal(ended.length, 1);
      assert.equal(loops.size, 0);
      assert.equal(loops.check(KEY).kind, 'sync');
      assert.equal(clock.pending, 0);
    });

    it('does not postpone other keys', () => {
      assert.equal(loops.check(objectKey('default', 'other')).kind, 'sync');
    });

    it('cancels all timers on close', () => {
      loops.close();
      assert.deepEqual([clock.pending, loops.size, ended], [0, 0, []]);
    });
  });

  it('does not treat the value of the other client as a new spec', async () => {
    const fight = (at: number) => {
      write({ spec: { size: 0 } });
      otherWrite({ spec: { size: 100 + at } });
    };
    const held = await turn(6, fight);
    assert.equal(held[0]?.kind, 'found');
    await clock.advance(980);
    assert.equal(loops.check(KEY).kind, 'sync');
    fight(7);
    assert.deepEqual(loops.check(KEY), { kind: 'wait', ms: 2000 });
  });

  it('remembers a limited number of writing keys for a limited time', async () => {
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
    called({ verb: 'delete' });
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
