import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { COMBINED, newCorrelator, times } from './correlator-harness.ts';

test('returns a single event unchanged', async () => {
  const { correlator, event } = newCorrelator();
  const first = event('first', 'i am first');
  assert.deepEqual(correlator.correlate(first)?.event, first);
});

test('returns a repeated event under the same name with a higher count', async () => {
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

test('counts repetitions of an event beyond the limit of similar events', async () => {
  const { event, play } = newCorrelator();
  const last = await play(
    times(11, () => () => event('duplicate', 'me again')),
    30_000,
  );
  assert.equal(last?.count, 11);
  assert.equal(last?.message, 'me again');
});

// upstream: 85
test('drops the 26th event of an object as spam', async () => {
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
test('counts dropped events, and allows one more event every 5 minutes', async () => {
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

test('allows no more than the burst after a day without events', async () => {
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

test('does not drop events of many objects as spam', async () => {
  const { event, play } = newCorrelator();
  await play(
    times(30, (i) => () => event(`reason-${i}`, `message-${i}`, { name: `pod-${i}` })),
    5000,
  );
  const last = await play([() => event('unique', 'snowflake')], 5000);
  assert.equal(last?.count, 1);
});

test('limits Normal and Warning events separately', async () => {
  const { event, play } = newCorrelator();
  await play(
    times(30, () => () => event('noisy', 'again')),
    0,
  );
  const warnings = times(25, () => () => event('bad', 'it is', {}, 'Warning'));
  assert.equal((await play(warnings, 0))?.count, 25);
});

// upstream: 85
test('always writes the first event of a reason, and limits the others', async () => {
  const { event, play } = newCorrelator();
  await play(
    times(30, () => () => event('noisy', 'again')),
    0,
  );
  assert.equal((await play([() => event('Synced', 'Count synced')], 0))?.count, 1);
  assert.equal(await play([() => event('Synced', 'Count synced')], 0), undefined);
  assert.equal(await play([() => event('Synced', 'another message')], 0), undefined);
  assert.equal((await play([() => event('Synced', 'yes', { uid: 'other' })], 0))?.count, 1);
});

// upstream: 85a
test('combines the tenth similar event under another name', async () => {
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

test('increases the count of the combined event and updates its message', async () => {
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
test('does not combine events of different types or reasons', async () => {
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
test('keeps counting messages whose event existed before similar events were combined', async () => {
  const { event, play } = newCorrelator();
  await play(
    times(12, (i) => () => event('similar', `message ${i}`)),
    1000,
  );
  const known = await play([() => event('similar', 'message 3')], 1000);
  assert.equal(known?.message, 'message 3');
  assert.equal(known?.count, 2);
});

test('writes events with another field path or reason as other events', async () => {
  const { event, play } = newCorrelator();
  const web = { fieldPath: 'spec.containers{web}' };
  const side = { fieldPath: 'spec.containers{side}' };
  await play([() => event('similar', 'message', side)], 5000);
  assert.equal((await play([() => event('similar', 'message', web)], 5000))?.count, 1);
  assert.equal((await play([() => event('other', 'message', web)], 5000))?.count, 1);
});

test('does not combine similar events more than ten minutes apart', async () => {
  const { event, play } = newCorrelator();
  const last = await play(
    times(10, (i) => () => event('similar', `message ${i}`)),
    600_001,
  );
  assert.equal(last?.message, 'message 9');
});

test('combines similar events exactly ten minutes apart', async () => {
  const { event, play } = newCorrelator();
  const last = await play(
    times(10, (i) => () => event('similar', `message ${i}`)),
    600_000,
  );
  assert.equal(last?.message, `${COMBINED}message 9`);
});

test('counts events of another resourceVersion as repetitions, and those of another uid as new events', async () => {
  const { event, play } = newCorrelator();
  await play([() => event('same', 'again', { resourceVersion: '1' })], 0);
  const changed = await play([() => event('same', 'again', { resourceVersion: '2' })], 0);
  assert.equal(changed?.count, 2);
  const recreated = await play([() => event('same', 'again', { uid: 'new' })], 0);
  assert.equal(recreated?.count, 1);
});

test('separates the events of objects whose concatenated names are equal', async () => {
  const { event, play } = newCorrelator();
  await play([() => event('r', 'm', { namespace: 'ab', name: 'c' })], 0);
  const other = await play([() => event('r', 'm', { namespace: 'a', name: 'bc' })], 0);
  assert.equal(other?.count, 1);
  const hostile = await play([() => event('__proto__', 'constructor', { name: '__proto__' })], 0);
  assert.equal(hostile?.count, 1);
});

// upstream: 84i
test('drops the least recently used entry, whose count then restarts', async () => {
  const { event, play } = newCorrelator({ cacheSize: 2 });
  const about = (name: string) => () => event('r', 'm', { name });
  await play([about('a'), about('b'), about('a'), about('c')], 0);
  assert.equal((await play([about('a')], 0))?.count, 3);
  assert.equal((await play([about('b')], 0))?.count, 1);
});

test('counts every event once, and never renames an event', () => {
  const message = fc.integer({ min: 0, max: 14 });
  const occurrence = fc.record({ object: fc.nat(2), reason: fc.nat(1), message });
  fc.assert(
    fc.property(fc.array(occurrence, { maxLength: 120 }), (occurrences) => {
      // A large burst disables the spam filter: the sum of the latest counts is the number of events.
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

test('writes at most the burst and the first event of each reason of one object', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { maxLength: 200 }), (reasons) => {
      const { correlator, event } = newCorrelator();
      const written = reasons.filter((reason) => correlator.correlate(event(`r${reason}`, 'm')));
      assert.ok(written.length <= 25 + new Set(reasons).size);
      for (const reason of reasons)
        assert.ok(written.includes(reason), 'each reason is written at least once');
    }),
  );
});

// upstream: 84i
test('remembers exactly the most recently used entries, up to the cache size', () => {
  // Each object has one event. The count restarts for objects that are not among the last `cacheSize`.
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
test('keeps at most nine messages and the combined event of a thousand messages', () => {
  const { correlator, event } = newCorrelator({ burst: 1_000_000, cacheSize: 10 });
  const keys = new Set<string>();
  for (let i = 0; i < 1000; i++)
    keys.add(correlator.correlate(event('r', `message ${i}`))?.key ?? '');
  assert.equal(keys.size, 10);
  assert.equal(
    correlator.correlate(event('r', 'message 0'))?.event.count,
    2,
    'the first message is still known',
  );
});
