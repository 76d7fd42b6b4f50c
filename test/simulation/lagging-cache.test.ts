import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { Simulation } from '../support/simulation.ts';

/** Delays the events of the Pod watch, as a slow server or network does. */
class DelayedWatch {
  #gate: Deferred | undefined;

  close(): void {
    this.#gate ??= new Deferred();
  }

  open(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }

  readonly around =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      const response = await handler(request);
      if (!/\/pods\?.*watch=true/.test(request.path)) return response;
      return { ...response, body: this.#hold(response.body) };
    };

  async *#hold(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of body) {
      await this.#gate?.promise;
      yield chunk;
    }
  }
}

describe('A daemon whose Pod cache lags behind', () => {
  let simulation: Simulation;
  let delay: DelayedWatch;

  beforeEach(async () => {
    simulation = new Simulation();
    simulation.startCluster();
    await simulation.installCrd();
    delay = new DelayedWatch();
    simulation.startDaemonBehind(delay.around);
    await simulation.pass(1000);
  });
  afterEach(() => simulation.end());

  const creates = () =>
    simulation.server.requests.count({ verb: 'create', resource: 'pods', subresource: '' });
  const deletes = () =>
    simulation.server.requests.recent.filter(
      ({ info, userAgent }) =>
        info?.verb === 'delete' && info.resource === 'pods' && userAgent === 'daemon',
    ).length;

  it('creates each Pod once, even if the Count is synced repeatedly', async () => {
    delay.close();
    await simulation.applyCount();
    for (let turn = 0; turn < 5; turn++) {
      await simulation.pass(1000);
      await simulation.client.patch(COUNTS, simulation.at, {
        type: 'merge',
        body: { metadata: { labels: { turn: String(turn) } } },
      });
    }
    await simulation.pass(1000);
    assert.equal(creates(), 3);
    delay.open();
    await simulation.untilReady(3);
    assert.equal(creates(), 3);
    assert.deepEqual(simulation.errors(), []);
  });

  it('deletes each Pod once', async () => {
    await simulation.applyCount();
    await simulation.untilReady(3);
    await simulation.settle();
    delay.close();
    await simulation.patchCount({ count: 1 });
    await simulation.pass(1000);
    await simulation.client.patch(COUNTS, simulation.at, {
      type: 'merge',
      body: { metadata: { labels: { again: 'true' } } },
    });
    await simulation.pass(5000);
    assert.equal(deletes(), 2);
    delay.open();
    await simulation.untilReady(1);
    assert.equal(deletes(), 2);
  });

  it('recognizes its Pod when the response to the creation was lost', async () => {
    delay.close();
    simulation.server.faults.failNext({ verb: 'create', resource: 'pods' }, 'lostResponse');
    await simulation.applyCount();
    await simulation.pass(5000);
    delay.open();
    await simulation.untilReady(3);
    await simulation.settle();
    const events = await simulation.events();
    assert.ok(!events.some((event) => event.includes('already exists')), events.join('\n'));
  });
});

describe('A Count in its desired state', () => {
  it('causes no requests except watches, also after resyncs', async () => {
    const simulation = new Simulation();
    simulation.startCluster();
    await simulation.installCrd();
    simulation.startDaemonBehind((handler) => handler, { resyncPeriodMs: 5000 });
    await simulation.applyCount();
    await simulation.untilReady(3);
    await simulation.settle();
    const sent = () =>
      simulation.server.requests.recent.filter(
        ({ info, userAgent }) => userAgent === 'daemon' && info?.verb !== 'watch',
      ).length;
    const before = sent();
    await simulation.pass(60_000);
    assert.equal(sent(), before);
    assert.ok(
      simulation.lines.some(({ message }) => message === 'Caches populated'),
      'the daemon sent requests',
    );
    await simulation.end();
  });
});
