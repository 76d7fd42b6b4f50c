import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objectKey } from '../../../src/api/object-key.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { FakeClient } from '../../support/fake-client.ts';
import { apiError, THINGS } from '../../support/fake-source.ts';
import { recordingHandler } from './harness.ts';

function newFixture(namespaces = ['a', 'b']) {
  const clock = new FakeClock();
  const client = new FakeClient(clock);
  const set = new InformerSet(client, { clock, random: () => 0, freeze: true });
  const things = set.for(THINGS, { namespaces });
  const controller = new AbortController();
  let running: Promise<void> = Promise.resolve();
  return {
    clock,
    client,
    set,
    things,
    source: (namespace: string) => client.source(THINGS, namespace),
    names: () =>
      things.lister
        .list()
        .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
        .toSorted(),
    start: async () => {
      running = set.run(controller.signal);
      await settle();
    },
    stop: async () => {
      controller.abort();
      await running;
    },
  };
}

const byValue = {
  value: ({ spec }: { readonly spec: { readonly value: number } }) => [String(spec.value)],
};

test('lists and watches each namespace and nothing else', async () => {
  const { client, things, start, stop } = newFixture();
  await start();
  assert.deepEqual(
    client.calls.map(({ options }) => options.namespace),
    ['a', 'b'],
  );
  assert.equal(things.name, 'things.test.example in a, b');
  await stop();
});

test('reads all namespaces through one lister', async () => {
  const { things, source, names, start, stop } = newFixture();
  things.addIndexers(byValue);
  source('a').put('a/x', 1);
  source('b').put('b/x', 1);
  source('b').put('b/y', 2);
  await start();
  const { lister } = things;
  assert.deepEqual(names(), ['a/x', 'b/x', 'b/y']);
  assert.equal(lister.size, 3);
  assert.equal(lister.get(objectKey('b', 'y'))?.spec.value, 2);
  for (const absent of ['a/y', 'a/x/y/z']) {
    assert.equal(lister.get(objectKey(undefined, absent)), undefined);
  }
  assert.equal(lister.get(objectKey('c', 'x')), undefined);
  assert.equal(lister.get(objectKey(undefined, 'x')), undefined);
  assert.deepEqual(lister.indexKeys('value', '1'), ['a/x', 'b/x']);
  assert.equal(lister.byIndex('value', '1').length, 2);
  assert.equal(lister.list({ namespace: 'b' }).length, 2);
  assert.deepEqual(lister.list({ namespace: 'c' }), []);
  assert.deepEqual(lister.list({ namespace: 'b', selector: 'app' }), []);
  assert.equal(lister.list({ selector: '!app' }).length, 3);
  assert.throws(() => lister.byIndex('color', 'red'), /does not exist/);
  assert.throws(() => lister.list({ selector: '=' }), SyntaxError);
  await stop();
});

// upstream: 74b
test('delivers events of all namespaces with one registration', async () => {
  const { things, source, start, stop } = newFixture();
  const { notes, handler } = recordingHandler();
  const registration = things.addHandler(handler);
  source('a').put('a/x', 1);
  await start();
  source('b').put('b/y', 2);
  source('a').put('a/x', 3);
  source('b').remove('b/y');
  await settle();
  assert.deepEqual(notes.toSorted(), ['+x=1!', '+y=2', '-y', '~x=1→3']);
  const late = recordingHandler();
  await things.addHandler(late.handler).synced;
  assert.deepEqual(late.notes, ['+x=3!']);
  registration.remove();
  registration.remove();
  source('a').put('a/z');
  source('b').put('b/z');
  await settle();
  assert.equal(notes.length, 4);
  assert.deepEqual(late.notes.toSorted(), ['+x=3!', '+z=0', '+z=0']);
  await stop();
  assert.throws(() => things.addHandler(handler), /has stopped/);
});

test('has synced when all namespaces have, and reports a forbidden one', async () => {
  const { clock, things, source, start, stop } = newFixture();
  const forbidden = apiError('forbidden', 'things is forbidden', 403);
  for (const verb of ['watch', 'list'] as const) source('b').failNext(verb, forbidden, 3);
  const registration = things.addHandler({});
  await start();
  assert.deepEqual(
    things.parts.map(({ name, hasSynced, progress }) => [name, hasSynced, progress.lastError]),
    [
      ['things.test.example in a', true, undefined],
      ['things.test.example in b', false, forbidden],
    ],
  );
  assert.deepEqual([things.hasSynced, registration.hasSynced], [false, false]);
  await clock.advance(10_000);
  assert.deepEqual([things.hasSynced, registration.hasSynced], [true, true]);
  await Promise.all([things.synced, registration.synced]);
  await stop();
});

test('rejects synced if it stops first', async () => {
  const { things, source, start, stop } = newFixture();
  source('b').listsHang = true;
  source('b').watchListMode = 'refused';
  const registration = things.addHandler({});
  const waiting = Promise.all([
    assert.rejects(things.synced, /in b stopped before it had synced/),
    assert.rejects(registration.synced, /in b stopped before it had synced/),
  ]);
  await start();
  await stop();
  await waiting;
});

test('reports the resourceVersion per namespace', async () => {
  const { things, source, start, stop } = newFixture();
  await start();
  source('b').skip(10);
  source('b').put('b/x');
  await settle();
  assert.equal(things.within('b')?.hasReached('21'), true);
  assert.equal(things.within('a')?.hasReached('21'), false);
  assert.equal(things.within('a')?.hasReached('10'), true);
  assert.equal(things.within('c'), undefined);
  assert.equal(things.within(undefined), undefined);
  await stop();
});

test('finds the part of a namespace', () => {
  const { set } = newFixture();
  const [a, all] = [set.for(THINGS, { namespace: 'a' }), set.for(THINGS)];
  assert.equal(a.within('a'), a);
  assert.equal(a.within('b'), undefined);
  assert.equal(all.within('b'), all);
  assert.equal(all.within(undefined), all);
  assert.deepEqual(a.parts, [a]);
});

test('returns the same informer for an equal request and shares its parts', () => {
  const { set, things } = newFixture();
  assert.equal(set.for(THINGS, { namespaces: ['b', 'a', 'b'] }), things);
  assert.equal(set.for(THINGS, { namespaces: ['a'] }), things.parts[0]);
  assert.equal(set.for(THINGS, { namespace: 'b' }), things.parts[1]);
  assert.notEqual(set.for(THINGS, { namespaces: ['a', 'b'], labelSelector: 'app' }), things);
  assert.equal(set.informers.length, 4);
});

test('adds an index to no part if one part has it', () => {
  const { set, things } = newFixture();
  set.for(THINGS, { namespace: 'b' }).addIndexers(byValue);
  assert.throws(() => things.addIndexers({ color: () => [], ...byValue }), {
    message: 'things.test.example in b: an index with name value already exists',
  });
  assert.deepEqual(
    things.parts.map(({ lister }) => lister.hasIndex('color')),
    [false, false],
  );
  assert.equal(things.lister.hasIndex('value'), false);
});
