import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf } from '../../../src/api/object-key.ts';
import type { DeepReadonly } from '../../../src/api/object.ts';
import type { Delta } from '../../../src/cache/delta-queue.ts';
import { Indexer } from '../../../src/cache/indexer.ts';
import { Decoder } from '../../../src/client/decoder.ts';
import { countLazyFields } from '../../../src/client/lazy-object.ts';
import { TransformingSink } from '../../../src/cache/delta-queue.ts';
import type { Transform } from '../../../src/cache/delta-queue.ts';
import { noInformerMetrics } from '../../../src/metrics/no-metrics.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { RateLimitedLog } from '../../../src/util/rate-limited-log.ts';
import { thing } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

function newFixture(transform?: Transform<Thing>, freeze = false) {
  const queued: Delta<DeepReadonly<Thing>>[] = [];
  const indexer = new Indexer<Thing>();
  const { log, lines } = recordingLogger();
  let refused = 0;
  const sink = new TransformingSink<Thing>({
    queue: {
      push(delta) {
        queued.push(delta);
        return undefined;
      },
    },
    indexer,
    log,
    errors: new RateLimitedLog(new FakeClock(), { burst: 10 }),
    metrics: { ...noInformerMetrics, objectRefused: () => refused++ },
    transform,
    freeze,
  });
  return { sink, queued, indexer, lines, refused: () => refused };
}

const changed = (object: Thing): Delta<Thing> => ({ type: 'changed', key: keyOf(object), object });

test('passes a delta through unchanged without a transform', () => {
  const { sink, queued } = newFixture();
  const delta = changed(thing('a'));
  void sink.push(delta);
  assert.equal(queued[0], delta);
});

// upstream: 39
test('transforms each object once in every kind of delta', () => {
  let calls = 0;
  const { sink, queued } = newFixture((object) => {
    calls++;
    return { ...object, spec: { value: object.spec.value + 100 } };
  });
  void sink.push(changed(thing('a', 1)));
  void sink.push({ type: 'deleted', key: keyOf(thing('a')), lastKnown: thing('a', 2) });
  void sink.push({ type: 'replaced', objects: [thing('b', 3)], resourceVersion: '9' });
  void sink.push({ type: 'synced', resourceVersion: '10' });
  void sink.push({ type: 'resync' });
  assert.equal(calls, 3);
  assert.deepEqual(
    queued.map((delta) => {
      if (delta.type === 'changed') return delta.object.spec.value;
      if (delta.type === 'deleted') return delta.lastKnown.spec.value;
      return delta.type === 'replaced' ? delta.objects[0]!.spec.value : delta.type;
    }),
    [101, 102, 103, 'synced', 'resync'],
  );
});

// upstream: 56
test('freezes deeply', () => {
  const { sink, queued } = newFixture(undefined, true);
  void sink.push(changed(thing('a')));
  const [delta] = queued;
  assert.ok(delta?.type === 'changed');
  const { object } = delta;
  assert.throws(() => ((object.metadata as { name: string }).name = 'b'), TypeError);
  assert.throws(() => ((object.spec as { value: number }).value = 9), TypeError);
});

test('freezes objects of any depth', () => {
  const { sink, queued } = newFixture(undefined, true);
  const object = thing('a');
  let nested: Record<string, unknown> = {};
  for (let depth = 0; depth < 100_000; depth++) nested = { nested };
  void sink.push(changed(Object.assign(object, { status: nested })));
  assert.equal(queued.length, 1);
});

const throwing: Transform<Thing> = (object) => {
  if (object.spec.value === 13) throw new Error('unlucky');
  return object;
};

// upstream: 39
test('logs, counts and skips a change whose transform throws', () => {
  const { sink, queued, lines, refused } = newFixture(throwing);
  void sink.push(changed(thing('a', 13)));
  void sink.push(changed(thing('a', 14)));
  assert.equal(queued.length, 1);
  assert.equal(refused(), 1);
  assert.deepEqual(
    lines.map(({ message, fields }) => [message, fields['key']]),
    [['Could not transform an object', 'default/a']],
  );
});

test('applies a deletion whose transform throws', () => {
  const { sink, queued } = newFixture(throwing);
  void sink.push({ type: 'deleted', key: keyOf(thing('a')), lastKnown: thing('a', 13) });
  assert.equal(queued[0]?.type, 'deleted');
});

// upstream: 39
test('keeps the cached state of an object whose transform throws in a relist', () => {
  const { sink, queued, indexer } = newFixture(throwing);
  indexer.set(keyOf(thing('known')), thing('known', 1));
  const objects = [thing('known', 13), thing('unknown', 13), thing('fine', 2)];
  void sink.push({ type: 'replaced', objects, resourceVersion: '9' });
  const [delta] = queued;
  assert.ok(delta?.type === 'replaced');
  assert.deepEqual(
    delta.objects.map(({ metadata, spec }) => [metadata.name, spec.value]),
    [
      ['known', 1],
      ['fine', 2],
    ],
  );
});

test('limits the log lines of a transform that always throws', () => {
  const { sink, lines, refused } = newFixture(throwing);
  for (let at = 0; at < 1000; at++) void sink.push(changed(thing(`thing-${at}`, 13)));
  assert.equal(lines.length, 10);
  assert.equal(refused(), 1000);
});

test('applies a deletion whose last state is malformed', () => {
  const { sink, queued, refused } = newFixture(() => {
    throw new Error('unknown shape');
  });
  const lastKnown = thing('a', 2);
  void sink.push({ type: 'deleted', key: keyOf(lastKnown), lastKnown });
  assert.deepEqual(queued, [{ type: 'deleted', key: keyOf(lastKnown), lastKnown }]);
  assert.equal(refused(), 1);
});

test('keeps no text of a field that a transform has dropped', () => {
  const text =
    '{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a"},"spec":{"value":1},"status":{"large":"x"}}';
  const line = Buffer.from(`{"type":"ADDED","object":${text}}`);
  const resource = {
    group: 'test',
    version: 'v1',
    plural: 'things',
    kind: 'Thing',
    namespaced: true,
  };
  const decoded = () => {
    const event = new Decoder().event<Thing>(line, 0, line.length, 'An event', { resource });
    assert.ok(event.type === 'added');
    return event.object;
  };
  const dropping = newFixture((object) => {
    Reflect.deleteProperty(object, 'status');
    return object;
  });
  const dropped = decoded();
  void dropping.sink.push(changed(dropped));
  assert.equal(countLazyFields(dropped), 0);
  assert.deepEqual(dropped.spec, { value: 1 });

  const unrelated = newFixture((object) => {
    delete object.metadata.annotations;
    return object;
  });
  const kept = decoded();
  void unrelated.sink.push(changed(kept));
  assert.equal(countLazyFields(kept), 2);
});
