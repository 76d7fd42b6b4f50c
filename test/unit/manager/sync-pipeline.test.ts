import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import type { Client } from '../../../src/client/client.ts';
import type { ControllerObserver } from '../../../src/manager/controller-options.ts';
import { SyncPipeline } from '../../../src/manager/sync-pipeline.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { done, postpone, requeueAfter } from '../../../src/workqueue/outcome.ts';
import type { Outcome } from '../../../src/workqueue/outcome.ts';

const key = objectKey('default', 'web');
const run = {
  reconcileID: '0',
  causes: [],
  omittedCauses: 0,
  attempt: 1,
  delayedMs: 0,
  queuedMs: 0,
};
const context = { ...run, signal: new AbortController().signal, log: silentLogger };
const report = { ...run, key, result: 'done', tookMs: 0 } as const;

describe('SyncPipeline', () => {
  let steps: string[];
  beforeEach(() => (steps = []));

  const server: Partial<Client> = { get: () => Promise.resolve({} as never) };
  const gate = (name: string, outcome: Outcome | undefined) => ({
    check: () => {
      steps.push(name);
      return outcome;
    },
  });
  const observer = (name: string): ControllerObserver => ({
    started: () => void steps.push(`${name} started`),
    called: (_key, { verb }) => void steps.push(`${name} ${verb}`),
    calledService: (_key, { method }) => void steps.push(`${name} ${method}`),
    ended: () => void steps.push(`${name} ended`),
    stopped: () => void steps.push(`${name} stopped`),
  });
  const pipeline = (...outcomes: (Outcome | undefined)[]) =>
    new SyncPipeline({
      client: server as Client,
      clock: new FakeClock(),
      fetch: undefined,
      handler: async (_key, { client, onServiceCall }) => {
        steps.push('sync');
        await client.get(PODS, { name: 'a' });
        onServiceCall?.({ method: 'PUT', origin: '', status: 200, ms: 0, error: undefined });
        return requeueAfter(7);
      },
      gates: outcomes.map((outcome, at) => gate(`gate ${at}`, outcome)),
      observers: [observer('a'), {}, observer('b')],
    });

  it('asks the gates in order, and calls the observers in order', async () => {
    const syncs = pipeline(undefined, undefined);
    assert.deepEqual(await syncs.sync(key, context), requeueAfter(7));
    syncs.ended(report, silentLogger);
    syncs.stopped();
    const asked = 'gate 0, gate 1, a started, b started, sync, a get, b get, a PUT, b PUT';
    const ended = 'a ended, b ended, a stopped, b stopped';
    assert.equal(steps.join(', '), `${asked}, ${ended}`);
  });

  for (const outcome of [done(), postpone(5, 'stale')]) {
    it(`starts no sync after a gate with the outcome ${outcome.kind}`, async () => {
      assert.equal(await pipeline(undefined, outcome, undefined).sync(key, context), outcome);
      assert.deepEqual(steps, ['gate 0', 'gate 1']);
    });
  }
});
