import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RecordedEvent } from '../../../src/record/recorded-event.ts';
import { COMBINED, newCorrelator, times } from './correlator-harness.ts';

type Make = (...said: Parameters<ReturnType<typeof newCorrelator>['event']>) => RecordedEvent;

interface Vector {
  readonly says: string;
  /** What comes before, and what comes last. */
  readonly before: (event: Make) => (() => RecordedEvent)[];
  readonly last: (event: Make) => RecordedEvent;
  readonly everyMs: number;
  /** Undefined: it is not written. */
  readonly becomes: { readonly message: string; readonly count: number } | undefined;
}

const CONTAINER_1 = { fieldPath: 'spec.containers{container1}' };
const CONTAINER_2 = { fieldPath: 'spec.containers{container2}' };

const duplicate = (event: Make) => event('duplicate', 'me again');
const similar = (event: Make) => event('similar', 'similar message', CONTAINER_1);
const similars = (count: number) => (event: Make) =>
  times(count, (i) => () => event('similar', `similar message ${i}`, CONTAINER_1));

/** The nine cases that client-go's correlator is tested by, with its numbers. */
const VECTORS: readonly Vector[] = [
  {
    // upstream: 84
    says: 'a single event is written',
    before: () => [],
    last: (event) => event('first', 'i am first'),
    everyMs: 5000,
    becomes: { message: 'i am first', count: 1 },
  },
  {
    // upstream: 84a
    says: 'the same event counts to two',
    before: (event) => [() => duplicate(event)],
    last: duplicate,
    everyMs: 5000,
    becomes: { message: 'me again', count: 2 },
  },
  {
    // upstream: 84b
    says: 'the same event more often than similar ones may come just counts',
    before: (event) => times(10, () => () => duplicate(event)),
    last: duplicate,
    everyMs: 30_000,
    becomes: { message: 'me again', count: 11 },
  },
  {
    // upstream: 84c
    says: 'the same event 26 times within half a minute is spam the next time',
    before: (event) => times(26, () => () => duplicate(event)),
    last: duplicate,
    everyMs: 1000,
    becomes: undefined,
  },
  {
    // upstream: 84d
    says: 'thirty events about thirty objects do not keep another from being written',
    before: (event) =>
      times(30, (i) => () => event(`reason-${i}`, `message-${i}`, { name: `pod-${i}` })),
    last: (event) => event('unique', 'snowflake'),
    everyMs: 5000,
    becomes: { message: 'snowflake', count: 1 },
  },
  {
    // upstream: 84e
    says: 'after nine similar events the next is combined',
    before: similars(9),
    last: similar,
    everyMs: 5000,
    becomes: { message: `${COMBINED}similar message`, count: 1 },
  },
  {
    // upstream: 84f
    says: 'after ten similar events the next counts the combined one up',
    before: similars(10),
    last: similar,
    everyMs: 5000,
    becomes: { message: `${COMBINED}similar message`, count: 2 },
  },
  {
    // upstream: 84g
    says: 'the same words about another container are another event',
    before: (event) => [() => event('similar', 'similar message', CONTAINER_2)],
    last: similar,
    everyMs: 5000,
    becomes: { message: 'similar message', count: 1 },
  },
  {
    // upstream: 84h
    says: 'similar events more than ten minutes apart are not combined',
    before: similars(9),
    last: similar,
    everyMs: 600_001,
    becomes: { message: 'similar message', count: 1 },
  },
];

describe('the correlator does with client-go’s vectors what client-go’s does', () => {
  for (const { says, before, last, everyMs, becomes } of VECTORS) {
    it(says, async () => {
      const { event, play } = newCorrelator();
      await play(before(event), everyMs);
      const written = await play([() => last(event)], everyMs);
      assert.deepEqual(written && { message: written.message, count: written.count }, becomes);
    });
  }

  // upstream: 85
  it('with a burst of one, another reason of the same object passes, and other words do not', async () => {
    const { event, play } = newCorrelator({ burst: 1 });
    await play([() => event('original', 'i am first')], 1000);
    // There it is spam, unless one brings a key of one's own; here the first of a reason is news.
    assert.equal((await play([() => event('duplicate', 'me again')], 1000))?.count, 1);
    assert.equal(await play([() => event('original', 'me again')], 1000), undefined);
  });

  // upstream: 85c
  it('two correlators know nothing of each other', async () => {
    const [one, other] = [newCorrelator(), newCorrelator()];
    await one.play(
      times(30, () => () => duplicate(one.event)),
      0,
    );
    assert.equal((await other.play([() => duplicate(other.event)], 0))?.count, 1);
  });
});
