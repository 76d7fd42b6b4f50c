import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventRecorder, NOT_SENT } from '../../../src/record/event-recorder.ts';
import type { EventSubject } from '../../../src/record/event-recorder.ts';
import type { EventSource, RecordedEvent } from '../../../src/record/recorded-event.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

const count = {
  apiVersion: 'demo.mark8s.io/v1',
  kind: 'Count',
  metadata: { name: 'web', namespace: 'team', uid: 'u-1', resourceVersion: '7', labels: {} },
  spec: { count: 3 },
};

function newRecorder(source: EventSource = { component: 'count-controller' }) {
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
  const { log, lines } = recordingLogger();
  const events: RecordedEvent[] = [];
  const recorder = eventRecorder({
    source,
    sink: (event) => {
      events.push(event);
      return NOT_SENT;
    },
    clock,
    log,
  });
  return { recorder, events, lines };
}

// upstream: 80
test('sets all fields that kubectl describe and kubectl get events show', () => {
  const { recorder, events } = newRecorder({ component: 'count-controller', host: 'node-1' });
  recorder.normal(count, 'Synced', 'Count synced successfully');
  assert.deepEqual(events, [
    {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'web.ec188c7f1f7f2997', namespace: 'team' },
      involvedObject: {
        apiVersion: 'demo.mark8s.io/v1',
        kind: 'Count',
        namespace: 'team',
        name: 'web',
        uid: 'u-1',
        resourceVersion: '7',
      },
      type: 'Normal',
      reason: 'Synced',
      message: 'Count synced successfully',
      count: 1,
      firstTimestamp: '2026-01-02T03:04:05Z',
      lastTimestamp: '2026-01-02T03:04:05Z',
      source: { component: 'count-controller', host: 'node-1' },
      reportingComponent: 'count-controller',
      reportingInstance: 'node-1',
    },
  ]);
});

// upstream: 80
test('records a warning with annotations and a field path', () => {
  const { recorder, events } = newRecorder();
  const fieldPath = 'spec.containers{web}';
  recorder.warning(count, 'Failed', 'no', { annotations: { code: '1' }, fieldPath });
  assert.equal(events[0]?.type, 'Warning');
  assert.deepEqual(events[0]?.metadata.annotations, { code: '1' });
  assert.equal(events[0]?.involvedObject.fieldPath, fieldPath);
  assert.equal(events[0]?.reportingInstance, '');
});

// upstream: 80a
test('records events of cluster-scoped objects in the default namespace', () => {
  const { recorder, events } = newRecorder();
  recorder.normal(
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' } },
    'Ready',
    'it is',
  );
  assert.equal(events[0]?.metadata.namespace, 'default');
  assert.deepEqual(events[0]?.involvedObject, { apiVersion: 'v1', kind: 'Node', name: 'node-1' });
});

test('truncates a long message between two characters', () => {
  const { recorder, events } = newRecorder();
  recorder.normal(count, 'Long', 'x'.repeat(1024));
  recorder.normal(count, 'Longer', 'x'.repeat(100_000));
  recorder.normal(count, 'Emoji', 'x' + '😀'.repeat(1000));
  const messages = events.map(({ message }) => message);
  assert.equal(messages[0], 'x'.repeat(1024));
  assert.equal(messages[1], `${'x'.repeat(1023)}…`);
  assert.equal(messages[2], `x${'😀'.repeat(511)}…`);
  const odd = newRecorder();
  odd.recorder.normal(count, 'Emoji', '😀'.repeat(1000));
  assert.equal(odd.events[0]?.message, `${'😀'.repeat(511)}…`);
});

// upstream: 80
test('logs an error for an invalid object or message, and does not throw', async () => {
  const { recorder, events, lines } = newRecorder();
  const invalid: unknown[] = [
    undefined,
    null,
    'Pod',
    {},
    { apiVersion: 'v1', kind: 'Pod', metadata: {} },
    { apiVersion: '', kind: 'Pod', metadata: { name: 'a' } },
    { apiVersion: 'v1', metadata: { name: 'a' } },
  ];
  for (const subject of invalid) {
    await recorder.normal(subject as EventSubject, 'Synced', 'it is').attempted();
  }
  recorder.normal(count, 'Synced', undefined as unknown as string);
  assert.deepEqual(events, []);
  assert.equal(lines.length, invalid.length + 1);
  assert.ok(lines.every(({ message }) => message === 'Could not record event'));
});
