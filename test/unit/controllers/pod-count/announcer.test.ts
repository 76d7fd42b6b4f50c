import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Announcer } from '../../../../src/controllers/pod-count/announcer.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { aCount, aPodOf } from '../../../support/objects.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';

function setUp() {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const events: string[] = [];
  let count = 0;
  const record =
    (type: string) =>
    (subject: { metadata: { name: string } }, reason: string, message: string) => {
      events.push(`${type} ${reason} ${subject.metadata.name}: ${message}`);
      return { attempted: async () => undefined };
    };
  const recorder = { normal: record('Normal'), warning: record('Warning') };
  const announcer = new Announcer({ recorder, clock, log, count: () => count });
  const add = (times = 1) => {
    for (let at = 0; at < times; at++) {
      count++;
      announcer.announce(aPodOf(aCount(), count));
    }
  };
  return { announcer, clock, lines, events, add };
}

describe('The announcer of new Pods', () => {
  it('records the count for each new Pod from start until its signal aborts', () => {
    const { announcer, events, add } = setUp();
    const stop = new AbortController();
    add();
    assert.deepEqual(events, []);
    announcer.start(stop.signal);
    add();
    assert.deepEqual(events, ['Normal SuccessCalculatePod test-count-2: pod count is 2']);
    stop.abort();
    add();
    assert.equal(events.length, 1);
  });

  it('does not start if its signal has aborted', () => {
    const { announcer, events, add } = setUp();
    announcer.start(AbortSignal.abort());
    add();
    assert.deepEqual(events, []);
  });

  it('records 20 events in a burst and 20 per second, and logs skipped ones once a minute', async () => {
    const { announcer, clock, lines, events, add } = setUp();
    announcer.start(new AbortController().signal);
    add(25);
    assert.equal(events.length, 20);
    assert.equal(lines.length, 1);
    assert.equal(lines[0]?.fields['skipped'], 1);
    await clock.advance(100);
    // Jumps of the wall clock have no effect.
    clock.jump(3_600_000);
    add(5);
    assert.equal(events.length, 22);
    await clock.advance(59_900);
    add(30);
    // After a pause, at most 20 events are available.
    assert.equal(events.length, 42);
    assert.equal(lines.length, 2);
    assert.equal(lines[1]?.fields['skipped'], 9);
  });
});
