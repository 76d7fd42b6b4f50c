import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { keyOf } from '../../../src/api/object-key.ts';
import type { DeepReadonly } from '../../../src/api/object.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import {
  apiError,
  expired,
  notFound,
  tooManyRequests,
  unreachable,
} from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';
import { informerFixture } from './harness.ts';
import type { InformerFixture } from './harness.ts';

/** Disruptions of an informer, as functions of its fixture. */
const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const happening = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('put' as const), name, fc.nat(9)) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('remove' as const), name) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('bookmark' as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('compact' as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('end' as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('reset' as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('deafen' as const), fc.boolean()) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('miss' as const), fc.boolean()) },
  {
    weight: 1,
    arbitrary: fc.tuple(
      fc.constant('fail' as const),
      fc.constantFrom('list' as const, 'watch' as const),
      fc.constantFrom('410', '429', '500', 'refused', '404'),
    ),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constant('error' as const), fc.constantFrom('410', '500')) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('join' as const)) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('wait' as const), fc.nat(120_000)) },
);

type Happening = typeof happening extends fc.Arbitrary<infer H> ? H : never;

const errors = {
  '410': expired(),
  '429': tooManyRequests(),
  '500': apiError('internal', 'sick', 500),
  '404': notFound(),
  refused: unreachable(),
};

/**
 * Handler that checks its events: no duplicate addition, no update or deletion before an addition, and
 * updates only from the last state.
 */
class Witness {
  readonly picture = new Map<string, DeepReadonly<Thing>>();
  readonly breaches: string[] = [];

  onAdd(object: DeepReadonly<Thing>): void {
    if (this.picture.has(keyOf(object))) this.breaches.push(`added twice: ${keyOf(object)}`);
    this.picture.set(keyOf(object), object);
  }

  onUpdate(old: DeepReadonly<Thing>, object: DeepReadonly<Thing>): void {
    if (this.picture.get(keyOf(object)) !== old) this.breaches.push(`gap: ${keyOf(object)}`);
    this.picture.set(keyOf(object), object);
  }

  onDelete(lastKnown: DeepReadonly<Thing>): void {
    if (!this.picture.delete(keyOf(lastKnown))) {
      this.breaches.push(`deleted unknown: ${keyOf(lastKnown)}`);
    }
  }
}

async function happen(fixture: InformerFixture, what: Happening, join: () => void): Promise<void> {
  const { source } = fixture;
  switch (what[0]) {
    case 'put':
      source.put(what[1], what[2]);
      break;
    case 'remove':
      if (source.objects.some(({ metadata }) => metadata.name === what[1])) source.remove(what[1]);
      break;
    case 'bookmark':
      source.bookmark();
      break;
    case 'compact':
      source.compact();
      break;
    case 'end':
      source.endWatches();
      break;
    case 'reset':
      source.resetWatches();
      break;
    case 'deafen':
      source.isStalled = what[1];
      break;
    case 'miss':
      source.missing = what[1];
      if (what[1]) source.endWatches();
      break;
    case 'fail':
      source.failNext(what[1], errors[what[2]]);
      break;
    case 'error':
      source.emit({ type: 'error', error: errors[what[1]] });
      break;
    case 'join':
      join();
      break;
    case 'wait':
      await fixture.clock.advance(what[1]);
  }
}

for (const mode of ['on', 'refused', 'endless'] as const) {
  // upstream: 58
  test(`ends with the server’s state in store and handlers after any faults (streaming ${mode})`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { maxLength: 30 }), async (history) => {
        const fixture = informerFixture({ yieldTurn: () => Promise.resolve() }, mode);
        const witnesses: Witness[] = [];
        const join = () => {
          const witness = new Witness();
          witnesses.push(witness);
          fixture.informer.addHandler(witness, { resyncPeriodMs: 50_000 });
        };
        join();
        await fixture.start();
        for (const what of history) await happen(fixture, what, join);
        fixture.source.isStalled = false;
        fixture.source.missing = false;
        await fixture.clock.advance(15 * 60_000);
        await settle();
        const truth = new Map(fixture.source.objects.map((object) => [keyOf(object), object]));
        const { lister } = fixture.informer;
        assert.deepEqual(new Map(lister.list().map((object) => [keyOf(object), object])), truth);
        for (const witness of witnesses) {
          assert.deepEqual(witness.breaches, []);
          assert.deepEqual(witness.picture, truth);
        }
        assert.equal(fixture.informer.hasSynced, true);
        assert.ok(lister.indexKeys('namespace', 'default').length === truth.size);
        await fixture.stop();
        assert.equal(fixture.clock.pending, 0);
        assert.equal(fixture.source.openWatches, 0);
      }),
      { numRuns: 40 },
    );
  });
}
