import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventName } from '../../../src/record/event-name.ts';
import type { InvolvedObject, RecordedEvent } from '../../../src/record/recorded-event.ts';

function event(
  involvedObject: Partial<InvolvedObject> = {},
  fields: Partial<RecordedEvent> = {},
): Omit<RecordedEvent, 'metadata'> {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    involvedObject: {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: 'default',
      name: 'web',
      uid: 'u',
      resourceVersion: '7',
      ...involvedObject,
    },
    type: 'Normal',
    reason: 'Synced',
    message: 'fine',
    count: 1,
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:00:00Z',
    source: { component: 'test', host: 'a' },
    reportingComponent: 'test',
    reportingInstance: 'a',
    ...fields,
  };
}

describe('the name of an event', () => {
  // upstream: 85b
  it('consists of the name of the object and sixteen hex digits', () => {
    assert.match(eventName(event()), /^web\.[0-9a-f]{16}$/);
  });

  // upstream: 85b
  it('is the same for the same event of another process at a later time', () => {
    const later = event(
      {},
      {
        source: { component: 'test', host: 'b' },
        reportingInstance: 'b',
        firstTimestamp: '2026-01-01T01:00:00Z',
        lastTimestamp: '2026-01-01T01:00:00Z',
        count: 3,
      },
    );
    assert.equal(eventName(later), eventName(event()));
  });

  it('is the same for another version of the object', () => {
    assert.equal(eventName(event({ resourceVersion: '8' })), eventName(event()));
  });

  it('differs for each field that identifies an event', () => {
    const related = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'r' };
    const others = [
      event({ uid: 'v' }),
      event({ namespace: 'other' }),
      event({ kind: 'Count' }),
      event({ apiVersion: 'v2' }),
      event({ fieldPath: 'spec.containers{web}' }),
      event({}, { type: 'Warning' }),
      event({}, { reason: 'Other' }),
      event({}, { message: 'other' }),
      event({}, { source: { component: 'other' } }),
      event({}, { action: 'Create' }),
      event({}, { related }),
      event({}, { related: { ...related, uid: 's' } }),
      event({}, { related: { ...related, name: 'other' } }),
      event({ name: 'Not_valid' }),
      event({ name: 'Not_valid_either' }),
    ];
    const names = new Set([event(), ...others].map(eventName));
    assert.equal(names.size, others.length + 1);
  });

  // upstream: 85b
  it('is a UUID if the name of the object is too long or invalid', () => {
    for (const name of ['n'.repeat(240), 'Not_valid']) {
      const uuid = eventName(event({ name }));
      assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    }
  });
});
