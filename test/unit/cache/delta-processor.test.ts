import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf } from '../../../src/api/object-key.ts';
import { DeltaProcessor } from '../../../src/cache/delta-processor.ts';
import type { DeltaEntry, HistoryLoss } from '../../../src/cache/delta-processor.ts';
import { Indexer } from '../../../src/cache/indexer.ts';
import { Listener } from '../../../src/cache/event-handler.ts';
import { Decoder } from '../../../src/client/decoder.ts';
import { lazyTextOf, shareFields } from '../../../src/client/lazy-object.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { RateLimitedLog } from '../../../src/util/rate-limited-log.ts';
import { thing, THINGS } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';
import { recordingHandler } from './harness.ts';

function newProcessor() {
  const indexer = new Indexer<Thing>();
  const listeners = new Set<Listener<Thing>>();
  let synced = 0;
  const losses: HistoryLoss[] = [];
  const processor = new DeltaProcessor(indexer, listeners, {
    onSynced: () => void synced++,
    onHistoryLost: (loss) => losses.push(loss),
  });
  const { signal } = new AbortController();
  return {
    indexer,
    losses,
    synced: () => synced,
    process: async (entry: DeltaEntry<Thing>) =>
      processor.process(entry, { spend: () => undefined }, signal),
    listener: () => {
      const { notes, handler } = recordingHandler();
      const clock = new FakeClock();
      const listener = new Listener<Thing>(
        handler,
        {},
        {
          clock,
          log: silentLogger,
          errors: new RateLimitedLog(clock),
          onFailure: () => assert.fail('no handler fails'),
          onRemove: () => listeners.delete(listener),
        },
      );
      listeners.add(listener);
      return { notes, listener };
    },
  };
}

const state = (resourceVersion: string, ...objects: Thing[]): DeltaEntry<Thing> => ({
  type: 'replaced',
  objects,
  resourceVersion,
});

test('calls no handler for a relist with equal objects and updates the resourceVersion', async () => {
  const { indexer, process, listener } = newProcessor();
  const { notes, listener: early } = listener();
  early.activate();
  const unchanged = thing('a', 1, '5');
  await process(state('10', unchanged, thing('b', 1, '6')));
  await process(state('20', thing('a', 1, '5'), thing('b', 2, '15')));
  assert.deepEqual(notes, ['+a=1!', '+b=1!', '~b=1→2']);
  assert.equal(indexer.get(keyOf(unchanged)), unchanged);
});

test('calls handlers if a resourceVersion that a quorum read returns names another state', async () => {
  const { process, listener, indexer, losses } = newProcessor();
  const { notes, listener: early } = listener();
  early.activate();
  const unchanged = thing('b', 1, '6');
  const quorumRead = (...objects: Thing[]): DeltaEntry<Thing> => ({
    type: 'replaced',
    objects,
    resourceVersion: '10',
    quorumReadMs: 0,
  });
  await process(state('10', thing('a', 1, '5'), unchanged));
  await process(state('10', thing('a', 2, '5'), unchanged));
  assert.equal(indexer.get(keyOf(thing('a')))?.spec.value, 1, 'other lists are not compared');
  await process(quorumRead(thing('a', 2, '5'), thing('b', 1, '6')));
  assert.equal(indexer.get(keyOf(thing('a')))?.spec.value, 2);
  await process(quorumRead(thing('a', 2, '5'), unchanged));
  assert.deepEqual(notes, ['+a=1!', '+b=1!', '~a=1→2']);
  assert.deepEqual(losses, [], 'the server may have a new default value');
});

test('compares the content of lazily decoded objects without parsing equal fields', async () => {
  const { process, listener } = newProcessor();
  const { notes, listener: early } = listener();
  early.activate();
  const decoded = (value: number, labels: object = {}) => {
    const object = thing('a', value, '5');
    const metadata = { ...object.metadata, labels };
    const line = Buffer.from(JSON.stringify({ type: 'ADDED', object: { ...object, metadata } }));
    const event = new Decoder().event<Thing>(line, 0, line.length, 'An event', {
      resource: THINGS,
    });
    assert.equal(event.type, 'added');
    shareFields(event.object);
    return event.object;
  };
  const read = async (object: Thing) => {
    await process({ type: 'replaced', objects: [object], resourceVersion: '10', quorumReadMs: 0 });
    return object;
  };
  const first = await read(decoded(1));
  const second = await read(decoded(1));
  assert.deepEqual([first, second].map(lazyTextOf), Array(2).fill('"spec":{"value":1}'));
  await read(decoded(2));
  await read(decoded(2, { changed: '' }));
  assert.deepEqual(notes, ['+a=1!', '~a=1→2', '~a=2→2']);
});

test('calls handlers if a resourceVersion belongs to another object of the name', async () => {
  const { process, listener, losses } = newProcessor();
  const { notes, listener: early } = listener();
  early.activate();
  const recreated = thing('a', 1, '5');
  recreated.metadata.uid = 'another';
  await process(state('10', thing('a', 1, '5')));
  await process(state('10', recreated));
  assert.deepEqual(notes, ['+a=1!', '~a=1→1']);
  assert.deepEqual(losses, [{ from: '10', to: '10', added: 0, changed: 1, removed: 0 }]);
});

test('calls no handler for a watch event with the cached state', async () => {
  const { process, listener } = newProcessor();
  const { notes, listener: early } = listener();
  early.activate();
  await process(state('10', thing('a', 1, '5')));
  const object = thing('a', 1, '5');
  await process({ type: 'changed', key: keyOf(object), object, unordered: true });
  assert.deepEqual(notes, ['+a=1!']);
});

test('marks a handler that was added before the initial state as synced with that state', async () => {
  const { synced, process, listener } = newProcessor();
  const { notes, listener: late } = listener();
  await process({ type: 'handlerAdded', listener: late });
  assert.equal(late.hasSynced, false);
  await process(state('10', thing('a', 1)));
  assert.equal(late.hasSynced, true);
  assert.deepEqual(notes, ['+a=1!']);
  assert.equal(synced(), 1);
});

test('marks a handler that was added later as synced when it has received all objects', async () => {
  const { synced, process, listener } = newProcessor();
  await process(state('10', thing('a', 1)));
  const { notes, listener: late } = listener();
  await process({ type: 'handlerAdded', listener: late });
  assert.equal(late.hasSynced, true);
  assert.deepEqual(notes, ['+a=1!']);
  await process(state('20', thing('a', 1), thing('b', 2, '15')));
  assert.deepEqual(notes, ['+a=1!', '+b=2'], 'what a later state adds is no initial object');
  assert.equal(synced(), 1);
});

test('reports lost history for a state with an older resourceVersion', async () => {
  const { process, losses } = newProcessor();
  const objects = [thing('kept', 0, '3'), thing('changed', 1, '9'), thing('removed', 0, '8')];
  await process({ type: 'replaced', objects, resourceVersion: '9' });
  const restored = [thing('kept', 0, '3'), thing('changed', 0, '5'), thing('added', 0, '4')];
  await process({ type: 'replaced', objects: restored, resourceVersion: '6' });
  assert.deepEqual(losses, [{ from: '9', to: '6', added: 1, changed: 1, removed: 1 }]);
});

test('reports lost history for an unknown object with a resourceVersion that the store had reached', async () => {
  for (const found of [thing('a', 0, '7'), thing('b', 0, '9')]) {
    const { process, losses } = newProcessor();
    await process({ type: 'replaced', objects: [thing('a', 0, '8')], resourceVersion: '9' });
    await process({ type: 'replaced', objects: [found], resourceVersion: '20' });
    assert.deepEqual(losses.length, 1);
  }
});

test('reports no lost history for a later state with any changes', async () => {
  const { process, losses } = newProcessor();
  await process({ type: 'replaced', objects: [thing('a', 0, '8')], resourceVersion: '9' });
  await process({ type: 'replaced', objects: [thing('a', 0, '8')], resourceVersion: '9' });
  await process({ type: 'changed', key: keyOf(thing('b')), object: thing('b', 0, '10') });
  const later = [thing('b', 1, '11'), thing('c', 0, '12')];
  await process({ type: 'replaced', objects: later, resourceVersion: '12' });
  await process({ type: 'replaced', objects: [], resourceVersion: 'opaque' });
  await process({ type: 'replaced', objects: later, resourceVersion: '12' });
  assert.deepEqual(losses, []);
});
