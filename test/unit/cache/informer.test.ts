import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf } from '../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import { Informer } from '../../../src/cache/informer.ts';
import type { EventHandler, HandlerRegistration } from '../../../src/cache/event-handler.ts';
import { noInformerMetrics } from '../../../src/metrics/reflector-metrics.ts';
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
import { informerWorld, notebook } from './harness.ts';
import type { InformerWorld } from './harness.ts';

const key = (name: string): ObjectKey => keyOf(thing(name));

/** Ends the watch and expires its history, so that the next state is a relist. */
async function relist({ source, clock }: InformerWorld, meanwhile: () => void): Promise<void> {
  source.isStalled = true;
  meanwhile();
  source.isStalled = false;
  source.compact();
  source.endWatches();
  await clock.advance(10_000);
}

test('delivers initial objects and then changes, which the store already contains', async () => {
  const world = informerWorld();
  const { notes, handler } = notebook();
  const stored: (number | undefined)[] = [];
  const look = ({ metadata }: { metadata: { name: string } }) => {
    stored.push(world.informer.lister.get(key(metadata.name))?.spec.value);
  };
  world.informer.addHandler({ onAdd: look, onUpdate: look, onDelete: look });
  world.informer.addHandler(handler);
  world.source.put('a', 1);
  await world.start();
  world.source.put('a', 2);
  world.source.put('b', 3);
  world.source.remove('a');
  await settle();
  assert.deepEqual(notes, ['+a=1!', '~a=1→2', '+b=3', '-a']);
  assert.deepEqual(stored, [1, 2, 3, undefined]);
  await world.stop();
});

// upstream: 42, 47
test('has synced after the initial state was handled, even an empty one', async () => {
  const world = informerWorld();
  const registration = world.informer.addHandler({});
  assert.equal(world.informer.hasSynced, false);
  await world.start();
  await world.informer.synced;
  await registration.synced;
  assert.equal(world.informer.hasSynced, true);
  assert.equal(registration.hasSynced, true);
  await world.stop();
});

// upstream: 74
test('has not synced while handlers receive the initial state', async () => {
  const world = informerWorld();
  const during: boolean[] = [];
  const registration = world.informer.addHandler({
    onAdd: () => {
      during.push(world.informer.hasSynced || registration.hasSynced);
    },
  });
  world.source.put('a');
  await world.start();
  assert.deepEqual(during, [false]);
  assert.equal(registration.hasSynced, true);
  await world.stop();
});

// upstream: 74
test('stays synced after connection failures', async () => {
  const world = informerWorld();
  await world.start();
  world.source.missing = true;
  world.source.resetWatches();
  await world.clock.advance(60_000);
  assert.equal(world.informer.hasSynced, true);
  await world.stop();
  assert.equal(world.informer.hasSynced, true);
});

// upstream: 74
test('rejects synced if it stops first', async () => {
  const world = informerWorld();
  world.source.missing = true;
  const registration = world.informer.addHandler({});
  await world.start();
  const late = world.informer.addHandler({});
  await world.stop();
  await assert.rejects(world.informer.synced, /stopped before it had synced/);
  await assert.rejects(registration.synced, /stopped before it had synced/);
  await assert.rejects(late.synced, /stopped before it had synced/);
});

// upstream: 41, 61
test('delivers only the differences of a relist, deletions first', async () => {
  const world = informerWorld();
  for (const name of ['same', 'changed', 'gone']) world.source.put(name, 1);
  const { notes, handler } = notebook();
  const sizes: string[] = [];
  const look = () => {
    sizes.push(
      world.informer.lister
        .list()
        .map(({ metadata }) => metadata.name)
        .sort()
        .join(),
    );
  };
  world.informer.addHandler(handler);
  await world.start();
  notes.length = 0;
  world.informer.addHandler({ onUpdate: look, onDelete: look });
  await relist(world, () => {
    world.source.put('new', 1);
    world.source.put('changed', 2);
    world.source.remove('gone');
  });
  assert.deepEqual(notes, ['-gone?', '~changed=1→2', '+new=1']);
  assert.deepEqual(sizes, ['changed,new,same', 'changed,new,same']);
  await world.stop();
});

test('delivers an object that was recreated without a watch as an update with another uid', async () => {
  const world = informerWorld();
  world.source.put('a', 1);
  const uids: string[] = [];
  world.informer.addHandler({
    onUpdate: (old, object) => {
      uids.push(old.metadata.uid, object.metadata.uid);
    },
  });
  await world.start();
  await relist(world, () => {
    world.source.remove('a');
    world.source.put('a', 2);
  });
  assert.equal(uids.length, 2);
  assert.notEqual(uids[0], uids[1]);
  await world.stop();
});

// upstream: 38
test('does not deliver an event twice', async () => {
  const world = informerWorld();
  const object = world.source.put('a', 1);
  const { notes, handler } = notebook();
  world.informer.addHandler(handler);
  await world.start();
  world.source.emit({ type: 'added', object });
  world.source.emit({ type: 'modified', object });
  world.source.emit({ type: 'deleted', object: thing('never-seen') });
  await settle();
  assert.deepEqual(notes, ['+a=1!']);
  await world.stop();
});

test('delivers the final state with a deletion', async () => {
  const world = informerWorld();
  const { metadata } = world.source.put('a', 1);
  const versions: string[] = [];
  world.informer.addHandler({
    onDelete: (lastKnown, finalStateKnown) => {
      versions.push(`${lastKnown.metadata.resourceVersion} ${finalStateKnown}`);
    },
  });
  await world.start();
  world.source.remove('a');
  await settle();
  assert.deepEqual(versions, [`${Number(metadata.resourceVersion) + 1} true`]);
  await world.stop();
});

test('empties the store when the resource disappears and fills it when it returns', async () => {
  const world = informerWorld();
  world.source.put('a', 1);
  const { notes, handler } = notebook();
  world.informer.addHandler(handler);
  await world.start();
  world.source.missing = true;
  world.source.endWatches();
  await world.clock.advance(5000);
  assert.deepEqual(notes, ['+a=1!', '-a?']);
  assert.equal(world.informer.progress.missing, true);
  world.source.missing = false;
  await world.clock.advance(6000);
  assert.deepEqual(notes, ['+a=1!', '-a?', '+a=1']);
  assert.equal(world.informer.progress.missing, false);
  await world.stop();
});

// upstream: 24, 51
test('advances its resourceVersion with changes, deletions and bookmarks', async () => {
  const world = informerWorld();
  const { informer, source } = world;
  assert.equal(informer.lastSyncResourceVersion, '');
  assert.equal(informer.hasReached('1'), false);
  await world.start();
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
  await world.stop();
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
  const world = informerWorld();
  const seen: boolean[] = [];
  const look = ({ metadata }: { metadata: { resourceVersion: string } }) => {
    const { resourceVersion } = metadata;
    seen.push(world.informer.hasReached(resourceVersion));
    seen.push(world.informer.hasReached(String(Number(resourceVersion) + 1)));
  };
  world.informer.addHandler({ onAdd: look, onUpdate: (_, object) => look(object), onDelete: look });
  await world.start();
  world.source.put('a', 1);
  world.source.put('a', 2);
  world.source.remove('a');
  await settle();
  assert.deepEqual(seen, [true, false, true, false, true, false]);
  await world.stop();
});

// upstream: 71
test('delivers the cached objects to a late handler before other events', async () => {
  const world = informerWorld();
  world.source.put('a', 1);
  world.source.put('b', 1);
  await world.start();
  const { notes, handler } = notebook();
  world.source.put('a', 2);
  const registration = world.informer.addHandler(handler);
  world.source.put('b', 2);
  assert.equal(registration.hasSynced, false);
  await registration.synced;
  await settle();
  world.source.put('c', 3);
  await settle();
  assert.deepEqual(notes, ['+a=1!', '+b=1!', '~a=1→2', '~b=1→2', '+c=3']);
  await world.stop();
});

// upstream: 71
test('delivers every event once to a handler that another handler adds', async () => {
  const world = informerWorld();
  world.source.put('a', 1);
  world.source.put('b', 1);
  const { notes, handler } = notebook();
  let added: HandlerRegistration | undefined;
  world.informer.addHandler({
    onAdd: () => {
      added ??= world.informer.addHandler(handler);
    },
  });
  await world.start();
  world.source.put('a', 2);
  await settle();
  assert.deepEqual(notes, ['+a=1!', '+b=1!', '~a=1→2']);
  assert.equal(added?.hasSynced, true);
  await world.stop();
});

// upstream: 69
test('delivers events twice to a handler that was added twice', async () => {
  const world = informerWorld();
  const { notes, handler } = notebook();
  const first = world.informer.addHandler(handler);
  world.informer.addHandler(handler);
  world.source.put('a', 1);
  await world.start();
  assert.deepEqual(notes, ['+a=1!', '+a=1!']);
  first.remove();
  world.source.put('a', 2);
  await settle();
  assert.deepEqual(notes.slice(2), ['~a=1→2']);
  await world.stop();
});

// upstream: 69, 73
test('delivers nothing to a removed handler, not even events in progress', async () => {
  const world = informerWorld();
  world.source.put('a', 1);
  world.source.put('b', 1);
  const received: string[] = [];
  const registration = world.informer.addHandler({
    onAdd: ({ metadata }) => {
      received.push(metadata.name);
      registration.remove();
      registration.remove();
    },
  });
  const { notes, handler } = notebook();
  world.informer.addHandler(handler);
  await world.start();
  assert.deepEqual(received, ['a']);
  assert.deepEqual(notes, ['+a=1!', '+b=1!']);
  assert.equal(registration.hasSynced, false);
  await assert.rejects(registration.synced, /removed before it had synced/);
  await world.stop();
});

// upstream: 71
test('never calls a handler that was removed before its first event', async () => {
  const world = informerWorld();
  world.source.put('a', 1);
  await world.start();
  const { notes, handler } = notebook();
  world.informer.addHandler(handler).remove();
  await settle();
  assert.deepEqual(notes, []);
  await world.stop();
});

// upstream: 57, 73
test('logs and counts a handler that throws, without effect on others', async () => {
  let failures = 0;
  const world = informerWorld({
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
  const registration = world.informer.addHandler(
    { onAdd: broken, onUpdate: broken, onDelete: broken },
    { name: 'clumsy' },
  );
  const { notes, handler } = notebook();
  world.informer.addHandler(handler);
  world.source.put('a', 1);
  await world.start();
  world.source.put('a', 2);
  world.source.remove('a');
  await settle();
  assert.deepEqual(notes, ['+a=1!', '~a=1→2', '-a']);
  assert.equal(registration.hasSynced, true);
  assert.equal(failures, 3);
  const errors = world.lines.filter(({ level }) => level === 'error');
  assert.deepEqual(
    errors.map(({ fields }) => [fields['handler'], fields['method'], fields['object']]),
    [
      ['clumsy', 'onAdd', 'default/a'],
      ['clumsy', 'onUpdate', 'default/a'],
      ['clumsy', 'onDelete', 'default/a'],
    ],
  );
  await world.stop();
});

test('logs ten lines a minute of a handler that throws for each of a thousand objects, then their number', async () => {
  const world = informerWorld();
  for (let at = 0; at < 1000; at++) world.source.put(`thing-${at}`);
  world.informer.addHandler({
    onAdd: () => {
      throw new Error('boom');
    },
  });
  await world.start();
  assert.equal(world.shown().length, 10);
  await world.clock.advance(60_000);
  const { fields } = world.lines.findLast(({ level }) => level === 'error')!;
  assert.deepEqual([fields['times'], fields['more']], [990, 980]);
  await world.stop();
});

test('rejects an async handler by name', () => {
  const { informer } = informerWorld();
  const handler: EventHandler<Thing> = Object.assign({}, { onUpdate: async () => undefined });
  assert.throws(
    () => informer.addHandler(handler, { name: 'eager' }),
    /TypeError: Handler eager: onUpdate is async/,
  );
});

// upstream: 73
test('fails a handler that returns a promise, by name, and logs its rejection', async () => {
  const world = informerWorld();
  const promising = Object.assign({}, { onAdd: () => Promise.reject(new Error('late')) });
  world.informer.addHandler(promising, { name: 'promising' });
  const { notes, handler } = notebook();
  world.informer.addHandler(handler);
  world.source.put('a', 1);
  await world.start();
  assert.deepEqual(notes, ['+a=1!']);
  const errors = world.lines
    .filter(({ level }) => level === 'error')
    .map(({ error }) => String(error));
  assert.match(errors[0]!, /TypeError: Handler promising: onAdd returned a promise/);
  assert.match(errors[1]!, /late/);
  await world.stop();
});

test('limits the log lines of a handler that always returns a promise', async () => {
  let failures = 0;
  const world = informerWorld({
    metrics: {
      informer: () => ({ ...noInformerMetrics, handlerFailed: () => failures++ }),
    },
  });
  const promising = Object.assign({}, { onAdd: () => Promise.reject(new Error('late')) });
  world.informer.addHandler(promising);
  for (let at = 0; at < 50; at++) world.source.put(`thing-${at}`);
  await world.start();
  assert.equal(failures, 50);
  assert.equal(world.shown().length, 10);
  await world.stop();
});

test('logs and counts an index function that returns a promise', async () => {
  let refused = 0;
  const world = informerWorld({
    metrics: {
      informer: () => ({ ...noInformerMetrics, objectRefused: () => refused++ }),
    },
  });
  const promising: unknown = () => Promise.reject(new Error('late'));
  world.informer.addIndexers({ promising: promising as () => string[] });
  world.source.put('a');
  await world.start();
  assert.equal(refused, 1);
  assert.match(
    String(world.lines.find(({ level }) => level === 'error')?.error),
    /TypeError: Index function promising returned a promise/,
  );
  assert.deepEqual(world.informer.lister.byIndex('promising', 'a'), []);
  await world.stop();
});

// upstream: 57
test('logs an index function that throws and caches the object', async () => {
  const world = informerWorld();
  world.informer.addIndexers({
    parity: ({ spec }) => {
      if (spec.value === 13) throw new Error('unlucky');
      return [spec.value % 2 === 0 ? 'even' : 'odd'];
    },
  });
  world.source.put('a', 13);
  world.source.put('b', 3);
  await world.start();
  assert.deepEqual(world.informer.lister.indexKeys('parity', 'odd'), ['default/b']);
  assert.equal(world.informer.lister.get(key('a'))?.spec.value, 13);
  assert.deepEqual(world.shown(), ['Could not index an object']);
  await world.stop();
});

// upstream: 63
test('accepts indexes before and after the start', async () => {
  const world = informerWorld();
  world.informer.addIndexers({ early: ({ spec }) => [String(spec.value)] });
  world.source.put('a', 1);
  await world.start();
  world.informer.addIndexers({ late: ({ spec }) => [String(spec.value)] });
  world.source.put('b', 1);
  await settle();
  const { lister } = world.informer;
  for (const index of ['early', 'late']) {
    assert.deepEqual(lister.indexKeys(index, '1'), ['default/a', 'default/b']);
  }
  assert.throws(() => world.informer.addIndexers({ late: () => [] }), /late/);
  assert.equal(lister.list({ namespace: 'default' }).length, 2);
  await world.stop();
});

for (const mode of ['on', 'refused'] as const) {
  // upstream: 25, 60
  test(`shows only transformed objects, with streaming ${mode}`, async () => {
    const world = informerWorld(
      { transform: (object) => ({ ...object, spec: { value: object.spec.value + 100 } }) },
      mode,
    );
    const { notes, handler } = notebook();
    world.informer.addHandler(handler);
    world.source.put('a', 1);
    await world.start();
    world.source.put('a', 2);
    await settle();
    assert.deepEqual(notes, ['+a=101!', '~a=101→102']);
    assert.equal(world.informer.lister.get(key('a'))?.spec.value, 102);
    await world.stop();
  });
}

// upstream: 66
test('runs only once', async () => {
  const world = informerWorld();
  await world.start();
  await assert.rejects(world.informer.run(new AbortController().signal), /can run only once/);
  await world.stop();
  await assert.rejects(world.informer.run(new AbortController().signal), /can run only once/);
});

// upstream: 70
test('delivers nothing and rejects handlers after the stop', async () => {
  const world = informerWorld();
  const { notes, handler } = notebook();
  const registration = world.informer.addHandler(handler, { resyncPeriodMs: 1000 });
  await world.start();
  await world.stop();
  world.source.put('a', 1);
  await world.clock.advance(10_000);
  assert.deepEqual(notes, []);
  assert.throws(() => world.informer.addHandler(handler), /has stopped/);
  registration.remove();
  assert.equal(world.clock.pending, 0);
  assert.equal(world.source.openWatches, 0);
});

// upstream: 72
test('delivers 20,000 initial objects in slices, and none after a stop', async () => {
  let turns = 0;
  const received: string[] = [];
  const world = informerWorld({
    yieldTurn: () => {
      if (++turns === 5) void world.stop();
      return new Promise((resolve) => void setImmediate(resolve));
    },
  });
  for (let at = 0; at < 20_000; at++) world.source.put(`thing-${at}`);
  world.informer.addHandler({
    onAdd: ({ metadata }) => {
      received.push(metadata.name);
    },
  });
  await world.start();
  await settle();
  assert.equal(turns, 5);
  assert.ok(received.length > 1000 && received.length < 10_000, `${received.length} received`);
  assert.equal(world.informer.hasSynced, false);
});

// upstream: 56
test('freezes cached objects', async () => {
  const world = informerWorld();
  world.informer.addHandler({
    onAdd: (object) => {
      Object.assign(object.spec, { value: 99 });
    },
  });
  world.source.put('a', 1);
  await world.start();
  assert.equal(world.informer.lister.get(key('a'))?.spec.value, 1);
  assert.deepEqual(world.shown(), ['Event handler failed']);
  await world.stop();
});

test('logs the initial state in one line at -v=2', async () => {
  const world = informerWorld();
  world.source.put('a', 1);
  world.source.failNext('watch', unreachable());
  world.source.failNext('list', notFound());
  await world.start();
  await world.clock.advance(1000);
  const populated = world.lines.filter(({ message }) => message === 'Caches populated');
  assert.deepEqual(
    populated.map(({ level, fields }) => [level, fields]),
    [[2, { resource: 'things.test.example', type: 'Thing', count: 1, tookMs: 800 }]],
  );
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(5000);
  assert.equal(world.lines.filter(({ message }) => message === 'Caches populated').length, 1);
  await world.stop();
});

test('reports a server restored from a backup by one line and one metric, and delivers the differences', async () => {
  let losses = 0;
  const world = informerWorld({
    metrics: { informer: () => ({ ...noInformerMetrics, historyLost: () => losses++ }) },
  });
  const { notes, handler } = notebook();
  world.informer.addHandler(handler);
  world.source.put('kept', 1);
  const kept = world.source.objects;
  await world.start();
  world.source.put('lost', 1);
  world.source.put('kept', 2);
  await settle();
  notes.length = 0;
  world.source.restore(11, kept);
  await world.clock.advance(2000);
  assert.deepEqual(notes, ['-lost?', '~kept=2→1']);
  assert.equal(losses, 1);
  const lines = world.lines.filter(({ level }) => level === 0);
  assert.equal(lines.length, 1);
  const { added, changed, removed, from, to } = lines.at(0)?.fields ?? {};
  assert.deepEqual([added, changed, removed, from, to], [0, 1, 1, '13', '11']);
  assert.equal(world.informer.hasReached('12'), false);
  await world.stop();
});
