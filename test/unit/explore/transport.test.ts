import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { it } from 'node:test';
import { Scheduler } from '../../../src/explore/scheduler.ts';
import { SteppedTransport } from '../../../src/explore/transport.ts';

it('leaves no listener on the signals of a process that has crashed', () => {
  const transport = new SteppedTransport({
    owner: 'controller',
    scheduler: new Scheduler(),
    handler: () => new Promise(() => undefined),
    isFaulty: true,
    staleRevision: undefined,
    expireHistory: () => undefined,
  });
  const { signal } = new AbortController();
  void transport.handle({ method: 'GET', path: '/api/v1/pods?watch=true', headers: {}, signal });
  transport.cut();
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
});
