import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FailureReporter, FailureLog } from '../../../src/cache/failure-log.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { apiError, notFound, unreachable } from '../../support/fake-source.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

/** Reflectors of one server. */
function newFixture(...resources: readonly string[]) {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger([], 3);
  const failureLog = new FailureLog(clock, log, true);
  const reflectors = resources.map(
    (resource) => new FailureReporter({ clock, log, resource, failureLog }),
  );
  /** Returns the lines since the last call. */
  const shown = () =>
    lines
      .splice(0)
      .map(({ message, fields }) => [message, fields['resources'] ?? fields['resource']]);
  return { clock, lines, reflectors, shown };
}

test('logs one failure of several reflectors in one line, and the recovery too', async () => {
  const { clock, lines, reflectors, shown } = newFixture('pods', 'counts', 'nodes');
  for (let second = 0; second < 30; second++) {
    for (const reflector of reflectors) {
      reflector.failed(unreachable(), 'list', 1000);
      await clock.advance(300);
    }
    await clock.advance(100);
  }
  assert.deepEqual(shown(), [['Failed to list', 'pods, counts, nodes']]);
  for (const reflector of reflectors) {
    assert.deepEqual(lines, []);
    reflector.recovered();
  }
  assert.equal(lines[0]?.fields['failures'], 90);
  assert.deepEqual(shown(), [['Recovered', 'pods, counts, nodes']]);
  assert.equal(clock.pending, 0);
});

test('reminds every five minutes of a failure, with the resources that still have it', async () => {
  const { clock, reflectors, shown } = newFixture('pods', 'counts');
  const [pods, counts] = reflectors;
  counts?.failed(unreachable(), 'list', 1000);
  for (let minute = 0; minute < 10; minute++) {
    pods?.failed(unreachable(), 'list', 1000);
    await clock.advance(60_000);
    if (minute === 0) counts?.recovered();
  }
  assert.deepEqual(shown(), [
    ['Failed to list', 'counts, pods'],
    ['Failed to list', 'pods'],
  ]);
  pods?.recovered();
  assert.deepEqual(shown(), [['Recovered', 'counts, pods']]);
});

test('logs the next outage like the first', async () => {
  const { clock, reflectors, shown } = newFixture('pods', 'counts');
  for (let outage = 0; outage < 3; outage++) {
    for (const reflector of reflectors) reflector.failed(unreachable(), 'watch', 1000);
    await clock.advance(2000);
    for (const reflector of reflectors) reflector.recovered();
    await clock.advance(2000);
    assert.deepEqual(shown(), [
      ['Failed to watch', 'pods, counts'],
      ['Recovered', 'pods, counts'],
    ]);
  }
});

test('logs an outage of less than a second before its recovery', () => {
  const { reflectors, shown } = newFixture('pods', 'counts');
  for (const reflector of reflectors) reflector.failed(unreachable(), 'watch', 1000);
  for (const reflector of reflectors) reflector.recovered();
  assert.deepEqual(shown(), [
    ['Failed to watch', 'pods, counts'],
    ['Recovered', 'pods, counts'],
  ]);
});

test('logs different failures in different lines', async () => {
  const { clock, reflectors, shown } = newFixture('pods', 'counts', 'nodes', 'foos');
  const [pods, counts, nodes, foos] = reflectors;
  pods?.failed(apiError('forbidden', 'pods is forbidden', 403), 'list', 1000);
  counts?.failed(apiError('internal', 'conversion webhook failed', 500), 'list', 1000);
  nodes?.failed(unreachable(), 'list', 1000);
  foos?.failed(notFound(), 'list', 1000);
  await clock.advance(1000);
  assert.deepEqual(shown(), [
    ['Failed to list', 'pods'],
    ['Failed to list', 'counts'],
    ['Failed to list', 'nodes'],
    ['The server does not have the resource; waiting for it to appear', 'foos'],
  ]);
});

test('logs alternating causes once a minute each', async () => {
  const { clock, reflectors, lines } = newFixture('pods', 'counts');
  for (let second = 0; second < 60; second++) {
    const error = second % 2 === 0 ? unreachable() : apiError('unavailable', 'starting', 503);
    for (const reflector of reflectors) reflector.failed(error, 'list', 1000);
    await clock.advance(1000);
  }
  assert.equal(lines.length, 2);
});

test('logs the failure of a reflector that stops and leaves no timer', async () => {
  const { clock, reflectors, shown } = newFixture('pods', 'counts');
  for (const reflector of reflectors) reflector.failed(unreachable(), 'list', 1000);
  for (const reflector of reflectors) reflector.stop();
  assert.deepEqual(shown(), [['Failed to list', 'pods, counts']]);
  assert.equal(clock.pending, 0);
});
