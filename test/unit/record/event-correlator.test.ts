import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { COMBINED, newCorrelator, times } from './correlator-harness.ts';

test('a single event passes as it is', async () => {
  const { correlator, event } = newCorrelator();
  const first = event('first', 'i am first');
  assert.deepEqual(correlator.correlate(first)?.event, first);
});

test('the same event again is the same event with a higher count', async () => {
  const { clock, correlator, event } = newCorrelator();
  const first = correlator.correlate(event('duplicate', 'me again'));
  await clock.advance(5000);
  const second = correlator.correlate(event('duplicate', 'me again'));
  assert.equal(second?.event.count, 2);
  assert.equal(second?.event.metadata.name, first?.event.metadata.name);
  assert.equal(second?.event.firstTimestamp, first?.event.firstTimestamp);
  assert.notEqual(second?.event.lastTimestamp, first?.event.lastTimestamp);
  assert.equal(second?.key, first?.key);
});

test('the same event more often than similar ones may come still just counts', async () => {
  const { event, play } = newCorrelator();
  const last = await play(
    times(11, () => () => event('duplicate', 'me again')),
    30_000,
  );
  assert.equal(last?.count, 11);
  assert.equal(last?.message, 'me again');
});

// upstream: 85
test('the 26th event in a row about one object is spam', async () => {
  const { event, play } = newCorrelator();
  const duplicate = () => event('duplicate', 'me again');
  assert.equal(
    (
      await play(
        times(25, () => duplicate),
        1000,
      )
    )?.count,
    25,
  );
  assert.equal(await play([duplicate], 1000), undefined);
});

// upstream: 85
test('what the spam filter drops still counts, and one more event may come every 5 minutes', async () => {
  const { event, play } = newCorrelator();
  const duplicate = () => event('duplicate', 'me again');
  await play(
    times(30, () => duplicate),
    0,
  );
  assert.equal((await play([duplicate], 300_000))?.count, 31);
  assert.equal(await play([duplicate], 299_000), undefined);
  assert.equal((await play([duplicate], 1000))?.count, 33);
});

test('an object that was quiet for a day may still say no more than the burst at once', async () => {
  const { clock, event, play } = newCorrelator();
  const duplicate = () => event('duplicate', 'me again');
  await play([duplicate], 0);
  await clock.advance(24 * 3_600_000);
  assert.equal(
    (
      await play(
        times(25, () => duplicate),
        0,
      )
    )?.count,
    26,
  );
  assert.equal(await play([duplicate], 0), undefined);
});

test('events about many objects do not count as spam', async () => {
  const { event, play } = newCorrelator();
  await play(
    times(30, (i) => () => event(`reason-${i}`, `message-${i}`, { name: `pod-${i}` })),
    5000,
  );
  const last = await play([() => event('unique', 'snowflake')], 5000);
  assert.equal(last?.count, 1);
});

test('Normal and Warning events have budgets of their own', async () => {
  const { event, play } = newCorrelator();
  await play(
    times(30, () => () => event('noisy', 'again')),
    0,
  );
  const warnings = times(25, () => () => event('bad', 'it is', {}, 'Warning'));
  assert.equal((await play(warnings, 0))?.count, 25);
});

// upstream: 85
test('the first event of each reason passes the spam filter, and the second does not', async () => {
  const { event, play } = newCorrelator();
  await play(
    times(30, () => () => event('noisy', 'again')),
    0,
  );
  assert.equal((await play([() => event('Synced', 'Count synced')], 0))?.count, 1);
  assert.equal(await play([() => event('Synced', 'Count synced')], 0), undefined);
  assert.equal(await play([() => event('Synced', 'in other words')], 0), undefined);
  assert.equal((await play([() => event('Synced', 'yes', { uid: 'other' })], 0))?.count, 1);
});

// upstream: 85a
test('the tenth of similar events is combined, under a name of its own', async () => {
  const { event, play } = newCorrelator();
  const ninth = await play(
    times(9, (i) => () => event('similar', `message ${i}`)),
    5000,
  );
  assert.equal(ninth?.message, 'message 8');
  const tenth = await play([() => event('similar', 'the tenth')], 5000);
  assert.equal(tenth?.message, `${COMBINED}the tenth`);
  assert.equal(tenth?.count, 1);
  assert.equal(tenth?.firstTimestamp, tenth?.lastTimestamp);
  assert.notEqual(tenth?.metadata.name, ninth?.metadata.name);
  assert.equal(tenth?.metadata.annotations, undefined);
  assert.equal(tenth?.reportingComponent, 'kubelet');
});

test('further similar events count the combined one up, with the newest message', async () => {
  const { event, play } = newCorrelator();
  const tenth = await play(
    times(10, (i) => () => event('similar', `message ${i}`)),
    5000,
  );
  const next = await play([() => event('similar', 'the newest')], 5000);
  assert.equal(next?.message, `${COMBINED}the newest`);
  assert.equal(next?.count, 2);
  assert.equal(next?.metadata.name, tenth?.metadata.name);
});

// upstream: 85a
test('a warning is not combined with what is normal, nor one reason with another', async () => {
  const { event, play } = newCorrelator();
  await play(
    times(9, (i) => () => event('similar', `message ${i}`)),
    1000,
  );
  const warning = await play([() => event('similar', 'bad', {}, 'Warning')], 1000);
  assert.equal(warning?.message, 'bad');
  assert.equal((await play([() => event('other', 'else')], 1000))?.message, 'else');
  assert.equal((await play([() => event('similar', 'it')], 1000))?.message, `${COMBINED}it`);
});

// upstream: 85a
test('a message that had an event before the others were combined keeps it', async () => {
  const { event, play } = newCorrelator();
  await play(
    times(12, (i) => () => event('similar', `message ${i}`)),
    1000,
  );
  const known = await play([() => event('similar', 'message 3')], 1000);
  assert.equal(known?.message, 'message 3');
  assert.equal(known?.count, 2);
});

test('events about another part of the object, or of another reason, are others', async () => {
  const { event, play } = newCorrelator();
  const web = { fieldPath: 'spec.containers{web}' };
  const side = { fieldPath: 'spec.containers{side}' };
  await play([() => event('similar', 'message', side)], 5000);
  assert.equal((await play([() => event('similar', 'message', web)], 5000))?.count, 1);
  assert.equal((await play([() => event('other', 'message', web)], 5000))?.count, 1);
});

test('similar events more than ten minutes apart are not combined', async () => {
  const { event, play } = newCorrelator();
  const last = await play(
    times(10, (i) => () => event('similar', `message ${i}`)),
    600_001,
  );
  assert.equal(last?.message, 'message 9');
});

test('similar events exactly ten minutes apart are still combined', async () => {
  const { event, play } = newCorrelator();
  const last = await play(
    times(10, (i) => () => event('similar', `message ${i}`)),
    600_000,
  );
  assert.equal(last?.message, `${COMBINED}message 9`);
});

test('a state change of the object does not start a new event, another uid does', async () => {
  const { event, play } = newCorrelator();
  await play([() => event('same', 'again', { resourceVersion: '1' })], 0);
  const changed = await play([() => event('same', 'again', { resourceVersion: '2' })], 0);
  assert.equal(changed?.count, 2);
  const reborn = await play([() => event('same', 'again', { uid: 'new' })], 0);
  assert.equal(reborn?.count, 1);
});

test('objects cannot be named so that their events mix', async () => {
  const { event, play } = newCorrelator();
  await play([() => event('r', 'm', { namespace: 'ab', name: 'c' })], 0);
  const other = await play([() => event('r', 'm', { namespace: 'a', name: 'bc' })], 0);
  assert.equal(other?.count, 1);
  const hostile = await play([() => event('__proto__', 'constructor', { name: '__proto__' })], 0);
  assert.equal(hostile?.count, 1);
});

// upstream: 84i
test('what was unused for longest is forgotten, and starts anew', async () => {
  const { event, play } = newCorrelator({ cacheSize: 2 });
  const about = (name: string) => () => event('r', 'm', { name });
  await play([about('a'), about('b'), about('a'), about('c')], 0);
  assert.equal((await play([about('a')], 0))?.count, 3);
  assert.equal((await play([about('b')], 0))?.count, 1);
});

test('counts add up to the events that came, and each event keeps its one name', () => {
  const message = fc.integer({ min: 0, max: 14 });
  const occurrence = fc.record({ object: fc.nat(2), reason: fc.nat(1), message });
  fc.assert(
    fc.property(fc.array(occurrence, { maxLength: 120 }), (occurrences) => {
      // Without the filter every event is written, so the latest counts are all of them.
      const { correlator, event } = newCorrelator({ burst: 1_000_000 });
      const counts = new Map<string, number>();
      const nameOfKey = new Map<string, string>();
      for (const { object, reason, message } of occurrences) {
        const raw = event(`reason-${reason}`, `message ${message}`, { name: `pod-${object}` });
        const correlated = correlator.correlate(raw);
        assert.ok(correlated);
        const { key, event: written } = correlated;
        const { name } = written.metadata;
        assert.equal(written.count, (counts.get(name) ?? 0) + 1);
        counts.set(name, written.count);
        assert.equal(nameOfKey.get(key) ?? name, name);
        nameOfKey.set(key, name);
      }
      const sum = [...counts.values()].reduce((total, count) => total + count, 0);
      assert.equal(sum, occurrences.length);
      // Per (object, reason) at most nine events of their own and a combined one.
      assert.ok(counts.size <= 3 * 2 * 10);
    }),
  );
});

test('of any events about one object, at most the burst and one for each reason are written', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { maxLength: 200 }), (reasons) => {
      const { correlator, event } = newCorrelator();
      const written = reasons.filter((reason) => correlator.correlate(event(`r${reason}`, 'm')));
      assert.ok(written.length <= 25 + new Set(reasons).size);
      for (const reason of reasons)
        assert.ok(written.includes(reason), 'each is seen once at least');
    }),
  );
});

// upstream: 84i
test('of what it remembers, the last used is as much as it may be, and nothing else', () => {
  // One series to each object: what is not among the last `cacheSize` objects starts anew.
  const cacheSize = 4;
  fc.assert(
    fc.property(fc.array(fc.nat(7), { maxLength: 60 }), (objects) => {
      const { correlator, event } = newCorrelator({ cacheSize, burst: 1_000_000 });
      const counts = new Map<number, number>();
      for (const object of objects) {
        const count = (counts.get(object) ?? 0) + 1;
        counts.delete(object);
        counts.set(object, count);
        const [oldest] = counts.keys();
        if (counts.size > cacheSize && oldest !== undefined) counts.delete(oldest);
        const written = correlator.correlate(event('r', 'm', { name: `pod-${object}` }));
        assert.equal(written?.event.count, count);
      }
    }),
  );
});

// upstream: 84i
test('a thousand words of one object take the room of nine', () => {
  const { correlator, event } = newCorrelator({ burst: 1_000_000, cacheSize: 10 });
  const keys = new Set<string>();
  for (let i = 0; i < 1000; i++) keys.add(correlator.correlate(event('r', `word ${i}`))?.key ?? '');
  assert.equal(keys.size, 10);
  assert.equal(correlator.correlate(event('r', 'word 0'))?.event.count, 2, 'it is not forgotten');
});
