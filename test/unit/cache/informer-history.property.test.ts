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

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
/** A change on the server, a disruption, or a new handler. */
const disruption = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('put' as const), name, fc.nat(9)) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('remove' as const), name) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('bookmark' as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('compact' as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('end' as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('reset' as const)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('stall' as const), fc.boolean()) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('unserve' as const), fc.boolean()) },
  {
    weight: 1,
    arbitrary: fc.tuple(
      fc.constant('fail' as const),
      fc.constantFrom('list' as const, 'watch' as const),
      fc.constantFrom('410', '429', '500', 'refused', '404'),
    ),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constant('error' as const), fc.constantFrom('410', '500')) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('addHandler' as const)) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('wait' as const), fc.nat(120_000)) },
);

type Disruption = typeof disruption extends fc.Arbitrary<infer H> ? H : never;

const errors = {
  '410': expired(),
  '429': tooManyRequests(),
  '500': apiError('internal', 'internal error', 500),
  '404': notFound(),
  refused: unreachable(),
};

/**
 * Handler that checks its events: no duplicate addition, no update or deletion before an addition, and
 * updates only from the last state.
 */
class CheckingHandler {
  readonly objects = new Map<string, DeepReadonly<Thing>>();
  readonly violations: string[] = [];

  onAdd(object: DeepReadonly<Thing>): void {
    if (this.objects.has(keyOf(object))) this.violations.push(`added twice: ${keyOf(object)}`);
    this.objects.set(keyOf(object), object);
  }

  onUpdate(old: DeepReadonly<Thing>, object: DeepReadonly<Thing>): void {
    if (this.objects.get(keyOf(object)) !== old) this.violations.push(`gap: ${keyOf(object)}`);
    this.objects.set(keyOf(object), object);
  }

  onDelete(lastKnown: DeepReadonly<Thing>): void {
    if (!this.objects.delete(keyOf(lastKnown))) {
      this.violations.push(`deleted unknown: ${keyOf(lastKnown)}`);
    }
  }
}

async function disrupt(
  fixture: InformerFixture,
  what: Disruption,
  addHandler: () => void,
): Promise<void> {
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
    case 'stall':
      source.isStalled = what[1];
      break;
    case 'unserve':
      source.missing = what[1];
      if (what[1]) source.endWatches();
      break;
    case 'fail':
      source.failNext(what[1], errors[what[2]]);
      break;
    case 'error':
      source.emit({ type: 'error', error: errors[what[1]] });
      break;
    case 'addHandler':
      addHandler();
      break;
    case 'wait':
      await fixture.clock.advance(what[1]);
  }
}

for (const mode of ['on', 'refused', 'endless'] as const) {
  // upstream: 58
  test(`ends with the server’s state in store and handlers after any faults (streaming ${mode})`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(disruption, { maxLength: 30 }), async (history) => {
        const fixture = informerFixture({ yieldTurn: () => Promise.resolve() }, mode);
        const handlers: CheckingHandler[] = [];
        const addHandler = () => {
          const handler = new CheckingHandler();
          handlers.push(handler);
          fixture.informer.addHandler(handler, { resyncPeriodMs: 50_000 });
        };
        addHandler();
        await fixture.start();
        for (const what of history) await disrupt(fixture, what, addHandler);
        fixture.source.isStalled = false;
        fixture.source.missing = false;
        await fixture.clock.advance(15 * 60_000);
        await settle();
        const expected = new Map(fixture.source.objects.map((object) => [keyOf(object), object]));
        const { lister } = fixture.informer;
        assert.deepEqual(new Map(lister.list().map((object) => [keyOf(object), object])), expected);
        for (const handler of handlers) {
          assert.deepEqual(handler.violations, []);
          assert.deepEqual(handler.objects, expected);
        }
        assert.equal(fixture.informer.hasSynced, true);
        assert.ok(lister.indexKeys('namespace', 'default').length === expected.size);
        await fixture.stop();
        assert.equal(fixture.clock.pending, 0);
        assert.equal(fixture.source.openWatches, 0);
      }),
      { numRuns: 40 },
    );
  });
}
