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
test('creates an event, and patches count, time and message when it is repeated', async () => {
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

test('remembers a bounded number of events with their counts, if it is asked to', () => {
  for (const recent of [1, 2]) {
    const { recorder, broadcaster } = newBroadcaster({ recent });
    for (const reason of ['First', 'Second', 'Third', 'Second']) {
      recorder.normal(count('web'), reason, 'Count synced');
    }
    const remembered = broadcaster.recent.map(({ reason, count }) => `${reason} ${count}`);
    assert.deepEqual(remembered, ['Third 1', 'Second 2'].slice(-recent));
  }
  assert.deepEqual(newBroadcaster().broadcaster.recent, []);
});

test('writes events recorded before run once it has started', async () => {
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
test('writes a burst of 2,000 events of 2,000 objects without loss, 4 at a time', async () => {
  const { server, broadcaster, recorder, errors, start, stop } = newBroadcaster();
  start();
  for (let i = 0; i < 2000; i++) recorder.normal(count(`count-${i}`), 'Synced', 'Count synced');
  const flushing = broadcaster.flush(60_000);
  assert.equal(await flushing, 0);
  assert.equal(server.events.size, 2000);
  assert.equal(server.calls.length, 2000);
  assert.equal(server.maxConcurrency, 4);
  assert.deepEqual(errors(), []);
  await stop();
});

test('writes repetitions of a buffered event with one request', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  for (let i = 0; i < 10; i++) recorder.normal(count('web'), 'Synced', 'Count synced');
  start();
  await settle();
  assert.deepEqual(server.stored, ['web Synced Count synced x10']);
  assert.equal(server.calls.length, 1);
  await stop();
});

// upstream: 83
test('writes the events of one object in order, one at a time', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  start();
  const reasons = Array.from({ length: 9 }, (_, i) => `Step${i}`);
  for (const reason of reasons) recorder.normal(count('web'), reason, 'done');
  await settle(50);
  assert.deepEqual(
    Array.from(server.events.values(), ({ reason }) => reason),
    reasons,
  );
  assert.equal(server.maxConcurrency, 1);
  await stop();
});

// upstream: 82
test('creates an event that expired on the server again, with its count', async () => {
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
test('drops new events above the capacity, counts them and logs once a minute; buffered events still count repetitions', async () => {
  const { clock, server, recorder, errors, lines, dropped, start, stop } = newBroadcaster({
    capacity: 2,
  });
  for (const name of ['a', 'b', 'c', 'd', 'f', 'a']) recorder.normal(count(name), 'Synced', 'yes');
  await clock.advance(60_000);
  recorder.normal(count('e'), 'Synced', 'yes');
  assert.deepEqual(await dropped(), { buffer_full: 4 });
  const message = 'Dropped event: too many are waiting to be written';
  assert.deepEqual(errors(), [message, message]);
  const { times, object, reason } = lines.findLast((line) => line.message === message)!.fields;
  assert.deepEqual([times, object, reason], [2, 'default/f', 'Synced']);
  start();
  await settle();
  assert.deepEqual(server.stored, ['a Synced yes x2', 'b Synced yes x1']);
  await stop();
});

test('counts events that the spam filter drops, without a log line', async () => {
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
test('drops an event after 12 attempts: the first retry after 5 s (with jitter), the others 10 s apart', async () => {
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
test('retries unexpected failures, and drops events that the server or the client rejects', async () => {
  const failures: readonly (readonly [description: string, () => Error, attempts: number])[] = [
    ['the client cannot build the request', () => new TypeError('namespace must be …'), 1],
    ['the server rejects the event', () => apiError('forbidden', { code: 403 }), 1],
    ['the response is malformed', () => apiError('malformed'), 12],
    ['an unknown error', () => new Error('unknown'), 12],
  ];
  for (const [description, error, attempts] of failures) {
    const { clock, server, recorder, dropped, start, stop } = newBroadcaster();
    server.fault = error;
    start();
    recorder.normal(count('web'), 'Synced', 'yes');
    await clock.advance(200_000);
    assert.equal(server.calls.length, attempts, description);
    assert.deepEqual(await dropped(), attempts === 1 ? { rejected: 1 } : { retries_exhausted: 1 });
    await stop();
  }
  const { clock, server, recorder, dropped, start, stop } = newBroadcaster();
  const faults = [new Error('unknown')];
  server.fault = () => faults.shift();
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await clock.advance(200_000);
  assert.equal(server.calls.length, 2, 'the first retry succeeds');
  assert.deepEqual(await dropped(), {});
  await stop();
});

test('updates the message of a combined event', async () => {
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

test('writes the latest state of an event that was retried', async () => {
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
test('delays only later events of the same object while an event is retried', async () => {
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
test('drops an event that the server rejects without a retry', async () => {
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

test('treats a terminating or missing namespace and an existing event as no error', async () => {
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
  assert.equal(lines.filter(({ level }) => level === 5).length, 3);
  await stop();
});

test('finds an event that was created although the response was lost, and continues its count', async () => {
  const { clock, server, recorder, errors, dropped, start, stop } = newBroadcaster();
  const lost = [apiError('unreachable')];
  server.lostResponse = () => lost.shift();
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

test('does not count an occurrence twice if the response to its creation was lost', async () => {
  const { clock, server, recorder, dropped, start, stop } = newBroadcaster();
  const lost = [apiError('unreachable')];
  server.lostResponse = () => lost.shift();
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
test('retries after the Retry-After delay, at most after 60 s', async () => {
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
test('writes buffered and retried events on a stop, and drops new ones', async () => {
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
test('stops after flushTimeoutMs, and logs how many events were lost', async () => {
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

test('does not count an event twice that is rejected after flushTimeoutMs', async () => {
  const { clock, server, recorder, errors, dropped, abort, start, stop } = newBroadcaster();
  const response = new Deferred<never>();
  server.fault = () => response.promise;
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  await settle();
  abort();
  await clock.advance(5000);
  assert.deepEqual(await dropped(), { shutdown: 1 });
  response.reject(apiError('forbidden', { code: 403 }));
  await stop();
  assert.deepEqual(await dropped(), { shutdown: 1 });
  assert.deepEqual(errors(), ['Events were lost during shutdown']);
});

// upstream: 82a
test('makes one attempt for each event after the stop, and counts failures as lost', async () => {
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

test('flush waits for buffered events up to its timeout, and returns how many are left', async () => {
  const { clock, server, broadcaster, recorder, start, stop } = newBroadcaster();
  assert.equal(await broadcaster.flush(1000), 0);
  server.fault = () => (clock.monotonic() < 3000 ? apiError('unavailable') : undefined);
  start();
  recorder.normal(count('web'), 'Synced', 'yes');
  const short = broadcaster.flush(1000);
  await clock.advance(1000);
  assert.equal(await short, 1);
  const long = broadcaster.flush(60_000);
  await clock.advance(5000);
  assert.equal(await long, 0);
  assert.equal(clock.pending, 0);
  await stop();
});

test('attempted resolves after the first attempt to write the event', async () => {
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

test('attempted resolves when its signal aborts, and leaves no listeners', async () => {
  const { server, recorder, start, stop } = newBroadcaster();
  const response = new Deferred();
  server.fault = () => response.promise.then(() => undefined);
  start();
  const abort = new AbortController();
  const recorded = recorder.normal(count('web'), 'Synced', 'yes');
  let isWaiting = true;
  const waiting = recorded.attempted(abort.signal).finally(() => (isWaiting = false));
  await settle();
  assert.equal(isWaiting, true);
  abort.abort();
  await waiting;
  assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
  response.resolve();
  const unaborted = new AbortController();
  await recorded.attempted(unaborted.signal);
  assert.equal(getEventListeners(unaborted.signal, 'abort').length, 0);
  await stop();
});

test('logs each event at level 3', async () => {
  const { recorder, lines, start, stop } = newBroadcaster();
  start();
  recorder.warning(count('web'), 'Failed', '(combined from similar events): no');
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
        message: '(combined from similar events): no',
      },
    },
  ]);
  await stop();
});

test('rejects invalid options, and names them', () => {
  assert.throws(() => newBroadcaster({ capacity: 0 }), /capacity.*got 0/);
  assert.throws(() => newBroadcaster({ concurrency: 1.5 }), /concurrency.*got 1.5/);
});
