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
import { brief, reflectorWorld } from './harness.ts';
import type { ReflectorWorld } from './harness.ts';

/** Requests in order: `stream latest`, `list 0`, `watch 11`. */
function asked({ source }: ReflectorWorld): string[] {
  return source.requests.map((request) => {
    if (request.verb === 'list' && isCheck(request)) return 'check';
    const { verb, resourceVersion = 'latest' } = request;
    const stream = verb === 'watch' && request.sendInitialEvents;
    return `${stream ? 'stream' : verb} ${resourceVersion}`;
  });
}

// upstream: 30k
test('resumes an ordinary watch from the last resourceVersion of a stream', async () => {
  const world = reflectorWorld('on');
  world.source.put('a');
  await world.start();
  await world.clock.advance(2000);
  world.source.endWatches();
  await settle();
  assert.deepEqual(asked(world), ['stream latest', 'check', 'watch 11']);
  const { resourceVersionMatch, sendInitialEvents } = world.source.watches.at(-1)!;
  assert.deepEqual([resourceVersionMatch, sendInitialEvents], [undefined, undefined]);
  await world.stop();
});

// upstream: 30l
test('streams again, not older than the last resourceVersion, after the history of a watch expired', async () => {
  const world = reflectorWorld('on');
  await world.start();
  world.source.put('a');
  await settle();
  world.source.emit({ type: 'error', error: expired() });
  await settle();
  assert.equal(world.clock.untilNext, 800);
  await world.clock.advance(800);
  assert.deepEqual(asked(world), ['stream latest', 'stream 11']);
  assert.deepEqual(world.deltas.map(brief), ['replaced @10', 'changed a@11', 'replaced a@11']);
  await world.stop();
});

// upstream: 30f
test('delays the next stream after 429 in a stream, without a list', async () => {
  const world = reflectorWorld('endless');
  world.source.put('a');
  await world.start();
  world.source.emit({ type: 'error', error: tooManyRequests() });
  await settle();
  assert.equal(world.source.openWatches, 0);
  world.source.watchListMode = 'on';
  await world.clock.advance(800);
  assert.deepEqual(asked(world), ['stream latest', 'stream latest']);
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11']);
  await world.stop();
});

for (const [name, error] of [
  ['too new for the server', tooLarge()],
  ['expired', expired()],
] as const) {
  // upstream: 30h
  test(`streams the latest state at once if the resourceVersion is ${name} during a stream`, async () => {
    const world = reflectorWorld('endless');
    const reading = world.reflector.step(
      { phase: 'streaming', freshness: { atLeast: '10' } },
      new AbortController().signal,
    );
    await settle();
    world.source.emit({ type: 'error', error });
    assert.deepEqual(await reading, { phase: 'streaming', freshness: 'latest' });
    assert.equal(world.source.openWatches, 0);
  });
}

// upstream: 30h
test('lists if a stream of the latest state expires too', async () => {
  const world = reflectorWorld('on');
  await world.start();
  world.source.failNext('watch', expired(), 2);
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(800);
  assert.deepEqual(asked(world), [
    'stream latest',
    'stream 10',
    'stream latest',
    'list latest',
    'watch 10',
  ]);
  await world.stop();
});

// upstream: 30g
test('tries a stream and a list for each backoff delay while the server is absent', async () => {
  const world = reflectorWorld('on');
  world.source.failNext('watch', unreachable(), 2);
  world.source.failNext('list', unreachable(), 2);
  await world.start();
  assert.deepEqual(asked(world).splice(0), ['stream latest', 'list 0']);
  assert.equal(world.clock.untilNext, 800);
  await world.clock.advance(800);
  assert.equal(world.clock.untilNext, 1600);
  await world.clock.advance(1600);
  assert.deepEqual(asked(world), [
    'stream latest',
    'list 0',
    'stream latest',
    'list 0',
    'stream latest',
  ]);
  assert.deepEqual(world.deltas.map(brief), ['replaced @10']);
  await world.stop();
});

for (const [error, remembered] of [
  [apiError('invalid', 'sendInitialEvents: Forbidden', 422), true],
  [apiError('badRequest', 'what is that', 400), true],
  [apiError('methodNotAllowed', 'no watch', 405), true],
  [apiError('notAcceptable', 'no', 406), true],
  [apiError('forbidden', 'no', 403), false],
  [apiError('internal', 'sick', 500), false],
  [apiError('unavailable', 'starting', 503), false],
  [notFound(), false],
] as const) {
  // upstream: 30c
  test(`lists at once after ${error.kind} instead of a stream, ${remembered ? 'and stops streaming for a while' : 'and streams the next time'}`, async () => {
    const world = reflectorWorld('on');
    world.source.failNext('watch', error);
    await world.start();
    assert.deepEqual(asked(world), ['stream latest', 'list 0', 'watch 10']);
    world.source.emit({ type: 'error', error: expired() });
    await world.clock.advance(800);
    assert.equal(asked(world)[3], remembered ? 'list 10' : 'stream 10');
    await world.stop();
  });
}

// upstream: 30i
test('lists and stops streaming for a while after a stream that ends at once', async () => {
  const world = reflectorWorld('endless');
  await world.start();
  world.source.endWatches();
  await settle();
  world.source.emit({ type: 'error', error: expired() });
  await world.clock.advance(800);
  assert.deepEqual(asked(world), ['stream latest', 'list 0', 'watch 10', 'list 10', 'watch 10']);
  await world.stop();
});

// upstream: 30e
test('keeps the last state of an object that is sent twice in the initial state', async () => {
  const world = reflectorWorld('endless');
  const first = world.source.put('a', 1);
  await world.start();
  world.source.put('a', 2);
  world.source.emit({ type: 'added', object: first });
  world.source.put('a', 3);
  world.source.emit({ type: 'bookmark', resourceVersion: '13', initialEventsEnd: true });
  await settle();
  const [delta] = world.deltas;
  assert.ok(delta?.type === 'replaced');
  assert.deepEqual(
    delta.objects.map(({ spec }) => spec.value),
    [3],
  );
  await world.stop();
});

test('ignores a malformed deletion in the initial state', async () => {
  const world = reflectorWorld('endless');
  world.source.put('a');
  await world.start();
  const broken = thing('a');
  Reflect.deleteProperty(broken, 'metadata');
  world.source.emit({ type: 'deleted', object: broken });
  world.source.emit({ type: 'bookmark', resourceVersion: '11', initialEventsEnd: true });
  await settle();
  assert.deepEqual(world.deltas.map(brief), ['replaced a@11']);
  assert.deepEqual(asked(world), ['stream latest']);
  await world.stop();
});

for (const [enabled, refused, usable] of [
  [true, false, true],
  [true, true, false],
  [false, false, false],
  [false, true, false],
] as const) {
  // upstream: 28
  test(`${usable ? 'tries' : 'does not try'} streaming that is ${enabled ? 'enabled' : 'disabled'} and ${refused ? 'was' : 'was never'} refused`, async () => {
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
