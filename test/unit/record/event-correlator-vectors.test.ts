import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RecordedEvent } from '../../../src/record/recorded-event.ts';
import { COMBINED, newCorrelator, times } from './correlator-harness.ts';

type NewEvent = (...fields: Parameters<ReturnType<typeof newCorrelator>['event']>) => RecordedEvent;

interface Vector {
  readonly title: string;
  /** The events before the last one. */
  readonly before: (event: NewEvent) => (() => RecordedEvent)[];
  readonly last: (event: NewEvent) => RecordedEvent;
  readonly everyMs: number;
  /** The result for the last event; undefined if it is not written. */
  readonly expected: { readonly message: string; readonly count: number } | undefined;
}

const CONTAINER_1 = { fieldPath: 'spec.containers{container1}' };
const CONTAINER_2 = { fieldPath: 'spec.containers{container2}' };

const duplicate = (event: NewEvent) => event('duplicate', 'me again');
const similar = (event: NewEvent) => event('similar', 'similar message', CONTAINER_1);
const similars = (count: number) => (event: NewEvent) =>
  times(count, (i) => () => event('similar', `similar message ${i}`, CONTAINER_1));

/** The nine cases of client-go's TestEventCorrelator, with its numbers. */
const VECTORS: readonly Vector[] = [
  {
    // upstream: 84
    title: 'writes a single event',
    before: () => [],
    last: (event) => event('first', 'i am first'),
    everyMs: 5000,
    expected: { message: 'i am first', count: 1 },
  },
  {
    // upstream: 84a
    title: 'increases the count of a repeated event',
    before: (event) => [() => duplicate(event)],
    last: duplicate,
    everyMs: 5000,
    expected: { message: 'me again', count: 2 },
  },
  {
    // upstream: 84b
    title: 'counts repetitions of an event beyond the limit of similar events',
    before: (event) => times(10, () => () => duplicate(event)),
    last: duplicate,
    everyMs: 30_000,
    expected: { message: 'me again', count: 11 },
  },
  {
    // upstream: 84c
    title: 'drops the 27th repetition within half a minute as spam',
    before: (event) => times(26, () => () => duplicate(event)),
    last: duplicate,
    everyMs: 1000,
    expected: undefined,
  },
  {
    // upstream: 84d
    title: 'writes an event after thirty events of other objects',
    before: (event) =>
      times(30, (i) => () => event(`reason-${i}`, `message-${i}`, { name: `pod-${i}` })),
    last: (event) => event('unique', 'snowflake'),
    everyMs: 5000,
    expected: { message: 'snowflake', count: 1 },
  },
  {
    // upstream: 84e
    title: 'combines the tenth similar event',
    before: similars(9),
    last: similar,
    everyMs: 5000,
    expected: { message: `${COMBINED}similar message`, count: 1 },
  },
  {
    // upstream: 84f
    title: 'increases the count of the combined event from the eleventh similar event',
    before: similars(10),
    last: similar,
    everyMs: 5000,
    expected: { message: `${COMBINED}similar message`, count: 2 },
  },
  {
    // upstream: 84g
    title: 'writes the same message of another container as another event',
    before: (event) => [() => event('similar', 'similar message', CONTAINER_2)],
    last: similar,
    everyMs: 5000,
    expected: { message: 'similar message', count: 1 },
  },
  {
    // upstream: 84h
    title: 'does not combine similar events more than ten minutes apart',
    before: similars(9),
    last: similar,
    everyMs: 600_001,
    expected: { message: 'similar message', count: 1 },
  },
];

describe('the event correlator, with client-go’s test vectors', () => {
  for (const { title, before, last, everyMs, expected } of VECTORS) {
    it(title, async () => {
      const { event, play } = newCorrelator();
      await play(before(event), everyMs);
      const written = await play([() => last(event)], everyMs);
      assert.deepEqual(written && { message: written.message, count: written.count }, expected);
    });
  }

  // upstream: 85
  it('with a burst of one, writes the first event of another reason, and drops another message', async () => {
    const { event, play } = newCorrelator({ burst: 1 });
    await play([() => event('original', 'i am first')], 1000);
    // client-go drops it without a custom spam key function. Here the first event of a reason is always written.
    assert.equal((await play([() => event('duplicate', 'me again')], 1000))?.count, 1);
    assert.equal(await play([() => event('original', 'me again')], 1000), undefined);
  });

  // upstream: 85c
  it('does not share state between correlators', async () => {
    const [one, other] = [newCorrelator(), newCorrelator()];
    await one.play(
      times(30, () => () => duplicate(one.event)),
      0,
    );
    assert.equal((await other.play([() => duplicate(other.event)], 0))?.count, 1);
  });
});
