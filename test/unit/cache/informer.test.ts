import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf } from '../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import { Informer } from '../../../src/cache/informer.ts';
import type { EventHandler, HandlerRegistration } from '../../../src/cache/event-handler.ts';
import { noInformerMetrics } from '../../../src/metrics/no-metrics.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import {
  expired,
  FakeSource,
  notFound,
  thing,
  THINGS,
  unreachable,
} from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';
import { informerFixture, recordingHandler } from './harness.ts';
import type { InformerFixture } from './harness.ts';

const key = (name: string): ObjectKey => keyOf(thing(name));

/** Ends the watch and expires its history, so that the next state is a relist. */
async function relist({ source, clock }: InformerFixture, meanwhile: () => void): Promise<void> {
  source.isStalled = true;
  meanwhile();
  source.isStalled = false;
  source.compact();
  source.endWatches();
  await clock.advance(10_000);
}

test('delivers initial objects and then changes, which the store already contains', async () => {
  const fixture = informerFixture();
  const { notes, handler } = recordingHandler();
  const stored: (number | undefined)[] = [];
  const look = ({ metadata }: { metadata: { name: string } }) => {
    stored.push(fixture.informer.lister.get(key(metadata.name))?.spec.value);
  };
  fixture.informer.addHandler({ onAdd: look, onUpdate: look, onDelete: look });
  fixture.informer.addHandler(handler);
  fixture.source.put('a', 1);
  await fixture.start();
  fixture.source.put('a', 2);
  fixture.source.put('b', 3);
  fixture.source.remove('a');
  await settle();
  assert.deepEqual(notes, ['+a=1!', '~a=1→2', '+b=3', '-a']);
  assert.deepEqual(stored, [1, 2, 3, undefined]);
  await fixture.stop();
});

// upstream: 42, 47
test('has synced after the initial state was handled, even an empty one', async () => {
  const fixture = informerFixture();
  const registration = fixture.informer.addHandler({});
  assert.equal(fixture.informer.hasSynced, false);
  await fixture.start();
  await fixture.informer.synced;
  await registration.synced;
  assert.equal(fixture.informer.hasSynced, true);
  assert.equal(registration.hasSynced, true);
  await fixture.stop();
});

// upstream: 74
test('has not synced while handlers receive the initial state', async () => {
  const fixture = informerFixture();
  const during: boolean[] = [];
  const registration = fixture.informer.addHandler({
    onAdd: () => {
      during.push(fixture.informer.hasSynced || registration.hasSynced);
    },
  });
  fixture.source.put('a');
  await fixture.start();
  assert.deepEqual(during, [false]);
  assert.equal(registration.hasSynced, true);
  await fixture.stop();
});

// upstream: 74
test('stays synced after connection failures', async () => {
  const fixture = informerFixture();
  await fixture.start();
  fixture.source.missing = true;
  fixture.source.resetWatches();
  await fixture.clock.advance(60_000);
  assert.equal(fixture.informer.hasSynced, true);
  await fixture.stop();
  assert.equal(fixture.informer.hasSynced, true);
});

// upstream: 74
test('rejects synced if it stops first', async () => {
  const fixture = informerFixture();
  fixture.source.missing = true;
  const registration = fixture.informer.addHandler({});
  await fixture.start();
  const late = fixture.informer.addHandler({});
  await fixture.stop();
  await assert.rejects(fixture.informer.synced, /stopped before it had synced/);
  await assert.rejects(registration.synced, /stopped before it had synced/);
  await assert.rejects(late.synced, /stopped before it had synced/);
});

// upstream: 41, 61
test('delivers only the differences of a relist, deletions first', async () => {
  const fixture = informerFixture();
  for (const name of ['same', 'changed', 'gone']) fixture.source.put(name, 1);
  const { notes, handler } = recordingHandler();
  const sizes: string[] = [];
  const look = () => {
    sizes.push(
      fixture.informer.lister
        .list()
        .map(({ metadata }) => metadata.name)
        .sort()
        .join(),
    );
  };
  fixture.informer.addHandler(handler);
  await fixture.start();
  notes.length = 0;
  fixture.informer.addHandler({ onUpdate: look, onDelete: look });
  await relist(fixture, () => {
    fixture.source.put('new', 1);
    fixture.source.put('changed', 2);
    fixture.source.remove('gone');
  });
  assert.deepEqual(notes, ['-gone?', '~changed=1→2', '+new=1']);
  assert.deepEqual(sizes, ['changed,new,same', 'changed,new,same']);
  await fixture.stop();
});

test('delivers an object that was recreated without a watch as an update with another uid', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  const uids: string[] = [];
  fixture.informer.addHandler({
    onUpdate: (old, object) => {
      uids.push(old.metadata.uid, object.metadata.uid);
    },
  });
  await fixture.start();
  await relist(fixture, () => {
    fixture.source.remove('a');
    fixture.source.put('a', 2);
  });
  assert.equal(uids.length, 2);
  assert.notEqual(uids[0], uids[1]);
  await fixture.stop();
});

// upstream: 38
test('does not deliver an event twice', async () => {
  const fixture = informerFixture();
  const object = fixture.source.put('a', 1);
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler);
  await fixture.start();
  fixture.source.emit({ type: 'added', object });
  fixture.source.emit({ type: 'modified', object });
  fixture.source.emit({ type: 'deleted', object: thing('never-seen') });
  await settle();
  assert.deepEqual(notes, ['+a=1!']);
  await fixture.stop();
});

test('delivers the final state with a deletion', async () => {
  const fixture = informerFixture();
  const { metadata } = fixture.source.put('a', 1);
  const versions: string[] = [];
  fixture.informer.addHandler({
    onDelete: (lastKnown, finalStateKnown) => {
      versions.push(`${lastKnown.metadata.resourceVersion} ${finalStateKnown}`);
    },
  });
  await fixture.start();
  fixture.source.remove('a');
  await settle();
  assert.deepEqual(versions, [`${Number(metadata.resourceVersion) + 1} true`]);
  await fixture.stop();
});

test('empties the store when the resource disappears and fills it when it returns', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler);
  await fixture.start();
  fixture.source.missing = true;
  fixture.source.endWatches();
  await fixture.clock.advance(5000);
  assert.deepEqual(notes, ['+a=1!', '-a?']);
  assert.equal(fixture.informer.progress.missing, true);
  fixture.source.missing = false;
  await fixture.clock.advance(6000);
  assert.deepEqual(notes, ['+a=1!', '-a?', '+a=1']);
  assert.equal(fixture.informer.progress.missing, false);
  await fixture.stop();
});

// upstream: 24, 51
test('advances its resourceVersion with changes, deletions and bookmarks', async () => {
  const fixture = informerFixture();
  const { informer, source } = fixture;
  assert.equal(informer.lastSyncResourceVersion, '');
  assert.equal(informer.hasReached('1'), false);
  await fixture.start();
  const steps = [informer.lastSyncResourceVersion];
  for (const step of [
    () => source.put('a'),
    () => source.remove('a'),
    () => {
      source.skip(7);
      source.bookmark();
    },
  ]) {
    step();
    await settle();
    steps.push(informer.lastSyncResourceVersion);
  }
  assert.deepEqual(steps, ['10', '11', '12', '19']);
  assert.equal(informer.hasReached('19'), true);
  assert.equal(informer.hasReached('20'), false);
  await fixture.stop();
});

test('does not advance its resourceVersion with an unordered state', async () => {
  const clock = new FakeClock();
  const inner = new FakeSource(clock, { watchList: 'refused' });
  const source = {
    list: async () => ({ items: [], resourceVersion: '' }),
    watch: inner.watch.bind(inner),
  };
  inner.put('a', 1);
  const informer = new Informer(THINGS, source, { clock });
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  await settle();
  assert.equal(informer.lister.size, 1);
  assert.equal(informer.lastSyncResourceVersion, '');
  inner.put('a', 2);
  await settle();
  assert.equal(informer.lastSyncResourceVersion, '12');
  stop.abort();
  await running;
});

// upstream: 51
test('has reached the resourceVersion of the delivered event, but no later one', async () => {
  const fixture = informerFixture();
  const seen: boolean[] = [];
  const look = ({ metadata }: { metadata: { resourceVersion: string } }) => {
    const { resourceVersion } = metadata;
    seen.push(fixture.informer.hasReached(resourceVersion));
    seen.push(fixture.informer.hasReached(String(Number(resourceVersion) + 1)));
  };
  fixture.informer.addHandler({
    onAdd: look,
    onUpdate: (_, object) => look(object),
    onDelete: look,
  });
  await fixture.start();
  fixture.source.put('a', 1);
  fixture.source.put('a', 2);
  fixture.source.remove('a');
  await settle();
  assert.deepEqual(seen, [true, false, true, false, true, false]);
  await fixture.stop();
});

// upstream: 71
test('delivers the cached objects to a late handler before other events', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  fixture.source.put('b', 1);
  await fixture.start();
  const { notes, handler } = recordingHandler();
  fixture.source.put('a', 2);
  const registration = fixture.informer.addHandler(handler);
  fixture.source.put('b', 2);
  assert.equal(registration.hasSynced, false);
  await registration.synced;
  await settle();
  fixture.source.put('c', 3);
  await settle();
  assert.deepEqual(notes, ['+a=1!', '+b=1!', '~a=1→2', '~b=1→2', '+c=3']);
  await fixture.stop();
});

// upstream: 71
test('delivers every event once to a handler that another handler adds', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  fixture.source.put('b', 1);
  const { notes, handler } = recordingHandler();
  let added: HandlerRegistration | undefined;
  fixture.informer.addHandler({
    onAdd: () => {
      added ??= fixture.informer.addHandler(handler);
    },
  });
  await fixture.start();
  fixture.source.put('a', 2);
  await settle();
  assert.deepEqual(notes, ['+a=1!', '+b=1!', '~a=1→2']);
  assert.equal(added?.hasSynced, true);
  await fixture.stop();
});

// upstream: 69
test('delivers events twice to a handler that was added twice', async () => {
  const fixture = informerFixture();
  const { notes, handler } = recordingHandler();
  const first = fixture.informer.addHandler(handler);
  fixture.informer.addHandler(handler);
  fixture.source.put('a', 1);
  await fixture.start();
  assert.deepEqual(notes, ['+a=1!', '+a=1!']);
  first.remove();
  fixture.source.put('a', 2);
  await settle();
  assert.deepEqual(notes.slice(2), ['~a=1→2']);
  await fixture.stop();
});

// upstream: 69, 73
test('delivers nothing to a removed handler, not even events in progress', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  fixture.source.put('b', 1);
  const received: string[] = [];
  const registration = fixture.informer.addHandler({
    onAdd: ({ metadata }) => {
      received.push(metadata.name);
      registration.remove();
      registration.remove();
    },
  });
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler);
  await fixture.start();
  assert.deepEqual(received, ['a']);
  assert.deepEqual(notes, ['+a=1!', '+b=1!']);
  assert.equal(registration.hasSynced, false);
  await assert.rejects(registration.synced, /removed before it had synced/);
  await fixture.stop();
});

// upstream: 71
test('never calls a handler that was removed before its first event', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  await fixture.start();
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler).remove();
  await settle();
  assert.deepEqual(notes, []);
  await fixture.stop();
});

// upstream: 57, 73
test('logs and counts a handler that throws, without effect on others', async () => {
  let failures = 0;
  const fixture = informerFixture({
    metrics: {
      informer: () => ({
        listed: () => undefined,
        watchStarted: () => undefined,
        watchEnded: () => undefined,
        watchStalled: () => undefined,
        historyLost: () => undefined,
        processed: () => undefined,
        handlerFailed: () => failures++,
        objectRefused: () => undefined,
      }),
    },
  });
  const broken = () => {
    throw new Error('boom');
  };
  const registration = fixture.informer.addHandler(
    { onAdd: broken, onUpdate: broken, onDelete: broken },
    { name: 'clumsy' },
  );
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler);
  fixture.source.put('a', 1);
  await fixture.start();
  fixture.source.put('a', 2);
  fixture.source.remove('a');
  await settle();
  assert.deepEqual(notes, ['+a=1!', '~a=1→2', '-a']);
  assert.equal(registration.hasSynced, true);
  assert.equal(failures, 3);
  const errors = fixture.lines.filter(({ level }) => level === 'error');
  assert.deepEqual(
    errors.map(({ fields }) => [fields['handler'], fields['method'], fields['object']]),
    [
      ['clumsy', 'onAdd', 'default/a'],
      ['clumsy', 'onUpdate', 'default/a'],
      ['clumsy', 'onDelete', 'default/a'],
    ],
  );
  await fixture.stop();
});

test('logs ten lines a minute of a handler that throws for each of a thousand objects, then their number', async () => {
  const fixture = informerFixture();
  for (let at = 0; at < 1000; at++) fixture.source.put(`thing-${at}`);
  fixture.informer.addHandler({
    onAdd: () => {
      throw new Error('boom');
    },
  });
  await fixture.start();
  assert.equal(fixture.shown().length, 10);
  await fixture.clock.advance(60_000);
  const { fields } = fixture.lines.findLast(({ level }) => level === 'error')!;
  assert.deepEqual([fields['times'], fields['more']], [990, 980]);
  await fixture.stop();
});

test('rejects an async handler by name', () => {
  const { informer } = informerFixture();
  const handler: EventHandler<Thing> = Object.assign({}, { onUpdate: async () => undefined });
  assert.throws(
    () => informer.addHandler(handler, { name: 'eager' }),
    /TypeError: Handler eager: onUpdate is async/,
  );
});

// upstream: 73
test('fails a handler that returns a promise, by name, and logs its rejection', async () => {
  const fixture = informerFixture();
  const promising = Object.assign({}, { onAdd: () => Promise.reject(new Error('late')) });
  fixture.informer.addHandler(promising, { name: 'promising' });
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler);
  fixture.source.put('a', 1);
  await fixture.start();
  assert.deepEqual(notes, ['+a=1!']);
  const errors = fixture.lines
    .filter(({ level }) => level === 'error')
    .map(({ error }) => String(error));
  assert.match(errors[0]!, /TypeError: Handler promising: onAdd returned a promise/);
  assert.match(errors[1]!, /late/);
  await fixture.stop();
});

test('limits the log lines of a handler that always returns a promise', async () => {
  let failures = 0;
  const fixture = informerFixture({
    metrics: {
      informer: () => ({ ...noInformerMetrics, handlerFailed: () => failures++ }),
    },
  });
  const promising = Object.assign({}, { onAdd: () => Promise.reject(new Error('late')) });
  fixture.informer.addHandler(promising);
  for (let at = 0; at < 50; at++) fixture.source.put(`thing-${at}`);
  await fixture.start();
  assert.equal(failures, 50);
  assert.equal(fixture.shown().length, 10);
  await fixture.stop();
});

test('logs and counts an index function that returns a promise', async () => {
  let refused = 0;
  const fixture = informerFixture({
    metrics: {
      informer: () => ({ ...noInformerMetrics, objectRefused: () => refused++ }),
    },
  });
  const promising: unknown = () => Promise.reject(new Error('late'));
  fixture.informer.addIndexers({ promising: promising as () => string[] });
  fixture.source.put('a');
  await fixture.start();
  assert.equal(refused, 1);
  assert.match(
    String(fixture.lines.find(({ level }) => level === 'error')?.error),
    /TypeError: Index function promising returned a promise/,
  );
  assert.deepEqual(fixture.informer.lister.byIndex('promising', 'a'), []);
  await fixture.stop();
});

// upstream: 57
test('logs an index function that throws and caches the object', async () => {
  const fixture = informerFixture();
  fixture.informer.addIndexers({
    parity: ({ spec }) => {
      if (spec.value === 13) throw new Error('unlucky');
      return [spec.value % 2 === 0 ? 'even' : 'odd'];
    },
  });
  fixture.source.put('a', 13);
  fixture.source.put('b', 3);
  await fixture.start();
  assert.deepEqual(fixture.informer.lister.indexKeys('parity', 'odd'), ['default/b']);
  assert.equal(fixture.informer.lister.get(key('a'))?.spec.value, 13);
  assert.deepEqual(fixture.shown(), ['Could not index an object']);
  await fixture.stop();
});

// upstream: 63
test('accepts indexes before and after the start', async () => {
  const fixture = informerFixture();
  fixture.informer.addIndexers({ early: ({ spec }) => [String(spec.value)] });
  fixture.source.put('a', 1);
  await fixture.start();
  fixture.informer.addIndexers({ late: ({ spec }) => [String(spec.value)] });
  fixture.source.put('b', 1);
  await settle();
  const { lister } = fixture.informer;
  for (const index of ['early', 'late']) {
    assert.deepEqual(lister.indexKeys(index, '1'), ['default/a', 'default/b']);
  }
  assert.throws(() => fixture.informer.addIndexers({ late: () => [] }), /late/);
  assert.equal(lister.list({ namespace: 'default' }).length, 2);
  await fixture.stop();
});

for (const mode of ['on', 'refused'] as const) {
  // upstream: 25, 60
  test(`shows only transformed objects, with streaming ${mode}`, async () => {
    const fixture = informerFixture(
      { transform: (object) => ({ ...object, spec: { value: object.spec.value + 100 } }) },
      mode,
    );
    const { notes, handler } = recordingHandler();
    fixture.informer.addHandler(handler);
    fixture.source.put('a', 1);
    await fixture.start();
    fixture.source.put('a', 2);
    await settle();
    assert.deepEqual(notes, ['+a=101!', '~a=101→102']);
    assert.equal(fixture.informer.lister.get(key('a'))?.spec.value, 102);
    await fixture.stop();
  });
}

// upstream: 66
test('runs only once', async () => {
  const fixture = informerFixture();
  await fixture.start();
  await assert.rejects(fixture.informer.run(new AbortController().signal), /can run only once/);
  await fixture.stop();
  await assert.rejects(fixture.informer.run(new AbortController().signal), /can run only once/);
});

// upstream: 70
test('delivers nothing and rejects handlers after the stop', async () => {
  const fixture = informerFixture();
  const { notes, handler } = recordingHandler();
  const registration = fixture.informer.addHandler(handler, { resyncPeriodMs: 1000 });
  await fixture.start();
  await fixture.stop();
  fixture.source.put('a', 1);
  await fixture.clock.advance(10_000);
  assert.deepEqual(notes, []);
  assert.throws(() => fixture.informer.addHandler(handler), /has stopped/);
  registration.remove();
  assert.equal(fixture.clock.pending, 0);
  assert.equal(fixture.source.openWatches, 0);
});

// upstream: 72
test('delivers many initial objects in slices, and none after a stop', async () => {
  let turns = 0;
  const received: string[] = [];
  const fixture = informerFixture({
    yieldTurn: () => {
      if (++turns === 5) void fixture.stop();
      return new Promise((resolve) => void setImmediate(resolve));
    },
  });
  for (let at = 0; at < 8000; at++) fixture.source.put(`thing-${at}`);
  fixture.informer.addHandler({
    onAdd: ({ metadata }) => {
      received.push(metadata.name);
    },
  });
  await fixture.start();
  await settle();
  assert.equal(turns, 5);
  assert.ok(received.length > 1000 && received.length < 8000, `${received.length} received`);
  assert.equal(fixture.informer.hasSynced, false);
});

// upstream: 56
test('freezes cached objects', async () => {
  const fixture = informerFixture();
  fixture.informer.addHandler({
    onAdd: (object) => {
      Object.assign(object.spec, { value: 99 });
    },
  });
  fixture.source.put('a', 1);
  await fixture.start();
  assert.equal(fixture.informer.lister.get(key('a'))?.spec.value, 1);
  assert.deepEqual(fixture.shown(), ['Event handler failed']);
  await fixture.stop();
});

test('does not freeze cached objects by default', async () => {
  const clock = new FakeClock();
  const source = new FakeSource(clock);
  source.put('a', 1);
  const informer = new Informer(THINGS, source, { clock });
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  await clock.advance(1000);
  const object = informer.lister.get(key('a'));
  assert.ok(object && !Object.isFrozen(object));
  stop.abort();
  await running;
});

test('lists again on request', async () => {
  const fixture = informerFixture({}, 'refused');
  await fixture.start();
  fixture.source.isStalled = true;
  fixture.source.put('missed', 1);
  fixture.source.isStalled = false;
  await fixture.clock.advance(1000);
  const { quorumReadMs } = fixture.informer;
  fixture.informer.relist();
  await fixture.clock.advance(1000);
  assert.ok(fixture.informer.quorumReadMs > quorumReadMs);
  assert.ok(fixture.informer.lister.get(key('missed')));
  await fixture.stop();
});

test('logs the initial state in one line at -v=2', async () => {
  const fixture = informerFixture();
  fixture.source.put('a', 1);
  fixture.source.failNext('watch', unreachable());
  fixture.source.failNext('list', notFound());
  await fixture.start();
  await fixture.clock.advance(1000);
  const populated = fixture.lines.filter(({ message }) => message === 'Caches populated');
  assert.deepEqual(
    populated.map(({ level, fields }) => [level, fields]),
    [[2, { resource: 'things.test.example', type: 'Thing', count: 1, tookMs: 800 }]],
  );
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(5000);
  assert.equal(fixture.lines.filter(({ message }) => message === 'Caches populated').length, 1);
  await fixture.stop();
});

test('reports a server restored from a backup by one line and one metric, and delivers the differences', async () => {
  let losses = 0;
  const fixture = informerFixture({
    metrics: { informer: () => ({ ...noInformerMetrics, historyLost: () => losses++ }) },
  });
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler);
  fixture.source.put('kept', 1);
  const kept = fixture.source.objects;
  await fixture.start();
  fixture.source.put('lost', 1);
  fixture.source.put('kept', 2);
  await settle();
  notes.length = 0;
  fixture.source.restore(11, kept);
  await fixture.clock.advance(2000);
  assert.deepEqual(notes, ['-lost?', '~kept=2→1']);
  assert.equal(losses, 1);
  const lines = fixture.lines.filter(({ level }) => level === 0);
  assert.equal(lines.length, 1);
  const { added, changed, removed, from, to } = lines.at(0)?.fields ?? {};
  assert.deepEqual([added, changed, removed, from, to], [0, 1, 1, '13', '11']);
  assert.equal(fixture.informer.hasReached('12'), false);
  await fixture.stop();
});
