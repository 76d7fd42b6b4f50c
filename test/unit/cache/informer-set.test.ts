import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelSelectorText } from '../../../src/api/label-selector.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { formatShardRange } from '../../../src/api/shard-range.ts';
import { Informer } from '../../../src/cache/informer.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import type { InformerSetOptions } from '../../../src/cache/informer-set.ts';
import type { TweakListOptions } from '../../../src/cache/list-options.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { FakeClient } from '../../support/fake-client.ts';
import { THINGS, unreachable } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

const GADGETS: Resource<Thing> = { ...THINGS, plural: 'gadgets', kind: 'Thing' };

function newFixture(options: InformerSetOptions = {}) {
  const clock = new FakeClock();
  const client = new FakeClient(clock);
  const { log, lines } = recordingLogger();
  const set = new InformerSet(client, {
    clock,
    log,
    random: () => 0,
    freeze: true,
    ...options,
  });
  const controller = new AbortController();
  let running: Promise<void> = Promise.resolve();
  return {
    clock,
    client,
    set,
    lines,
    waitingLines: () => lines.filter(({ message }) => message === 'Waiting for caches to sync'),
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

test('returns the same informer for the same objects', () => {
  const { set } = newFixture();
  const all = set.for(THINGS);
  assert.equal(set.for(THINGS), all);
  assert.equal(set.for({ ...THINGS }, {}), all);
  const others = [
    set.for(GADGETS),
    set.for(THINGS, { namespace: 'demo' }),
    set.for(THINGS, { labelSelector: 'app=web' }),
    set.for(THINGS, { fieldSelector: 'metadata.name=a' }),
    set.for(THINGS, { metadataOnly: true }),
    set.for({ ...THINGS, version: 'v2' }),
  ];
  assert.equal(new Set([all, ...others]).size, 7);
  assert.equal(set.informers.length, 7);
  assert.equal(others[1]!.name, 'things.test.example in demo');
});

test('has the namespaces of the set, unless a request has its own', () => {
  const { client } = newFixture();
  const set = new InformerSet(client, { namespaces: ['a', 'b'] });
  assert.equal(set.for(THINGS), set.for(THINGS, { namespaces: ['b', 'a'] }));
  assert.equal(set.for(THINGS, { namespace: 'c' }).name, 'things.test.example in c');
  assert.equal(set.for(THINGS, { namespaces: [] }).name, 'things.test.example');
  assert.equal(set.for({ ...GADGETS, namespaced: false }).name, 'gadgets.test.example');
});

test('caches what the transform returns, and rejects another transform for the same objects', async () => {
  const { set, client, start, stop } = newFixture();
  client.source(THINGS).put('a', 1);
  const transform = (object: Thing) => ({ ...object, spec: { value: object.spec.value + 1 } });
  const informer = set.for(THINGS, { transform });
  await start();
  assert.deepEqual(
    informer.lister.list().map(({ spec }) => spec.value),
    [2],
  );
  assert.equal(set.for(THINGS, { transform }), informer);
  assert.throws(() => set.for(THINGS), /another transform/);
  await stop();
});

test('sends the selection with every list and watch', async () => {
  const { client, set, start, stop } = newFixture();
  client.source(THINGS, 'demo').watchListMode = 'refused';
  const shard = { index: 0, count: 2 };
  set.for(THINGS, { namespace: 'demo', labelSelector: 'app=web', metadataOnly: true, shard });
  await start();
  assert.equal(client.calls.length, 3);
  for (const { options } of client.calls) {
    assert.equal(options.namespace, 'demo');
    assert.equal(options.labelSelector, 'app=web');
    assert.equal(options.fieldSelector, undefined);
    assert.equal(options.metadataOnly, true);
    assert.equal(options.shardSelector, formatShardRange(shard));
  }
  await stop();
});

test('applies the set’s function and then the request’s function to the selectors', async () => {
  const tweakListOptions: TweakListOptions = ({ labelSelector }, { plural }) => ({
    labelSelector: [labelSelectorText(labelSelector), `plural=${plural}`].join(),
    fieldSelector: 'metadata.name!=boring',
  });
  const { client, set, start, stop } = newFixture({ tweakListOptions });
  client.source(THINGS).watchListMode = 'refused';
  const things = set.for(THINGS, {
    labelSelector: 'app=web',
    tweakListOptions: ({ labelSelector, fieldSelector }) => {
      const selectors = {
        labelSelector: `${labelSelectorText(labelSelector)},tier`,
        fieldSelector,
      };
      // Options that a tweak function must not change are ignored.
      const more = { resourceVersion: '1', limit: 1, continueToken: 'x', namespace: 'elsewhere' };
      return { ...selectors, ...more };
    },
  });
  const labelSelector = 'app=web,plural=things,tier';
  assert.notEqual(set.for(THINGS, { labelSelector }), things, 'the set’s hook is asked again');
  await start();
  const asked = client.calls.filter(({ options }) => options.labelSelector === labelSelector);
  assert.deepEqual(
    asked.map(({ options }) => [options.fieldSelector, options.namespace, options.resourceVersion]),
    [undefined, '0', '10'].map((version) => ['metadata.name!=boring', undefined, version]),
  );
  await stop();
});

// upstream: 66, 72, 74
test('runs and stops all informers, also one that is requested later', async () => {
  const { client, set, start, stop, clock } = newFixture();
  const things = set.for(THINGS);
  await start();
  await set.synced;
  assert.equal(set.hasSynced, true);
  const gadgets = set.for(GADGETS);
  assert.equal(set.hasSynced, false);
  await set.synced;
  assert.equal(things.hasSynced && gadgets.hasSynced, true);
  await stop();
  assert.equal(client.source(THINGS).openWatches + client.source(GADGETS).openWatches, 0);
  assert.equal(clock.pending, 0);
});

test('shares the WatchList support of the server between informers', async () => {
  const { client, set, start, stop } = newFixture();
  for (const resource of [THINGS, GADGETS]) client.source(resource).watchListMode = 'refused';
  set.for(THINGS);
  await start();
  set.for(GADGETS);
  await settle();
  assert.equal(client.source(GADGETS).requests[0]!.verb, 'list');
  await stop();
});

test('logs a failure of several informers in one line', async () => {
  const { client, set, start, stop, clock, lines } = newFixture();
  for (const resource of [THINGS, GADGETS]) {
    set.for(resource);
    client.source(resource).failNext('list', unreachable(), 1000);
    client.source(resource).failNext('watch', unreachable(), 1000);
  }
  await start();
  await clock.advance(5000);
  const failures = lines.filter(({ level }) => level === 'error');
  assert.deepEqual(
    failures.map(({ fields }) => fields['resources']),
    ['things.test.example, gadgets.test.example'],
  );
  await stop();
});

// upstream: 68
test('logs a cache that does not sync after 10 s, 20 s more and 40 s more', async () => {
  const { client, set, start, stop, clock, waitingLines } = newFixture();
  set.for(THINGS);
  client.source(THINGS).failNext('list', unreachable(), 1000);
  client.source(THINGS).failNext('watch', unreachable(), 1000);
  await start();
  await clock.advance(100_000);
  assert.deepEqual(
    waitingLines().map(({ fields }) => fields),
    [10, 30, 70].map((forSeconds) => ({
      caches: 'things.test.example',
      forSeconds,
      lastError: 'connect ECONNREFUSED 127.0.0.1:6443',
    })),
  );
  await stop();
  assert.equal(clock.pending, 0);
});

test('logs a resource that is not served once and does not delay others', async () => {
  const { client, set, start, stop, clock, lines, waitingLines } = newFixture();
  client.source(THINGS).missing = true;
  const things = set.for(THINGS);
  const gadgets = set.for(GADGETS);
  await start();
  await clock.advance(240_000);
  assert.equal(gadgets.hasSynced, true);
  assert.equal(things.parts[0]?.progress.missing, true);
  assert.deepEqual(waitingLines(), []);
  assert.equal(lines.filter(({ level }) => level === 0).length, 1);
  await stop();
});

test('stops the other informers and rejects if one fails', async () => {
  const { client, set, clock } = newFixture();
  const things = set.for(THINGS);
  set.for(GADGETS);
  assert.ok(things instanceof Informer);
  await things.run(AbortSignal.abort());
  await assert.rejects(
    set.run(new AbortController().signal),
    /things.test.example can run only once/,
  );
  assert.equal(client.source(GADGETS).openWatches, 0);
  assert.equal(clock.pending, 0);
});

test('runs only once, and adds no informer after the stop', async () => {
  const { set, start, stop } = newFixture();
  const things = set.for(THINGS);
  await start();
  await assert.rejects(set.run(new AbortController().signal), /can run only once/);
  const gadgets = set.for(GADGETS);
  await settle();
  assert.equal(gadgets.hasSynced, true, 'the run that was refused disturbs nothing');
  await stop();
  assert.equal(set.for(THINGS), things);
  assert.throws(
    () => set.for(THINGS, { namespace: 'a' }),
    /have stopped; cannot add one for test.example\/v1 things.test.example in a/,
  );
});

test('starts nothing with an aborted signal', async () => {
  const { client, set } = newFixture();
  set.for(THINGS);
  await set.run(AbortSignal.abort());
  assert.equal(client.calls.length, 0);
});

test('keeps the type of the objects', () => {
  const { set } = newFixture();
  const values: number[] = set
    .for(THINGS)
    .lister.list()
    .map(({ spec }) => spec.value);
  const any: readonly KubernetesObject['kind'][] = set.informers.map(
    ({ resource }) => resource.kind,
  );
  assert.deepEqual([values, any], [[], ['Thing']]);
});
