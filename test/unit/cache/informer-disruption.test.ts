import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle } from '../../../src/util/fake-clock.ts';
import { apiError, expired } from '../../support/fake-source.ts';
import { informerFixture, recordingHandler } from './harness.ts';

for (const mode of ['on', 'refused'] as const) {
  // upstream: 62, 67
  test(`delivers only the differences after a disruption, to every handler (streaming ${mode})`, async () => {
    const fixture = informerFixture({}, mode);
    const { source } = fixture;
    for (const name of ['same', 'changed', 'gone', 'again']) source.put(name, 1);
    const books = [0, 60_000].map((resyncPeriodMs) => {
      const { notes, handler } = recordingHandler();
      fixture.informer.addHandler(handler, { resyncPeriodMs });
      return notes;
    });
    await fixture.start();
    for (const notes of books) notes.length = 0;
    source.emit({ type: 'error', error: expired() });
    source.skip(1000);
    source.put('changed', 2);
    source.remove('gone');
    source.remove('again');
    source.put('again', 2);
    source.put('new', 1);
    source.put('passing', 1);
    source.remove('passing');
    source.compact();
    await fixture.clock.advance(1000);
    for (const notes of books) {
      assert.deepEqual(notes, ['-gone?', '~changed=1→2', '~again=1→2', '+new=1']);
    }
    assert.equal(fixture.informer.lastSyncResourceVersion, source.resourceVersion);
    await fixture.stop();
  });
}

// upstream: 26
test('detects a deletion by a relist if the deletion event was corrupt', async () => {
  const fixture = informerFixture();
  const { source } = fixture;
  source.put('corrupt', 1);
  source.put('sound', 1);
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler);
  await fixture.start();
  source.emit({
    type: 'error',
    error: apiError('internal', 'unable to decode the deleted object', 500),
  });
  source.remove('corrupt');
  await fixture.clock.advance(800);
  assert.deepEqual(notes, ['+corrupt=1!', '+sound=1!', '-corrupt?']);
  assert.deepEqual(
    fixture.informer.lister.list().map(({ metadata }) => metadata.name),
    ['sound'],
  );
  await fixture.stop();
});

// upstream: 15
test('continues the watch and other resyncs if a handler fails during a resync', async () => {
  const fixture = informerFixture();
  const { source } = fixture;
  source.put('a', 1);
  source.put('b', 1);
  let failures = 0;
  fixture.informer.addHandler(
    {
      onUpdate: () => {
        failures++;
        throw new Error('boom');
      },
    },
    { resyncPeriodMs: 1000 },
  );
  const { notes, handler } = recordingHandler();
  fixture.informer.addHandler(handler, { resyncPeriodMs: 1000 });
  await fixture.start();
  await fixture.clock.advance(2000);
  assert.equal(failures, 4);
  assert.deepEqual(notes.slice(2), ['~a=1→1', '~b=1→1', '~a=1→1', '~b=1→1']);
  assert.deepEqual([source.requests.length, source.openWatches], [1, 1]);
  await fixture.stop();
});

// upstream: 66
test('delivers every event once to a handler that is added at any time during the start', async () => {
  for (let turns = -1; turns < 12; turns++) {
    const fixture = informerFixture();
    const { source } = fixture;
    source.put('a', 1);
    source.put('b', 1);
    const { notes, handler } = recordingHandler();
    if (turns < 0) fixture.informer.addHandler(handler);
    const starting = fixture.start();
    if (turns >= 0) {
      for (let turn = 0; turn < turns; turn++) await settle(1);
      fixture.informer.addHandler(handler);
    }
    source.put('a', 2);
    source.put('c', 1);
    await starting;
    await settle();
    const history = notes.join(' ').replaceAll('!', '');
    const received = history.replace('+a=1 +b=1 ~a=1→2', '+a=2 +b=1');
    assert.equal(received, '+a=2 +b=1 +c=1', `after ${turns} turns: ${history}`);
    await fixture.stop();
  }
});

// upstream: 60
test('delivers only transformed objects to early and late handlers', async () => {
  const fixture = informerFixture({
    transform: (object) => ({ ...object, spec: { value: object.spec.value + 100 } }),
  });
  const { source } = fixture;
  const values: number[] = [];
  const look = () => {
    const note = ({ spec }: { readonly spec: { readonly value: number } }) => {
      values.push(spec.value);
    };
    fixture.informer.addHandler({
      onAdd: note,
      onUpdate: (old, object) => {
        note(old);
        note(object);
      },
      onDelete: note,
    });
  };
  source.put('a', 1);
  look();
  await fixture.start();
  look();
  source.put('a', 2);
  await settle();
  source.emit({ type: 'error', error: expired() });
  source.remove('a');
  source.put('b', 3);
  look();
  await fixture.clock.advance(1000);
  source.remove('b');
  await settle();
  assert.ok(values.length > 10);
  assert.deepEqual(new Set(values), new Set([101, 102, 103]));
  await fixture.stop();
});
