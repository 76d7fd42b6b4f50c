import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WatchListSupport } from '../../../src/cache/reflector-watch.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import {
  apiError,
  expired,
  isCheck,
  notFound,
  thing,
  tooLarge,
  tooManyRequests,
  unreachable,
} from '../../support/fake-source.ts';
import { brief, reflectorFixture } from './harness.ts';
import type { ReflectorFixture } from './harness.ts';

/** Requests in order: `stream latest`, `list 0`, `watch 11`. */
function asked({ source }: ReflectorFixture): string[] {
  return source.requests.map((request) => {
    if (request.verb === 'list' && isCheck(request)) return 'check';
    const { verb, resourceVersion = 'latest' } = request;
    const stream = verb === 'watch' && request.sendInitialEvents;
    return `${stream ? 'stream' : verb} ${resourceVersion}`;
  });
}

// upstream: 30k
test('resumes an ordinary watch from the last resourceVersion of a stream', async () => {
  const fixture = reflectorFixture('on');
  fixture.source.put('a');
  await fixture.start();
  await fixture.clock.advance(2000);
  fixture.source.endWatches();
  await settle();
  assert.deepEqual(asked(fixture), ['stream latest', 'check', 'watch 11']);
  const { resourceVersionMatch, sendInitialEvents } = fixture.source.watches.at(-1)!;
  assert.deepEqual([resourceVersionMatch, sendInitialEvents], [undefined, undefined]);
  await fixture.stop();
});

// upstream: 30l
test('streams again, not older than the last resourceVersion, after the history of a watch expired', async () => {
  const fixture = reflectorFixture('on');
  await fixture.start();
  fixture.source.put('a');
  await settle();
  fixture.source.emit({ type: 'error', error: expired() });
  await settle();
  await fixture.clock.advance(0);
  assert.deepEqual(asked(fixture), ['stream latest', 'stream 11']);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced @10', 'changed a@11', 'replaced a@11']);
  await fixture.stop();
});

// upstream: 30f
test('delays the next stream after 429 in a stream, without a list', async () => {
  const fixture = reflectorFixture('endless');
  fixture.source.put('a');
  await fixture.start();
  fixture.source.emit({ type: 'error', error: tooManyRequests() });
  await settle();
  assert.equal(fixture.source.openWatches, 0);
  fixture.source.watchListMode = 'on';
  await fixture.clock.advance(800);
  assert.deepEqual(asked(fixture), ['stream latest', 'stream latest']);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11']);
  await fixture.stop();
});

for (const [name, error] of [
  ['too new for the server', tooLarge()],
  ['expired', expired()],
] as const) {
  // upstream: 30h
  test(`streams the latest state at once if the resourceVersion is ${name} during a stream`, async () => {
    const fixture = reflectorFixture('endless');
    const reading = fixture.reflector.step(
      { phase: 'streaming', freshness: { atLeast: '10' } },
      new AbortController().signal,
    );
    await settle();
    fixture.source.emit({ type: 'error', error });
    assert.deepEqual(await reading, { phase: 'streaming', freshness: 'latest' });
    assert.equal(fixture.source.openWatches, 0);
  });
}

// upstream: 30h
test('lists if a stream of the latest state expires too', async () => {
  const fixture = reflectorFixture('on');
  await fixture.start();
  fixture.source.failNext('watch', expired(), 2);
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(800);
  assert.deepEqual(asked(fixture), [
    'stream latest',
    'stream 10',
    'stream latest',
    'list latest',
    'watch 10',
  ]);
  await fixture.stop();
});

// upstream: 30g
test('tries a stream and a list for each backoff delay while the server is absent', async () => {
  const fixture = reflectorFixture('on');
  fixture.source.failNext('watch', unreachable(), 2);
  fixture.source.failNext('list', unreachable(), 2);
  await fixture.start();
  assert.deepEqual(asked(fixture).splice(0), ['stream latest', 'list 0']);
  assert.equal(fixture.clock.untilNext, 800);
  await fixture.clock.advance(800);
  assert.equal(fixture.clock.untilNext, 1600);
  await fixture.clock.advance(1600);
  assert.deepEqual(asked(fixture), [
    'stream latest',
    'list 0',
    'stream latest',
    'list 0',
    'stream latest',
  ]);
  assert.deepEqual(fixture.deltas.map(brief), ['replaced @10']);
  await fixture.stop();
});

for (const [error, remembered] of [
  [apiError('invalid', 'sendInitialEvents: Forbidden', 422), true],
  [apiError('badRequest', 'what is that', 400), true],
  [apiError('methodNotAllowed', 'no watch', 405), true],
  [apiError('notAcceptable', 'no', 406), true],
  [apiError('forbidden', 'no', 403), false],
  [apiError('internal', 'internal error', 500), false],
  [apiError('unavailable', 'starting', 503), false],
  [notFound(), false],
] as const) {
  // upstream: 30c
  test(`lists at once after ${error.kind} instead of a stream, ${remembered ? 'and stops streaming for a while' : 'and streams the next time'}`, async () => {
    const fixture = reflectorFixture('on');
    fixture.source.failNext('watch', error);
    await fixture.start();
    assert.deepEqual(asked(fixture), ['stream latest', 'list 0', 'watch 10']);
    fixture.source.emit({ type: 'error', error: expired() });
    await fixture.clock.advance(800);
    assert.equal(asked(fixture)[3], remembered ? 'list 10' : 'stream 10');
    await fixture.stop();
  });
}

// upstream: 30i
test('lists and stops streaming for a while after a stream that ends at once', async () => {
  const fixture = reflectorFixture('endless');
  await fixture.start();
  fixture.source.endWatches();
  await settle();
  fixture.source.emit({ type: 'error', error: expired() });
  await fixture.clock.advance(800);
  assert.deepEqual(asked(fixture), ['stream latest', 'list 0', 'watch 10', 'list 10', 'watch 10']);
  await fixture.stop();
});

// upstream: 30e
test('keeps the last state of an object that is sent twice in the initial state', async () => {
  const fixture = reflectorFixture('endless');
  const first = fixture.source.put('a', 1);
  await fixture.start();
  fixture.source.put('a', 2);
  fixture.source.emit({ type: 'added', object: first });
  fixture.source.put('a', 3);
  fixture.source.emit({ type: 'bookmark', resourceVersion: '13', initialEventsEnd: true });
  await settle();
  const [delta] = fixture.deltas;
  assert.ok(delta?.type === 'replaced');
  assert.deepEqual(
    delta.objects.map(({ spec }) => spec.value),
    [3],
  );
  await fixture.stop();
});

test('applies a deletion and a new creation in the initial state', async () => {
  const fixture = reflectorFixture('endless');
  const kept = fixture.source.put('a');
  const deleted = fixture.source.put('b');
  await fixture.start();
  fixture.source.emit({ type: 'deleted', object: kept });
  fixture.source.emit({ type: 'deleted', object: deleted });
  fixture.source.emit({ type: 'added', object: kept });
  fixture.source.emit({ type: 'bookmark', resourceVersion: '15', initialEventsEnd: true });
  await settle();
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@15']);
  await fixture.stop();
});

test('ignores a malformed deletion in the initial state', async () => {
  const fixture = reflectorFixture('endless');
  fixture.source.put('a');
  await fixture.start();
  const broken = thing('a');
  Reflect.deleteProperty(broken, 'metadata');
  fixture.source.emit({ type: 'deleted', object: broken });
  fixture.source.emit({ type: 'bookmark', resourceVersion: '11', initialEventsEnd: true });
  await settle();
  assert.deepEqual(fixture.deltas.map(brief), ['replaced a@11']);
  assert.deepEqual(asked(fixture), ['stream latest']);
  await fixture.stop();
});

for (const [enabled, refused, usable] of [
  [true, false, true],
  [true, true, false],
  [false, false, false],
  [false, true, false],
] as const) {
  // upstream: 28
  test(`${usable ? 'tries' : 'does not try'} streaming that is ${enabled ? 'enabled' : 'disabled'} and ${refused ? 'was' : 'was never'} rejected`, async () => {
    const clock = new FakeClock();
    const support = new WatchListSupport(clock, { enabled });
    if (refused) support.refused();
    assert.equal(support.usable, usable);
    await clock.advance(299_999);
    assert.equal(support.usable, usable);
    await clock.advance(1);
    assert.equal(support.usable, enabled, 'a refusal is forgotten after five minutes');
  });
}
