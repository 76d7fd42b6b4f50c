import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiError } from '../../../src/api/api-error.ts';
import { EVENTS } from '../../../src/api/builtin.ts';
import { classifyFailure, EventWriter } from '../../../src/record/event-writer.ts';
import type { WriteFailure } from '../../../src/record/event-writer.ts';
import type { RecordedEvent } from '../../../src/record/recorded-event.ts';
import { newCorrelator } from './correlator-harness.ts';
import { Simulation } from '../../support/simulation.ts';
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

const about = (resourceVersion: string) => {
  const { event } = newCorrelator();
  return { involvedObject: { ...event('Synced', 'it is').involvedObject, resourceVersion } };
};

test('the event of a predecessor is continued; one about the same version is that very event', async () => {
  const { server, counted, write, stored } = newWriter();
  await server.client.create(EVENTS, counted(5, about('20')));
  await write(counted(1, about('20')));
  assert.equal(stored()?.count, 5);
  assert.deepEqual(server.patches, []);
  await write(counted(2, about('21')));
  assert.equal(stored()?.count, 6);
  assert.equal(stored()?.involvedObject.resourceVersion, '21');
});

test('a successor counts an occurrence about a version that its predecessor had not seen', async () => {
  const { server, counted, write, stored } = newWriter();
  await server.client.create(EVENTS, counted(5, about('20')));
  await write(counted(1, about('21')));
  assert.equal(stored()?.count, 6);
});

test('an event whose creation was answered by a broken connection is counted once', async () => {
  const { server, counted, write, stored } = newWriter();
  server.lostAnswer = () => apiError('unreachable');
  await assert.rejects(write(counted(1)));
  server.lostAnswer = () => undefined;
  await write(counted(1));
  assert.equal(stored()?.count, 1);
  await write(counted(3));
  assert.equal(stored()?.count, 3);
});

test('of two processes that emit the same event in turn, each continues the count', async () => {
  const world = new Simulation();
  const { signal } = new AbortController();
  const { event } = newCorrelator();
  const first = event('Synced', 'it is');
  const occurrence = (count: number, resourceVersion: string) => {
    const metadata = { ...first.metadata, namespace: 'default' };
    const involvedObject = { ...first.involvedObject, namespace: 'default', resourceVersion };
    return { ...first, metadata, involvedObject, count };
  };
  const count = async () => (await world.client.list(EVENTS)).items.map((item) => item.count);
  const [a, b] = [new EventWriter(world.client), new EventWriter(world.client)];
  await a.write(occurrence(1, '10'), signal);
  await a.write(occurrence(2, '11'), signal);
  await b.write(occurrence(1, '11'), signal);
  assert.deepEqual(await count(), [2]);
  await b.write(occurrence(2, '12'), signal);
  await a.write(occurrence(3, '13'), signal);
  assert.deepEqual(await count(), [4]);
  // The answer to the last count is lost, and the occurrence is written again.
  world.server.faults.failNext({ verb: 'patch', resource: 'events' }, 'lostAnswer');
  await assert.rejects(a.write(occurrence(4, '14'), signal));
  await a.write(occurrence(4, '14'), signal);
  assert.deepEqual(await count(), [5]);
  await world.end();
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
    ['alreadyExists', 'unnecessary'],
    ['notFound', 'unnecessary'],
  ];
  for (const [failure, expected] of calls) {
    const error = typeof failure === 'string' ? apiError(failure) : failure;
    assert.equal(classifyFailure(error), expected, String(failure));
  }
  assert.equal(classifyFailure(apiError('forbidden', terminating)), 'unnecessary');
});
