import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiError } from '../../../src/api/api-error.ts';
import { EVENTS } from '../../../src/api/builtin.ts';
import { classifyFailure, EventWriter } from '../../../src/record/event-writer.ts';
import type { WriteFailure } from '../../../src/record/event-writer.ts';
import type { RecordedEvent } from '../../../src/record/recorded-event.ts';
import { newCorrelator } from './correlator-harness.ts';
import { apiError, FakeEventServer } from './fake-event-server.ts';

function newWriter() {
  const server = new FakeEventServer();
  const writer = new EventWriter(server.client);
  const { signal } = new AbortController();
  const { event } = newCorrelator();
  const first = event('Synced', 'it is');
  const counted = (count: number, said: Partial<RecordedEvent> = {}): RecordedEvent => ({
    ...first,
    count,
    ...said,
  });
  return {
    server,
    counted,
    write: (event: RecordedEvent) => writer.write(event, signal),
    verbs: () => server.calls.map(({ verb }) => verb),
    stored: () => server.events.get(`my-ns/${first.metadata.name}`),
  };
}

// upstream: 80
test('an event is created once and patched from then on: count, last time and message', async () => {
  const { server, counted, write, verbs, stored } = newWriter();
  await write(counted(1));
  const later = { lastTimestamp: '2026-01-01T00:01:00Z', message: 'in other words' };
  await write(counted(2, later));
  assert.deepEqual(verbs(), ['create', 'patch']);
  assert.deepEqual(stored(), counted(2, later));
  assert.deepEqual(server.patches, [{ type: 'strategic', body: { count: 2, ...later } }]);
});

// upstream: 82
test('an event that the server has dropped meanwhile is created anew, as it is now', async () => {
  const { server, counted, write, verbs, stored } = newWriter();
  await write(counted(1));
  server.events.clear();
  await write(counted(5));
  assert.deepEqual(verbs(), ['create', 'patch', 'create']);
  assert.equal(stored()?.count, 5);
  assert.equal('resourceVersion' in (stored()?.metadata ?? {}), false);
});

test('an event that is there already is counted up, unless it happened but once', async () => {
  const { server, counted, write, verbs, stored } = newWriter();
  await server.client.create(EVENTS, counted(1));
  await assert.rejects(write(counted(1)), { kind: 'alreadyExists' });
  await write(counted(2));
  assert.deepEqual(verbs(), ['create', 'create', 'patch']);
  assert.equal(stored()?.count, 2);
});

test('an event that others have written, and that vanishes before it is patched, fails', async () => {
  const { server, counted, write, verbs } = newWriter();
  await server.client.create(EVENTS, counted(1));
  server.fault = ({ verb }) => {
    if (verb === 'patch') server.events.clear();
    return undefined;
  };
  await assert.rejects(write(counted(2)), { kind: 'alreadyExists' });
  assert.deepEqual(verbs(), ['create', 'create', 'patch']);
});

// upstream: 81
test('what a failure calls for follows from who is at fault', () => {
  const terminating = { details: { causes: [{ reason: 'NamespaceTerminating' }] } };
  const calls: readonly (readonly [ApiError['kind'] | Error, WriteFailure])[] = [
    ['unreachable', 'retry'],
    ['malformed', 'retry'],
    ['internal', 'retry'],
    ['unavailable', 'retry'],
    ['timeout', 'retry'],
    ['tooManyRequests', 'retry'],
    [new Error('whatever it is'), 'retry'],
    [new TypeError('namespace must be that of one object'), 'impossible'],
    ['forbidden', 'rejected'],
    ['invalid', 'rejected'],
    ['conflict', 'rejected'],
    ['unauthorized', 'rejected'],
    ['alreadyExists', 'pointless'],
    ['notFound', 'pointless'],
  ];
  for (const [failure, expected] of calls) {
    const error = typeof failure === 'string' ? apiError(failure) : failure;
    assert.equal(classifyFailure(error), expected, String(failure));
  }
  assert.equal(classifyFailure(apiError('forbidden', terminating)), 'pointless');
});
