import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { EventBroadcaster } from '../../../src/record/event-broadcaster.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { apiError, FakeEventServer } from './fake-event-server.ts';

type Step =
  | {
      readonly do: 'record';
      readonly object: number;
      readonly reason: number;
      readonly word: number;
    }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'break'; readonly how: 'unavailable' | 'unreachable' | 'lostAnswer' }
  | { readonly do: 'mend' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('record' as const),
      object: fc.nat(3),
      reason: fc.nat(1),
      word: fc.nat(12),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.integer({ min: 1, max: 9000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('break' as const),
      how: fc.constantFrom('unavailable', 'unreachable', 'lostAnswer'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('mend' as const) }) },
);

// upstream: 84j
test('every event is written, or counted up in one that is, or counted as dropped; and no count falls', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
      const clock = new FakeClock();
      const server = new FakeEventServer();
      let dropped = 0;
      const capacity = 8;
      const broadcaster = new EventBroadcaster(
        { client: server.client, clock, log: silentLogger },
        {
          capacity,
          correlation: { burst: 10 },
          metrics: { dropped: (_reason, events = 1) => (dropped += events) },
          random: () => 0.5,
        },
      );
      const recorder = broadcaster.recorder('test');
      const abort = new AbortController();
      const running = broadcaster.run(abort.signal);
      const counts = new Map<string, number>();
      const look = () => {
        for (const [key, { count }] of server.events) {
          assert.ok(count >= (counts.get(key) ?? 0), `${key} fell to ${count}`);
          counts.set(key, count);
        }
      };
      const left = async () => {
        const flushing = broadcaster.flush(0);
        await clock.advance(0);
        return flushing;
      };
      const mend = () => {
        server.fault = () => undefined;
        server.lostAnswer = () => undefined;
      };
      let recorded = 0;
      for (const step of steps) {
        switch (step.do) {
          case 'record': {
            const metadata = { name: `pod-${step.object}`, namespace: 'default', uid: 'u' };
            const subject = { apiVersion: 'v1', kind: 'Pod', metadata };
            recorder.normal(subject, `Reason${step.reason}`, `word ${step.word}`);
            recorded++;
            break;
          }
          case 'advance':
            await clock.advance(step.ms);
            break;
          case 'break': {
            const { how } = step;
            mend();
            if (how === 'lostAnswer') server.lostAnswer = () => apiError('unreachable');
            else server.fault = () => apiError(how);
            break;
          }
          case 'mend':
            mend();
        }
        const waiting = await left();
        assert.ok(waiting <= capacity, `${waiting} are waiting`);
        look();
      }
      mend();
      await clock.advance(20_000);
      look();
      assert.equal(await left(), 0);
      const written = [...counts.values()].reduce((sum, count) => sum + count, 0);
      assert.ok(written <= recorded, 'nothing is counted that did not happen');
      assert.ok(written + dropped >= recorded, `${recorded}: ${written} and ${dropped} dropped`);
      assert.ok(server.mostAtOnce <= 4);
      abort.abort();
      await settle();
      await running;
      assert.equal(clock.pending, 0);
    }),
    { numRuns: 60 },
  );
});
