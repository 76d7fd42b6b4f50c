import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { eventMetrics } from '../../../src/metrics/event-metrics.ts';
import { createRegistry } from '../../../src/metrics/registry.ts';
import { EventBroadcaster } from '../../../src/record/event-broadcaster.ts';
import type { EventBroadcasterOptions } from '../../../src/record/event-broadcaster.ts';
import type { EventSubject } from '../../../src/record/event-recorder.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { apiError, FakeEventServer } from './fake-event-server.ts';

function count(name: string): EventSubject {
  return {
    apiVersion: 'demo.mark8s.io/v1',
    kind: 'Count',
    metadata: { name, namespace: 'default', uid: `uid of ${name}`, resourceVersion: '1' },
  };
}

function newBroadcaster(options: EventBroadcasterOptions = {}) {
  const clock = new FakeClock();
  const server = new FakeEventServer();
  const { log, lines } = recordingLogger();
  const registry = createRegistry();
  const broadcaster = new EventBroadcaster(
    { client: server.client, clock, log },
    { random: () => 0.5, metrics: eventMetrics(registry), ...options },
  );
  const abort = new AbortController();
  let running: Promise<void> | undefined;
  return {
    clock,
    server,
    broadcaster,
    recorder: broadcaster.recorder('count-controller'),
    lines,
    errors: () => lines.filter(({ level }) => level === 'error').map(({ message }) => message),
    start: () => {
      running = broadcaster.run(abort.signal);
    },
    stop: async () => {
      abort.abort();
      await running;
    },
    abort: () => abort.abort(),
    dropped: async () => {
      const metric = await registry.getSingleMetric('crd_controller_events_dropped_total')?.get();
      const counted = metric?.values.filter(({ value }) => value > 0) ?? [];
      return Object.fromEntries(counted.map(({ labels, value }) => [labels['reason'], value]));
    },
  };
}

// upstream: 80
test('an event is created on the server, and its repetition patches count, time and message', async () => {
  const { clock, server, recorder, start, stop } = newBroadcaster({ host: 'node-1' });
  start();
  recorder.normal(count('web'), 'Synced', 'Count synced');
  await settle();
  await clock.advance(5000);
  recorder.normal(count('web'), 'Synced', 'Count synced');
  await settle();
  assert.deepEqual(
    server.calls.map(({ verb }) => verb),
    ['create', 'patch'],
  );
  const [event] = server.events.values();
  assert.equal(event?.count, 2);
  assert.equal(event?.firstTimestamp, '2026-01-01T00:00:00Z');
  assert.equal(event?.lastTimestamp, '2026-01-01T00:00:05Z');
  assert.deepEqual(event?.source, { component: 'count-controller', host: 'node-1' });
  await stop();
});

test('events recorded before the start wait for it', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  recorder.normal(count('web'), 'Synced', 'Count synced');
  await settle();
  assert.equal(server.calls.length, 0);
  start();
  await settle();
  assert.deepEqual(server.stored, ['web Synced Count synced x1']);
  await stop();
});

// upstream: 83
test('a burst of 2,000 events for 2,000 objects arrives whole, a few at a time', async () => {
  const { server, broadcaster, recorder, errors, start, stop } = newBroadcaster();
  start();
  for (let i = 0; i < 2000; i++) recorder.normal(count(`count-${i}`), 'Synced', 'Count synced');
  const flushing = broadcaster.flush(60_000);
  assert.equal(await flushing, 0);
  assert.equal(server.events.size, 2000);
  assert.equal(server.calls.length, 2000);
  assert.equal(server.mostAtOnce, 4);
  assert.deepEqual(errors(), []);
  await stop();
});

test('repetitions that come faster than they can be written need one request', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  for (let i = 0; i < 10; i++) recorder.normal(count('web'), 'Synced', 'Count synced');
  start();
  await settle();
  assert.deepEqual(server.stored, ['web Synced Count synced x10']);
  assert.equal(server.calls.length, 1);
  await stop();
});

// upstream: 83
test('events about one object reach the server in their order', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  start();
  const reasons = Array.from({ length: 9 }, (_, i) => `Step${i}`);
  for (const reason of reasons) recorder.normal(count('web'), reason, 'done');
  await settle(50);
  assert.deepEqual(
    Array.from(server.events.values(), ({ reason }) => reason),
    reasons,
  );
  assert.equal(server.mostAtOnce, 1);
  await stop();
});

// upstream: 82
test('an event that the server has forgotten is created anew, with its count', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  start();
  recorder.normal(count('web'), 'Synced', 'Count synced');
  await settle();
  server.events.clear();
  recorder.normal(count('web'), 'Synced', 'Count synced');
  await settle();
  assert.deepEqual(server.stored, ['web Synced Count synced x2']);
  await stop();
});

// upstream: 84j
test('what does not fit is dropped, counted, and logged once a minute; what is there counts up', async () => {
  const { clock, server, recorder, errors, lines, dropped, start, stop } = newBroadcaster({
    capacity: 2,
  });
  for (const name of ['a', 'b', 'c', 'd', 'f', 'a']) recorder.normal(count(name), 'Synced', 'yes');
  await clock.advance(60_000);
  recorder.normal(count('e'), 'Synced', 'yes');
  assert.deepEqual(await dropped(), { buffer_full: 4 });
  const message = 'Dropped event: too many are waiting to be written';
  assert.deepEqual(errors(), [message, message]);
  assert.equal(lines.findLast((line) => line.message === message)?.fields['times'], 2);
  start();
  await settle();
  assert.deepEqual(server.stored, ['a Synced yes x2', 'b Synced yes x1']);
  await stop();
});

test('the spam filter drops in silence, and counts', async () => {
  const { server, recorder, errors, dropped, start, stop } = newBroadcaster();
  for (let i = 0; i < 30; i++) recorder.normal(count('web'), 'Noisy', 'again');
  start();
  await settle();
  assert.deepEqual(server.stored, ['web Noisy again x25']);
  assert.deepEqual(await dropped(), { spam: 5 });
  assert.deepEqual(errors(), []);
  await stop();
});

// upstream: 81
test('an event is tried 12 times, 10 s apart but for the first time, and then dropped', async () => {
  const { clock, server, recorder, errors, dropped, start, stop } = newBroadcaster();
  server.fault = () => apiError('unreachable');
  const times: number[] = [];
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await settle();
  for (let i = 0; i < 400; i++) {
    while (times.length < server.calls.length) times.push(clock.monotonic());
    await clock.advance(500);
  }
  const expected = [0, ...Array.from({ length: 11 }, (_, i) => 5000 + i * 10_000)];
  assert.deepEqual(times, expected);
  assert.deepEqual(await dropped(), { retries_exhausted: 1 });
  assert.equal(errors().filter((message) => message.startsWith('Could not write')).length, 3);
  assert.ok(errors().includes('Dropped event: every attempt failed'));
  await stop();
});

// upstream: 81
test('how often an event is sent follows from what goes wrong', async () => {
  const errors: readonly (readonly [what: string, () => Error | undefined, sent: number])[] = [
    ['it cannot be sent as a request', () => new TypeError('namespace must be …'), 1],
    ['the server refuses', () => apiError('forbidden', { code: 403 }), 1],
    ['the answer is something else', () => apiError('malformed'), 12],
    ['nobody knows', () => new Error('weird'), 12],
  ];
  for (const [what, error, sent] of errors) {
    const { clock, server, recorder, dropped, start, stop } = newBroadcaster();
    server.fault = error;
    start();
    recorder.normal(count('web'), 'Synced', 'yes');
    await clock.advance(200_000);
    assert.equal(server.calls.length, sent, what);
    assert.deepEqual(await dropped(), sent === 1 ? { rejected: 1 } : { retries_exhausted: 1 });
    await stop();
  }
  const { clock, server, recorder, dropped, start, stop } = newBroadcaster();
  const faults = [new Error('weird')];
  server.fault = () => faults.shift();
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await clock.advance(200_000);
  assert.equal(server.calls.length, 2, 'the second time it works');
  assert.deepEqual(await dropped(), {});
  await stop();
});

test('a combined event shows the newest message on the server', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  start();
  for (let i = 1; i <= 12; i++) {
    recorder.normal(count('web'), 'Created', `pod ${i}`);
    await settle();
  }
  const combined = server.stored.filter((line) => line.includes('combined'));
  assert.deepEqual(combined, ['web Created (combined from similar events): pod 12 x3']);
  assert.equal(server.events.size, 10);
  await stop();
});

test('an event that fails for a while arrives in its newest state', async () => {
  const { clock, server, recorder, start, stop } = newBroadcaster();
  server.fault = () => (clock.monotonic() < 8000 ? apiError('internal', { code: 500 }) : undefined);
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await clock.advance(7000);
  recorder.normal(count('web'), 'Synced', 'yes');
  await clock.advance(8000);
  assert.deepEqual(server.stored, ['web Synced yes x2']);
  await stop();
});

// upstream: 83
test('while one event is retried, those of other objects are written and its own wait in order', async () => {
  const { clock, server, recorder, start, stop } = newBroadcaster({ concurrency: 1 });
  let isBroken = true;
  server.fault = ({ object }) =>
    isBroken && object === 'bad' ? apiError('unavailable') : undefined;
  start();
  recorder.normal(count('bad'), 'First', 'one');
  recorder.normal(count('bad'), 'Second', 'two');
  recorder.normal(count('good'), 'First', 'one');
  await settle();
  assert.deepEqual(server.stored, ['good First one x1']);
  isBroken = false;
  await clock.advance(5000);
  assert.deepEqual(server.stored, ['good First one x1', 'bad First one x1', 'bad Second two x1']);
  await stop();
});

// upstream: 81
test('what the server refuses is given up at once', async () => {
  const { clock, server, recorder, errors, dropped, start, stop } = newBroadcaster();
  server.fault = () => apiError('forbidden', { code: 403 });
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await clock.advance(200_000);
  assert.equal(server.calls.length, 1);
  assert.deepEqual(await dropped(), { rejected: 1 });
  assert.deepEqual(errors(), ['Dropped event: the server rejected it']);
  await stop();
});

test('a namespace that is going away or gone, and an event that is there already, are no errors', async () => {
  const { server, recorder, lines, errors, dropped, start, stop } = newBroadcaster();
  const faults = [
    apiError('forbidden', {
      code: 403,
      details: { causes: [{ reason: 'NamespaceTerminating' }] },
    }),
    apiError('alreadyExists', { code: 409 }),
    apiError('notFound', { code: 404 }),
  ];
  server.fault = () => faults.shift();
  start();
  recorder.normal(count('a'), 'Synced', 'yes');
  recorder.normal(count('b'), 'Synced', 'yes');
  recorder.normal(count('c'), 'Synced', 'yes');
  await settle();
  assert.deepEqual(errors(), []);
  assert.deepEqual(await dropped(), {});
  const quiet = lines.filter(({ level }) => level === 5);
  assert.equal(quiet.length, 3);
  await stop();
});

test('an event whose answer was lost is on the server once, and counts on', async () => {
  const { clock, server, recorder, errors, dropped, start, stop } = newBroadcaster();
  const lost = [apiError('unreachable')];
  server.lostAnswer = () => lost.shift();
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await settle();
  recorder.normal(count('web'), 'Synced', 'yes');
  await clock.advance(10_000);
  recorder.normal(count('web'), 'Synced', 'yes');
  await settle();
  assert.deepEqual(server.stored, ['web Synced yes x3']);
  assert.deepEqual(
    server.calls.map(({ verb }) => verb),
    ['create', 'create', 'patch', 'patch', 'patch'],
  );
  assert.deepEqual(errors(), ['Could not write event; retrying']);
  assert.deepEqual(await dropped(), {});
  await stop();
});

test('an event that happened once, and whose answer was lost, needs no more than being found', async () => {
  const { clock, server, recorder, dropped, start, stop } = newBroadcaster();
  const lost = [apiError('unreachable')];
  server.lostAnswer = () => lost.shift();
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await clock.advance(60_000);
  assert.deepEqual(server.stored, ['web Synced yes x1']);
  assert.deepEqual(
    server.calls.map(({ verb }) => verb),
    ['create', 'create', 'patch'],
  );
  assert.deepEqual(await dropped(), {});
  await stop();
});

// upstream: 81
test('the server is asked again when it asks to be, within reason', async () => {
  const { clock, server, recorder, start, stop } = newBroadcaster();
  const waits = [20_000, 1_000_000_000];
  server.fault = () => {
    const retryAfterMs = waits.shift();
    return retryAfterMs ? apiError('tooManyRequests', { code: 429, retryAfterMs }) : undefined;
  };
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await clock.advance(19_999);
  assert.equal(server.calls.length, 1);
  await clock.advance(1);
  assert.equal(server.calls.length, 2);
  await clock.advance(60_000);
  assert.deepEqual(server.stored, ['web Synced yes x1']);
  await stop();
});

// upstream: 83a
test('on a stop what is buffered is written, what waits for a retry too, and no more is taken in', async () => {
  const { clock, server, recorder, lines, dropped, start, stop } = newBroadcaster();
  let isBroken = true;
  server.fault = () => (isBroken ? apiError('unavailable') : undefined);
  start();
  recorder.normal(count('retried'), 'Synced', 'yes');
  await settle();
  isBroken = false;
  for (let i = 0; i < 20; i++) recorder.normal(count(`count-${i}`), 'Synced', 'yes');
  await stop();
  assert.equal(server.events.size, 21);
  assert.equal(clock.pending, 0);
  await recorder.normal(count('late'), 'Synced', 'yes').attempted();
  assert.equal(server.events.size, 21);
  assert.deepEqual(await dropped(), { shutdown: 1 });
  assert.ok(lines.some(({ message }) => message === 'Flushed events'));
});

// upstream: 82a
test('a stop does not wait longer than it may, and says how many events were lost', async () => {
  const { clock, server, recorder, lines, dropped, abort, start, stop } = newBroadcaster();
  const never = new Deferred();
  server.fault = async ({ object }) => {
    if (object === 'failing') return apiError('unavailable');
    await never.promise;
    return undefined;
  };
  start();
  recorder.normal(count('failing'), 'Synced', 'yes');
  await settle();
  for (let i = 0; i < 10; i++) recorder.normal(count(`count-${i}`), 'Synced', 'yes');
  await settle();
  abort();
  await clock.advance(4999);
  assert.ok(!lines.some(({ message }) => message === 'Events were lost during shutdown'));
  await clock.advance(1);
  const line = lines.find(({ message }) => message === 'Events were lost during shutdown');
  assert.equal(line?.fields['lost'], 11);
  assert.deepEqual(await dropped(), { shutdown: 11 });
  never.resolve();
  await stop();
  assert.equal(server.events.size, 0);
});

test('a refusal that comes in the moment of the end is not counted a second time', async () => {
  const { clock, server, recorder, errors, dropped, abort, start, stop } = newBroadcaster();
  const answer = new Deferred<never>();
  server.fault = () => answer.promise;
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await settle();
  abort();
  await clock.advance(5000);
  assert.deepEqual(await dropped(), { shutdown: 1 });
  answer.reject(apiError('forbidden', { code: 403 }));
  await stop();
  assert.deepEqual(await dropped(), { shutdown: 1 });
  assert.deepEqual(errors(), ['Events were lost during shutdown']);
});

// upstream: 82a
test('an event that fails after the stop is not tried again, and is among the lost', async () => {
  const { clock, server, recorder, lines, dropped, start, stop } = newBroadcaster();
  server.fault = () => apiError('unreachable');
  start();
  recorder.normal(count('a'), 'Synced', 'yes');
  recorder.normal(count('b'), 'Synced', 'yes');
  await settle();
  await stop();
  assert.equal(server.calls.length, 4);
  assert.equal(clock.pending, 0);
  assert.equal(lines.at(-1)?.fields['lost'], 2);
  assert.deepEqual(await dropped(), { shutdown: 2 });
});

test('flush waits for what is there, for a while, and says what is left', async () => {
  const { clock, server, broadcaster, recorder, start, stop } = newBroadcaster();
  assert.equal(await broadcaster.flush(1000), 0);
  server.fault = () => (clock.monotonic() < 3000 ? apiError('unavailable') : undefined);
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  const impatient = broadcaster.flush(1000);
  await clock.advance(1000);
  assert.equal(await impatient, 1);
  const patient = broadcaster.flush(60_000);
  await clock.advance(5000);
  assert.equal(await patient, 0);
  assert.equal(clock.pending, 0);
  await stop();
});

test('who must not go on before an event was sent can wait for that', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  start();
  const recorded = recorder.normal(count('web'), 'Synced', 'yes');
  await recorded.attempted();
  assert.deepEqual(server.stored, ['web Synced yes x1']);
  server.fault = () => apiError('unavailable');
  await recorder.normal(count('other'), 'Synced', 'yes').attempted();
  await recorder.normal(count('other'), 'Later', 'yes').attempted();
  server.fault = () => undefined;
  await stop();
  assert.equal(server.events.size, 3);
});

test('who waits for an event to be sent waits no longer than its signal', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  const answer = new Deferred();
  server.fault = () => answer.promise.then(() => undefined);
  start();
  const hurry = new AbortController();
  const recorded = recorder.normal(count('web'), 'Synced', 'yes');
  let waits = true;
  const waiting = recorded.attempted(hurry.signal).finally(() => (waits = false));
  await settle();
  assert.equal(waits, true);
  hurry.abort();
  await waiting;
  assert.equal(getEventListeners(hurry.signal, 'abort').length, 0);
  answer.resolve();
  const patient = new AbortController();
  await recorded.attempted(patient.signal);
  assert.equal(getEventListeners(patient.signal, 'abort').length, 0);
  await stop();
});

test('each event is a log line at level 3', async () => {
  const { recorder, lines, start, stop } = newBroadcaster();
  start();
  recorder.warning(count('web'), 'Failed', 'no');
  assert.deepEqual(lines, [
    {
      level: 3,
      message: 'Event occurred',
      fields: {
        object: 'default/web',
        fieldPath: '',
        kind: 'Count',
        apiVersion: 'demo.mark8s.io/v1',
        type: 'Warning',
        reason: 'Failed',
        message: 'no',
      },
    },
  ]);
  await stop();
});

test('options that make no sense are refused, and named', () => {
  assert.throws(() => newBroadcaster({ capacity: 0 }), /capacity.*got 0/);
  assert.throws(() => newBroadcaster({ concurrency: 1.5 }), /concurrency.*got 1.5/);
});
