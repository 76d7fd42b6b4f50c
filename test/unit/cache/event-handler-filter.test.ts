import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeepReadonly } from '../../../src/api/object.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import type { Thing } from '../../support/fake-source.ts';
import { informerFixture, recordingHandler } from './harness.ts';

const isLarge = ({ spec }: DeepReadonly<Thing>) => spec.value >= 10;

// upstream: 74a
test('adds an object that starts to match, and deletes one that no longer matches', async () => {
  const { informer, source, start, stop } = informerFixture();
  const { notes, handler } = recordingHandler();
  informer.addHandler(handler, { filter: isLarge });
  source.put('small', 1);
  source.put('large', 10);
  await start();
  for (const value of [2, 20, 30, 3, 4]) source.put('small', value);
  source.remove('small');
  source.remove('large');
  await settle();
  assert.deepEqual(notes, ['+large=10!', '+small=20', '~small=20→30', '-small', '-large']);
  await stop();
});

// upstream: 74a
test('deletes an object that no longer matches, with its last matching state', async () => {
  const { informer, source, start, stop } = informerFixture();
  const deleted: unknown[] = [];
  informer.addHandler(
    { onDelete: ({ spec }, final) => void deleted.push([spec.value, final]) },
    { filter: isLarge },
  );
  source.put('a', 10);
  await start();
  source.put('a', 1);
  source.remove('a');
  await settle();
  assert.deepEqual(deleted, [[10, true]]);
  await stop();
});

// upstream: 74a
test('delivers only matching objects to a late handler and in resyncs', async () => {
  const { informer, source, clock, start, stop } = informerFixture();
  source.put('small', 1);
  source.put('large', 10);
  await start();
  const { notes, handler } = recordingHandler();
  await informer.addHandler(handler, { filter: isLarge, resyncPeriodMs: 5000 }).synced;
  await clock.advance(5000);
  assert.deepEqual(notes, ['+large=10!', '~large=10→10']);
  await stop();
});

test('delivers everything to other handlers', async () => {
  const { informer, source, start, stop } = informerFixture();
  const all = recordingHandler();
  informer.addHandler(recordingHandler().handler, { filter: () => false });
  informer.addHandler(all.handler);
  source.put('a', 1);
  await start();
  assert.deepEqual(all.notes, ['+a=1!']);
  await stop();
});

test('fails the call if the filter throws or does not return a boolean', async () => {
  const fixture = informerFixture();
  const { informer, source, start, stop } = fixture;
  const { notes, handler } = recordingHandler();
  informer.addHandler(handler, {
    filter: () => {
      throw new Error('no idea');
    },
  });
  const promising: unknown = () => Promise.reject(new Error('too late'));
  informer.addHandler(handler, { filter: promising as () => boolean });
  source.put('a', 1);
  await start();
  assert.deepEqual(notes, []);
  assert.deepEqual(
    fixture.lines.flatMap(({ error }) => (error instanceof Error ? [error.message] : [])),
    ['no idea', 'The filter of a handler returned a promise; expected true or false'],
  );
  assert.equal(informer.hasSynced, true);
  await stop();
});

test('rejects an async filter at once', () => {
  const { informer } = informerFixture();
  const filter: unknown = async () => Promise.resolve(true);
  assert.throws(() => informer.addHandler({}, { filter: filter as () => boolean }), {
    name: 'TypeError',
    message: /filter is async/,
  });
});
