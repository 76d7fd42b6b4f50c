import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiError } from '../../../src/api/api-error.ts';
import { EVENTS } from '../../../src/api/builtin.ts';
import { CORE_EVENTS } from '../../../src/record/event-api.ts';
import { classifyFailure, EventWriter } from '../../../src/record/event-writer.ts';
import type { WriteFailure } from '../../../src/record/event-writer.ts';
import { OCCURRENCE } from '../../../src/record/recorded-event.ts';
import type { RecordedEvent } from '../../../src/record/recorded-event.ts';
import { newCorrelator } from './correlator-harness.ts';
import { Simulation } from '../../support/simulation.ts';
import { apiError, FakeEventServer } from './fake-event-server.ts';

function newWriter() {
  const server = new FakeEventServer();
  const writer = new EventWriter(server.client, CORE_EVENTS);
  const { signal } = new AbortController();
  const { event } = newCorrelator();
  const first = event('Synced', 'it is');
  const counted = (count: number, fields: Partial<RecordedEvent> = {}): RecordedEvent => ({
    ...first,
    count,
    ...fields,
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
test('creates an event once, and then patches count, lastTimestamp and message', async () => {
  const { server, counted, write, verbs, stored } = newWriter();
  await write(counted(1));
  const later = { lastTimestamp: '2026-01-01T00:01:00Z', message: 'another message' };
  await write(counted(2, later));
  assert.deepEqual(verbs(), ['create', 'patch']);
  assert.deepEqual(stored(), counted(2, later));
  assert.deepEqual(server.patches, [{ type: 'strategic', body: { count: 2, ...later } }]);
});

// upstream: 82
test('creates an event that expired on the server again, in its current state', async () => {
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

test('continues the count of another process, and does not count an occurrence of the same resourceVersion again', async () => {
  const { server, counted, write, stored } = newWriter();
  await server.client.create(EVENTS, counted(5, about('20')));
  await write(counted(1, about('20')));
  assert.equal(stored()?.count, 5);
  assert.deepEqual(server.patches, []);
  await write(counted(2, about('21')));
  assert.equal(stored()?.count, 6);
  assert.equal(stored()?.involvedObject.resourceVersion, '21');
});

test('counts an occurrence of a resourceVersion that the other process had not seen', async () => {
  const { server, counted, write, stored } = newWriter();
  await server.client.create(EVENTS, counted(5, about('20')));
  await write(counted(1, about('21')));
  assert.equal(stored()?.count, 6);
});

test('counts an occurrence with another annotation than the last one, whatever its resourceVersion', async () => {
  const { server, counted, write, stored } = newWriter();
  const occurrence = (id: string) => {
    const event = counted(1, about('20'));
    return { ...event, metadata: { ...event.metadata, annotations: { [OCCURRENCE]: id } } };
  };
  await server.client.create(EVENTS, { ...occurrence('1'), count: 5 });
  await write(occurrence('2'));
  assert.equal(stored()?.count, 6);
  const { body } = server.patches.at(-1) ?? {};
  assert.deepEqual(Object(body).metadata.annotations, { [OCCURRENCE]: '2' });
});

test('counts an event once if the response to its creation was lost', async () => {
  const { server, counted, write, stored } = newWriter();
  server.lostResponse = () => apiError('unreachable');
  await assert.rejects(write(counted(1)));
  server.lostResponse = () => undefined;
  await write(counted(1));
  assert.equal(stored()?.count, 1);
  await write(counted(3));
  assert.equal(stored()?.count, 3);
});

test('continues the count in each of two processes that emit the same event in turn', async () => {
  const simulation = new Simulation();
  const { signal } = new AbortController();
  const { event } = newCorrelator();
  const first = event('Synced', 'it is');
  const occurrence = (count: number, resourceVersion: string) => {
    const metadata = { ...first.metadata, namespace: 'default' };
    const involvedObject = { ...first.involvedObject, namespace: 'default', resourceVersion };
    return { ...first, metadata, involvedObject, count };
  };
  const count = async () => (await simulation.client.list(EVENTS)).items.map((item) => item.count);
  const newWriter = () => new EventWriter(simulation.client, CORE_EVENTS);
  const [a, b] = [newWriter(), newWriter()];
  await a.write(occurrence(1, '10'), signal);
  await a.write(occurrence(2, '11'), signal);
  await b.write(occurrence(1, '11'), signal);
  assert.deepEqual(await count(), [2]);
  await b.write(occurrence(2, '12'), signal);
  await a.write(occurrence(3, '13'), signal);
  assert.deepEqual(await count(), [4]);
  // The response to the last patch is lost, and the occurrence is written again.
  simulation.server.faults.failNext({ verb: 'patch', resource: 'events' }, 'lostResponse');
  await assert.rejects(a.write(occurrence(4, '14'), signal));
  await a.write(occurrence(4, '14'), signal);
  assert.deepEqual(await count(), [5]);
  await simulation.end();
});

test('rejects if an event of another process is deleted before it is patched', async () => {
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
test('classifies failures by whether a retry can succeed', () => {
  const terminating = { details: { causes: [{ reason: 'NamespaceTerminating' }] } };
  const calls: readonly (readonly [ApiError['kind'] | Error, WriteFailure])[] = [
    ['unreachable', 'retry'],
    ['malformed', 'retry'],
    ['internal', 'retry'],
    ['unavailable', 'retry'],
    ['timeout', 'retry'],
    ['tooManyRequests', 'retry'],
    [new Error('unknown'), 'retry'],
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
