import { timestamp } from '../../../src/api/conditions.ts';
import { EventCorrelator } from '../../../src/record/event-correlator.ts';
import type { EventCorrelatorOptions } from '../../../src/record/event-correlator.ts';
import type { InvolvedObject, RecordedEvent } from '../../../src/record/recorded-event.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

/** Prefix of the message of a combined event. */
export const COMBINED = '(combined from similar events): ';

/** Returns a correlator on a new fake clock, and a function that creates events of one Pod. */
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
  /** Correlates events `everyMs` apart, and returns the result of the last one. */
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
