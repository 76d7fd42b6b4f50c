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
      readonly message: number;
    }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'fail'; readonly how: 'unavailable' | 'unreachable' | 'lostResponse' }
  | { readonly do: 'recover' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('record' as const),
      object: fc.nat(3),
      reason: fc.nat(1),
      message: fc.nat(12),
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
      do: fc.constant('fail' as const),
      how: fc.constantFrom('unavailable', 'unreachable', 'lostResponse'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('recover' as const) }) },
);

// upstream: 84j
test('includes every event in a written count or in the dropped metric, and decreases no count', async () => {
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
      const checkCounts = () => {
        for (const [key, { count }] of server.events) {
          assert.ok(count >= (counts.get(key) ?? 0), `${key} decreased to ${count}`);
          counts.set(key, count);
        }
      };
      const flushNow = async () => {
        const flushing = broadcaster.flush(0);
        await clock.advance(0);
        return flushing;
      };
      const recover = () => {
        server.fault = () => undefined;
        server.lostResponse = () => undefined;
      };
      let recorded = 0;
      for (const step of steps) {
        switch (step.do) {
          case 'record': {
            const metadata = { name: `pod-${step.object}`, namespace: 'default', uid: 'u' };
            const subject = { apiVersion: 'v1', kind: 'Pod', metadata };
            recorder.normal(subject, `Reason${step.reason}`, `message ${step.message}`);
            recorded++;
            break;
          }
          case 'advance':
            await clock.advance(step.ms);
            break;
          case 'fail': {
            const { how } = step;
            recover();
            if (how === 'lostResponse') server.lostResponse = () => apiError('unreachable');
            else server.fault = () => apiError(how);
            break;
          }
          case 'recover':
            recover();
        }
        const waiting = await flushNow();
        assert.ok(waiting <= capacity, `${waiting} are buffered`);
        checkCounts();
      }
      recover();
      await clock.advance(20_000);
      checkCounts();
      assert.equal(await flushNow(), 0);
      const written = [...counts.values()].reduce((sum, count) => sum + count, 0);
      assert.ok(written <= recorded, 'counts no event that was not recorded');
      assert.ok(written + dropped >= recorded, `${recorded}: ${written} and ${dropped} dropped`);
      assert.ok(server.maxConcurrency <= 4);
      abort.abort();
      await settle();
      await running;
      assert.equal(clock.pending, 0);
    }),
    { numRuns: 60 },
  );
});
