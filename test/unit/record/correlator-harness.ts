import { timestamp } from '../../../src/api/conditions.ts';
import { EventCorrelator } from '../../../src/record/event-correlator.ts';
import type { EventCorrelatorOptions } from '../../../src/record/event-correlator.ts';
import type { InvolvedObject, RecordedEvent } from '../../../src/record/recorded-event.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

/** What the message of a combined event begins with. */
export const COMBINED = '(combined from similar events): ';

/** A correlator on a clock of its own, and a maker of events about one Pod. */
export function newCorrelator(options: EventCorrelatorOptions = {}) {
  const clock = new FakeClock();
  let names = 0;
  const correlator = new EventCorrelator({ clock }, options);
  const event = (
    reason: string,
    message: string,
    involved: Partial<InvolvedObject> = {},
    type: RecordedEvent['type'] = 'Normal',
  ): RecordedEvent => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `my-pod.${names++}`, namespace: 'my-ns', annotations: { a: 'b' } },
    involvedObject: {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: 'my-ns',
      name: 'my-pod',
      uid: 'C934D34AFB20242',
      ...involved,
    },
    type,
    reason,
    message,
    count: 1,
    firstTimestamp: timestamp(clock.now()),
    lastTimestamp: timestamp(clock.now()),
    source: { component: 'kubelet', host: 'kubelet.node1' },
    reportingComponent: 'kubelet',
    reportingInstance: 'kubelet.node1',
  });
  /** Correlates one event after another, `everyMs` apart, and returns what became of the last. */
  const play = async (events: (() => RecordedEvent)[], everyMs: number) => {
    let last;
    for (const make of events) {
      await clock.advance(everyMs);
      last = correlator.correlate(make());
    }
    return last?.event;
  };
  return { clock, correlator, event, play };
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
