import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PingTimeoutError, unreachable } from '../../../src/client/transport/connection-error.ts';
import { noInformerMetrics } from '../../../src/metrics/no-metrics.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { brief, reflectorFixture } from './harness.ts';

test('resumes a watch with a dead connection at once and counts it as stalled', async () => {
  let stalls = 0;
  const metrics = { ...noInformerMetrics, watchStalled: () => void stalls++ };
  const fixture = reflectorFixture('on', { metrics });
  const { clock, source, reflector } = fixture;
  source.put('a');
  await fixture.start();
  source.put('b');
  await clock.advance(31_000);
  const asked = source.watches.length;
  source.resetWatches(unreachable(new PingTimeoutError('no answer'), 'https://server'));
  await settle();
  assert.equal(source.watches.length, asked + 1, 'without a pause');
  assert.equal(source.watches.at(-1)?.resourceVersion, source.resourceVersion);
  assert.equal(source.lists.length, 0);
  source.put('c');
  await settle();
  assert.deepEqual(fixture.deltas.map(brief).slice(-2), ['changed b@12', 'changed c@13']);
  assert.deepEqual([stalls, reflector.progress.stalls], [1, 1]);
  assert.deepEqual(
    fixture.lines
      .filter(({ level }) => level === 2)
      .map(({ message, fields }) => [message, fields['inactiveMs']]),
    [['Watch stalled; re-establishing it', 31_000]],
  );
  assert.deepEqual(fixture.shown(), [], 'no line at the default verbosity');
  await fixture.stop();
});

test('keeps a watch without events on a pinged connection for five minutes', async () => {
  const fixture = reflectorFixture('on');
  const { clock, source, reflector } = fixture;
  const activity = { lastMs: 0 };
  source.activity = activity;
  await fixture.start();
  for (let second = 0; second < 299; second++) {
    await clock.advance(1000);
    activity.lastMs = clock.monotonic();
  }
  assert.equal(source.watches.length, 1);
  assert.equal(reflector.progress.inactiveMs, 0);
  assert.equal(reflector.progress.isStale, false);
  await clock.advance(1000);
  assert.equal(source.watches.length, 2, 'the watch stalls after its bookmarks stop');
  assert.equal(reflector.progress.stalls, 1);
  await fixture.stop();
});

test('treats a watch that has sent bookmarks as stalled after ninety seconds', async () => {
  const fixture = reflectorFixture('on');
  const { clock, source } = fixture;
  const activity = { lastMs: 0 };
  source.activity = activity;
  await fixture.start();
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await clock.advance(1000);
      activity.lastMs = clock.monotonic();
    }
  };
  await pass(60);
  source.bookmark();
  await pass(89);
  assert.equal(source.watches.length, 1);
  await pass(1);
  assert.equal(source.watches.length, 2);
  await fixture.stop();
});

test('logs a watch that was cut and resumed at -v=4', async () => {
  const fixture = reflectorFixture('on');
  await fixture.start();
  await fixture.clock.advance(5000);
  fixture.source.resetWatches();
  await settle();
  const closed = fixture.lines.filter(({ message }) => message === 'Watch closed');
  assert.deepEqual(
    closed.map(({ level, fields }) => [level, fields['how']]),
    [[4, 'connectionBroke']],
  );
  assert.equal(fixture.source.watches.length, 2);
  await fixture.stop();
});
